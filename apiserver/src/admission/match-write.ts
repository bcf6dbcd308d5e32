import { selectorMatches } from "../validation/fields.js";
import type { ServedType } from "../builtin/served-type.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../json.js";
import { isNamespace } from "../object/object-meta.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { AdmittedWrite } from "./admission.js";

// A webhook must not be able to lock everybody out of the objects that configure admission.
const EXEMPT_GROUP = "admissionregistration.k8s.io";

/** Which writes a webhook or a policy wants to see. */
export interface WriteSelector {
  readonly rules: readonly JsonObject[];
  readonly excludeRules?: readonly JsonObject[];
  /** Whether writes in other versions of a resource count. */
  readonly matchPolicy: "Exact" | "Equivalent";
  readonly namespaceSelector: JsonObject;
  readonly objectSelector: JsonObject;
}

/** Returns the resource in the version in which a webhook or a policy wants to see a write; undefined if it does not want to see it. */
export function matchWrite(webhook: WriteSelector, write: AdmittedWrite): ServedResource | undefined {
  const { registry, resource } = write.context;
  if (resource.type.group === EXEMPT_GROUP) return undefined;
  if (resourceFor(webhook.excludeRules ?? [], webhook, write) !== undefined) return undefined;
  const seen = resourceFor(webhook.rules, webhook, write);
  if (seen === undefined) return undefined;
  const labels = namespaceLabels(registry, write);
  const isInNamespace = labels === undefined || selectorMatches(webhook.namespaceSelector, labels);
  return isInNamespace && matchesObject(webhook.objectSelector, write) ? seen : undefined;
}

function resourceFor(
  rules: readonly JsonObject[],
  { matchPolicy }: WriteSelector,
  write: AdmittedWrite,
): ServedResource | undefined {
  const { registry, resource } = write.context;
  if (rules.some((rule) => matchesRule(rule, resource.type, write))) return resource;
  if (rules.length === 0 || matchPolicy === "Exact") return undefined;
  // Versions of one resource share their objects.
  const others = [...registry.resources].filter((other) => other.store === resource.store && other !== resource);
  return others.find(({ type }) => rules.some((rule) => matchesRule(rule, type, write)));
}

function matchesRule(rule: JsonObject, type: ServedType, { operation, subresource, name }: AdmittedWrite): boolean {
  const names = arrayAt(rule, "resourceNames") ?? [];
  return (
    (names.length === 0 || names.includes(name)) &&
    includes(rule, "operations", operation) &&
    includes(rule, "apiGroups", type.group) &&
    includes(rule, "apiVersions", type.version) &&
    matchesScope(stringAt(rule, "scope") ?? "*", type) &&
    (arrayAt(rule, "resources") ?? []).some((pattern) => matchesResource(String(pattern), type.plural, subresource))
  );
}

function includes(rule: JsonObject, member: string, value: string): boolean {
  const values = arrayAt(rule, member) ?? [];
  return values.includes("*") || values.includes(value);
}

// The namespace of a Namespace is itself, but it is a cluster-scoped object.
function matchesScope(scope: string, { namespaced }: ServedType): boolean {
  return scope === "*" || (scope === "Namespaced") === namespaced;
}

// "*" stands for every resource without subresources, "*/*" for both, "*/status" and "pods/*" for a part.
function matchesResource(pattern: string, plural: string, subresource: string): boolean {
  const [resource = "", sub] = pattern.split("/");
  const isResource = resource === "*" || resource === plural;
  if (sub === undefined) return isResource && subresource === "";
  return isResource && (sub === "*" || sub === subresource);
}

// Undefined for what is in no namespace.
function namespaceLabels(registry: Registry, write: AdmittedWrite): JsonObject | undefined {
  const { type } = write.context.resource;
  if (isNamespace(type)) return labelsOf(write.operation === "DELETE" ? write.oldObject : write.object);
  const { namespace } = write.context;
  return namespace === undefined ? undefined : labelsOf(registry.namespaces.get(namespace)?.object);
}

function matchesObject(selector: JsonObject, { object, oldObject }: AdmittedWrite): boolean {
  if (Object.keys(selector).length === 0) return true;
  // The options of a connection have no labels, and no selector finds them.
  const states = [object, oldObject].filter(
    (state) => state !== undefined && objectAt(state, "metadata") !== undefined,
  );
  return states.some((state) => selectorMatches(selector, labelsOf(state)));
}

function labelsOf(object: JsonObject | undefined): JsonObject {
  return objectAt(objectAt(object, "metadata"), "labels") ?? {};
}
