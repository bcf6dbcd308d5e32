import { selectorMatches } from "../validation/fields.js";
import type { ServedType } from "../builtin/served-type.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../json.js";
import { isNamespace } from "../object/object-meta.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { AdmittedWrite } from "./admission.js";

// Objects that configure admission are exempt, so that no webhook or policy can block its own removal.
const EXEMPT_GROUP = "admissionregistration.k8s.io";

/** Which writes a webhook or policy intercepts. */
export interface WriteSelector {
  readonly rules: readonly JsonObject[];
  readonly excludeRules?: readonly JsonObject[];
  /** `Equivalent` also matches requests for other versions of a resource. */
  readonly matchPolicy: "Exact" | "Equivalent";
  readonly namespaceSelector: JsonObject;
  readonly objectSelector: JsonObject;
}

/** Returns the resource in the version that matches the rules of a webhook or policy; undefined if the write does not match. */
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
  // The versions of a resource share one store.
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

// A Namespace is a cluster-scoped object, although its request has a namespace.
function matchesScope(scope: string, { namespaced }: ServedType): boolean {
  return scope === "*" || (scope === "Namespaced") === namespaced;
}

// "*" matches every resource without subresources, "*/*" both; "*/status" and "pods/*" match subresources.
function matchesResource(pattern: string, plural: string, subresource: string): boolean {
  const [resource = "", sub] = pattern.split("/");
  const isResource = resource === "*" || resource === plural;
  if (sub === undefined) return isResource && subresource === "";
  return isResource && (sub === "*" || sub === subresource);
}

// Undefined for cluster-scoped objects.
function namespaceLabels(registry: Registry, write: AdmittedWrite): JsonObject | undefined {
  const { type } = write.context.resource;
  if (isNamespace(type)) return labelsOf(write.operation === "DELETE" ? write.oldObject : write.object);
  const { namespace } = write.context;
  return namespace === undefined ? undefined : labelsOf(registry.namespaces.get(namespace)?.object);
}

function matchesObject(selector: JsonObject, { object, oldObject }: AdmittedWrite): boolean {
  if (Object.keys(selector).length === 0) return true;
  // The options of a CONNECT have no labels, so an object selector that is not empty never matches them.
  const states = [object, oldObject].filter(
    (state) => state !== undefined && objectAt(state, "metadata") !== undefined,
  );
  return states.some((state) => selectorMatches(selector, labelsOf(state)));
}

function labelsOf(object: JsonObject | undefined): JsonObject {
  return objectAt(objectAt(object, "metadata"), "labels") ?? {};
}
