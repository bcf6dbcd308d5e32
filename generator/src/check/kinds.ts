import { type Diagnostic, type Rule, didYouMean, formatPosition, quote, subjectOfCrd } from "../diagnostic.js";
import { EXTERNAL } from "../model/project-memory.js";
import type { ResourceModel } from "../model/project-model.js";
import {
  type Check,
  type ResolvedController,
  type ResolvedProject,
  type ResourceCatalog,
  checkOfController,
  formatKind,
  parseKind,
  presentKindsOf,
} from "../model/resolved-project.js";
import { isRecord, ownSchema, resolveRef, schemasOf, takesStatusCondition } from "../model/schema.js";
import type { Crd, CrdVersion } from "../read/crd/read-crds.js";
import { KNOWN_KIND, UNKNOWN_KIND } from "../read/rules.js";
import type { DependentSpec } from "../read/workflow-spec.js";
import type { YamlPath } from "../read/yaml/yaml-document.js";
import {
  DUPLICATE_KIND,
  STATUS_CONDITIONS,
  UNCONVERTED_VERSION,
  UNKNOWN_VERSION,
  UNUSABLE_KIND,
  VERSION_NOT_SERVED,
} from "./rules.js";

/** Verbs that the runtime needs for kinds that it only reads. */
const READING_VERBS = ["get", "list", "watch"];

/** Verbs that the runtime needs for primaries and dependents. */
const WRITING_VERBS = ["get", "list", "patch", "watch"];

/** Reports kinds that are neither built in nor defined by a CRD of the project, and kinds whose API lacks a verb that the runtime needs. */
export const checkUnknownKind = checkOfController((controller, { catalog }) => {
  const { spec, dependents, eventSources, removed } = controller;
  const writing = { spec, catalog, neededVerbs: WRITING_VERBS };
  const reading = { spec, catalog, neededVerbs: READING_VERBS };
  return [
    ...checkKind(spec.primary, ["spec", "primary"], writing),
    ...dependents.flatMap(({ spec: { resource: kind, mode }, path }) =>
      checkOwnKind(kind, [...path, "resource"], mode === "readOnly" ? reading : writing),
    ),
    ...dependents.flatMap(({ spec: { external }, path }) =>
      external?.state?.resource === undefined
        ? []
        : checkKind(external.state.resource, [...path, "external", "state", "resource"], writing),
    ),
    ...removed.flatMap(({ spec: { resource: kind }, path }) =>
      kind === EXTERNAL ? [] : checkOwnKind(kind, [...path, "resource"], writing),
    ),
    ...eventSources.flatMap(({ spec: { resource: kind }, path }) => checkOwnKind(kind, [...path, "resource"], reading)),
    ...presentKindsOf(controller).flatMap(({ kind, path }) =>
      checkOwnKind(kind, path, { ...reading, neededVerbs: [] }),
    ),
  ];
});

function checkOwnKind(kind: DependentSpec["resource"], path: YamlPath, check: KindCheck): Diagnostic[] {
  if (kind === undefined) return [];
  if (typeof kind === "string") return checkKind(kind, path, check);
  const text = `${kind.apiVersion}/${kind.kind}`;
  if (check.catalog.find(parseKind(text)) === undefined) return [];
  return [
    {
      ...KNOWN_KIND.violation,
      message: `kind ${quote(text)} has a schema, so the spec must not describe it by apiVersion, kind, plural and scope`,
      ...check.spec.document.valueAt(path),
      hint: `use resource: ${text}, so that its objects have types`,
    },
  ];
}

interface KindCheck extends Pick<ResolvedController, "spec"> {
  readonly catalog: ResourceCatalog;
  readonly neededVerbs: readonly string[];
}

function checkKind(
  text: string,
  path: YamlPath,
  { spec: { document }, catalog, neededVerbs }: KindCheck,
): Diagnostic[] {
  const fail = (rule: Rule<"error">, message: string, hint?: { hint: string }): Diagnostic[] => [
    { ...rule.violation, message, ...document.valueAt(path), ...hint },
  ];
  const resource = catalog.find(parseKind(text));
  const others = resource === undefined ? versionsOf(text, catalog) : [];
  if (resource === undefined && others.length > 0)
    return fail(
      UNKNOWN_VERSION,
      `kind ${quote(text)} not found: ${parseKind(text).kind} has no version ${quote(parseKind(text).version)}`,
      others.length === 1 ? { hint: `did you mean ${quote(others[0]!)}?` } : { hint: `use one of ${listed(others)}` },
    );
  if (resource === undefined)
    return fail(
      UNKNOWN_KIND,
      `kind ${quote(text)} not found: it is not built into Kubernetes 1.36, and ${searched(catalog)}`,
      nearestKind(text, catalog) ?? definedKinds(catalog),
    );
  if (!resource.isServed)
    return fail(
      VERSION_NOT_SERVED,
      `kind ${quote(text)} is not served: its CRD sets served: false for this version`,
      servedKind(text, catalog),
    );
  const verbs = catalog.verbsOf(resource);
  const missing = neededVerbs.filter((verb) => verbs !== undefined && !verbs.includes(verb));
  if (missing.length === 0) return [];
  return fail(
    UNUSABLE_KIND,
    `the API server does not support ${missing.join(" and ")} for kind ${quote(text)}, which an operator needs`,
    { hint: "use another kind" },
  );
}

// The right kind in a wrong group or version is a more likely mistake than a misspelled name.
function nearestKind(text: string, { custom, names }: ResourceCatalog): { hint: string } | undefined {
  const inFile = custom.filter(({ crdFile }) => crdFile === text).map(formatKind);
  if (inFile.length > 0) return { hint: `use group/version/Kind: ${listed(inFile)}` };
  const { kind } = parseKind(text);
  const same = names.filter((name) => parseKind(name).kind.toLowerCase() === kind.toLowerCase());
  if (same.length === 1) return { hint: `did you mean ${same.map(quote).join()}?` };
  return didYouMean(text, same.length > 0 ? same : names);
}

/** Returns the kind in its other served versions, if only the version of `text` is wrong. */
function versionsOf(text: string, { custom, names }: ResourceCatalog): string[] {
  const { group, kind } = parseKind(text);
  const isSame = (other: { readonly group: string; readonly kind: string }) =>
    other.group === group && other.kind === kind;
  const unserved = new Set(custom.filter(({ isServed }) => !isServed).map((resource) => formatKind(resource)));
  return names.filter((name) => isSame(parseKind(name)) && !unserved.has(name));
}

function definedKinds({ custom }: ResourceCatalog): { hint: string } {
  const defined = custom.filter(({ crdFile, isServed }) => crdFile !== undefined && isServed);
  const names = defined.map((resource) => formatKind(resource));
  const has = names.length === 0 ? "" : `crds/ defines ${listed(names)}; `;
  return { hint: `${has}add its CRD to crds/` };
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 10).map(quote).join(", ");
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}

function servedKind(text: string, { custom }: ResourceCatalog): { hint: string } {
  const { group, kind } = parseKind(text);
  const served = custom.filter((other) => other.group === group && other.kind === kind && other.isServed);
  if (served.length === 0) return { hint: "set served: true for a version in its CRD" };
  return { hint: `use a served version: ${served.map((resource) => quote(formatKind(resource))).join(", ")}` };
}

function searched({ crdFiles }: ResourceCatalog): string {
  if (crdFiles.length === 0) return "crds/ contains no CRDs";
  const first = crdFiles.slice(0, 5).join(", ");
  return `not defined in ${crdFiles.length > 5 ? `${first} and ${crdFiles.length - 5} more files` : first}`;
}

/** Reports kinds that two CRDs define, and kinds whose generated files would have the same name. */
export function checkDuplicateKind(crds: readonly Crd[]): Diagnostic[] {
  const first = new Map<string, Crd>();
  return crds.flatMap((crd): Diagnostic[] => {
    const key = `${plain(crd.kind)}.${crd.group}`;
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, crd);
      return [];
    }
    const reason = crd.kind.toLowerCase() === other.kind.toLowerCase() ? "case" : "hyphens";
    const where = formatPosition(other.placeOf().position);
    const message =
      other.kind === crd.kind
        ? `kind ${crd.kind} of ${crd.group} is already defined at ${where}`
        : `kind ${quote(crd.kind)} differs from ${quote(other.kind)} (${where}) only in ${reason}`;
    const hint = "remove one of the two CRDs";
    return [{ ...DUPLICATE_KIND.violation, message, ...crd.placeOf(), hint }];
  });
}

function plain(kind: string): string {
  return kind.toLowerCase().replaceAll("-", "");
}

/**
 * Reports primaries that are served in versions with different fields but without a conversion webhook.
 *
 * With strategy None, the API server changes only `apiVersion`, and prunes the fields that are not in the schema of the requested version.
 */
export function checkUnconvertedVersions(
  crds: readonly Crd[],
  { controllers }: ResolvedProject,
  compareVersions = unconvertedVersionsOf,
): Diagnostic[] {
  const primaries = new Set(
    controllers.flatMap(({ primary }) => (primary === undefined ? [] : [versionKeyOf(primary)])),
  );
  return crds
    .filter((crd) => primaries.has(versionKeyOf(crd)))
    .flatMap((crd) => {
      const about = subjectOfCrd(crd);
      return compareVersions(crd).map(({ message, hint }): Diagnostic => {
        return { ...UNCONVERTED_VERSION.violation, about, message, ...crd.placeOf(), hint };
      });
    });
}

interface Problem {
  readonly message: string;
  readonly hint: string;
}

/** Returns a problem for each served version whose fields differ from those of the stored version, unless a webhook converts them. */
export function unconvertedVersionsOf(crd: Crd): Problem[] {
  if (isConverted(crd)) return [];
  const stored = crd.versions.find(({ isStorage }) => isStorage);
  if (stored === undefined) return [];
  const others = crd.versions.filter((version) => version.isServed && version !== stored);
  return others.flatMap((other): Problem[] => {
    const difference = differenceOf(stored, other);
    if (difference === undefined) return [];
    const message =
      `${crd.kind} is stored as ${quote(stored.name)} and served as ${quote(other.name)} without a conversion webhook: ` +
      difference;
    const hint = `set spec.conversion to a webhook, or stop serving ${quote(other.name)}`;
    return [{ message, hint }];
  });
}

function differenceOf(stored: CrdVersion, other: CrdVersion): string | undefined {
  const [before, after] = [fieldsOf(stored), fieldsOf(other)];
  for (const [path, type] of before) {
    const found = after.get(path);
    if (found === undefined) {
      if (!isKept(path, after)) return `${quote(other.name)} has no ${path}, so its clients never see that field`;
    } else if (found !== type)
      return `${path} is ${type} in ${quote(stored.name)} and ${found} in ${quote(other.name)}`;
  }
  const lost = [...after.keys()].find((path) => !before.has(path) && !isKept(path, before));
  return lost && `${quote(stored.name)} has no ${lost}, so the API server drops that field`;
}

// Nothing is pruned below a field with x-kubernetes-preserve-unknown-fields.
function isKept(path: string, fields: ReadonlyMap<string, string>): boolean {
  const steps = path.split(".");
  return steps.some((_step, index) => fields.get(steps.slice(0, index).join(".")) === "any object");
}

/** Returns a description of the type of each field of a version, by path. */
function fieldsOf({ schema }: CrdVersion): Map<string, string> {
  const fields = new Map<string, string>();
  const visit = (node: unknown, path: string): void => {
    if (!isRecord(node)) return;
    fields.set(path, typeOf(node));
    const { properties, items, additionalProperties } = node;
    if (isRecord(properties))
      for (const [name, child] of Object.entries(properties)) visit(child, path === "" ? name : `${path}.${name}`);
    visit(items, `${path}[]`);
    visit(additionalProperties, `${path}.*`);
  };
  visit(schema, "");
  return fields;
}

function typeOf(schema: { readonly [keyword: string]: unknown }): string {
  if (schema["x-kubernetes-preserve-unknown-fields"] === true) return "any object";
  if (schema["x-kubernetes-int-or-string"] === true) return "int-or-string";
  return String(schema["type"]);
}

function isConverted({ document }: Crd): boolean {
  const spec = (document as { readonly spec?: unknown }).spec;
  const conversion = isRecord(spec) ? spec["conversion"] : undefined;
  return isRecord(conversion) && conversion["strategy"] === "Webhook";
}

function versionKeyOf({ group, kind }: { readonly group: string; readonly kind: string }): string {
  return `${kind}.${group}`;
}

/**
 * Reports primaries whose schema cannot hold the conditions that the runtime maintains, and controllers that would write the same condition types.
 */
export const checkStatusConditions: Check = (project) => [
  ...checkKinds(project),
  ...project.controllers.flatMap(checkPrefix),
  ...project.controllers.flatMap((controller, index) => checkShared(controller, project.controllers.slice(0, index))),
];

function checkPrefix({ spec: { statusConditions, controller, document } }: ResolvedController): Diagnostic[] {
  if (controller.conditionPrefix === undefined || statusConditions !== undefined) return [];
  return [
    {
      ...STATUS_CONDITIONS.violation,
      message: "conditionPrefix requires statusConditions: managed: the operator writes no conditions",
      ...document.keyAt(["spec", "controller", "conditionPrefix"]),
      hint: "set statusConditions: managed, or remove conditionPrefix",
    },
  ];
}

// The controllers would overwrite each other's conditions forever. Controllers with different selectors may have no primary in common.
function checkShared(controller: ResolvedController, others: readonly ResolvedController[]): Diagnostic[] {
  const { spec, primary } = controller;
  if (spec.statusConditions === undefined || primary === undefined) return [];
  const types = conditionTypesIn(controller);
  const other = others.find(
    (each) =>
      each.spec.statusConditions !== undefined &&
      each.primary?.kind === primary.kind &&
      each.primary.group === primary.group &&
      !mayBeDisjoint(controller, each) &&
      conditionTypesIn(each).some((type) => types.includes(type)),
  );
  if (other === undefined) return [];
  const shared = conditionTypesIn(other).find((type) => types.includes(type));
  return [
    {
      ...STATUS_CONDITIONS.violation,
      message: `controllers ${quote(other.spec.name)} and ${quote(spec.name)} both write condition ${shared} to the status of every ${primary.kind}`,
      ...spec.document.valueAt(["spec", "statusConditions"]),
      hint:
        spec.controller.conditionPrefix === undefined
          ? `set spec.controller.conditionPrefix, for example to ${spec.name.split("-").map(upperFirst).join("")}`
          : "set another conditionPrefix",
    },
  ];
}

// Must match the condition types that the runtime writes.
function conditionTypesIn({ spec: { controller, dependents } }: ResolvedController): string[] {
  const { conditionPrefix: prefix = "" } = controller;
  const ofDependents = [...dependents.keys()].map((name) => `${prefix}${upperFirst(name)}Ready`);
  return [`${prefix}Ready`, `${prefix}Paused`, ...ofDependents];
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function mayBeDisjoint({ spec: one }: ResolvedController, { spec: other }: ResolvedController): boolean {
  return (["labelSelector", "fieldSelector", "namespaces"] as const).some((by) => {
    const [mine, theirs] = [one.controller[by], other.controller[by]];
    return mine !== undefined && theirs !== undefined && JSON.stringify(mine) !== JSON.stringify(theirs);
  });
}

const checkKinds = checkOfController(({ spec: { statusConditions, document }, primary }): Diagnostic[] => {
  if (statusConditions === undefined || primary === undefined) return [];
  const problem = problemOf(primary);
  if (problem === undefined) return [];
  return [
    {
      ...STATUS_CONDITIONS.violation,
      message: `${primary.kind} ${problem}`,
      ...document.valueAt(["spec", "statusConditions"]),
      hint:
        "add status.conditions to its CRD: a list of objects with type, status (one of True, False and Unknown), reason, message,\n" +
        "lastTransitionTime and observedGeneration, which has x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type]",
    },
  ];
});

function problemOf({ schema, definitions, hasStatusSubresource }: ResourceModel): string | undefined {
  if (!hasStatusSubresource) return "has no status subresource";
  const status = schemasOf(resolveRef(schema, definitions).schema, "properties").get("status");
  const fields = status === undefined ? new Map() : schemasOf(resolveRef(status, definitions).schema, "properties");
  const conditions = fields.get("conditions");
  if (conditions === undefined) return "has no status.conditions";
  const list = resolveRef(conditions, definitions).schema;
  const items = ownSchema(list, "items");
  if (items === undefined || !takesStatusCondition(resolveRef(items, definitions).schema))
    return "has status.conditions that do not match metav1.Condition";
  const keys = list["x-kubernetes-list-map-keys"];
  const isShared = list["x-kubernetes-list-type"] === "map" && Array.isArray(keys) && keys.join() === "type";
  return isShared
    ? undefined
    : "has status.conditions that only one field manager can write: the list has no x-kubernetes-list-type: map";
}
