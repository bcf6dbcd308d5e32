import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import type { DependentSpec } from "../../../input/workflow-spec.js";
import type { YamlPath } from "../../../input/yaml/yaml-document.js";
import { formatKind, parseKind, type ResourceCatalog } from "../../build/resource-catalog.js";
import { EXTERNAL } from "../../project-memory.js";
import { presentKindsOf } from "../../build/stated-condition.js";
import { ruleOfController, type ResolvedController } from "../../build/resolved-project.js";

/** What the runtime has to do with what it only reads. */
const READING_VERBS = ["get", "list", "watch"];

/** What the runtime has to do with primaries and dependents. */
const WRITING_VERBS = ["get", "list", "patch", "watch"];

/** Finds kinds that neither Kubernetes nor a CRD of the project has, and kinds that cannot be watched or written. */
export const checkUnknownKind = ruleOfController((controller, { catalog }) => {
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
      severity: "error",
      rule: "known-kind",
      message: `${quote(text)} has a schema, so the spec must not describe it by apiVersion, kind, plural and scope`,
      ...check.spec.document.valueAt(path),
      hint: `state resource: ${text}, so that its objects have types`,
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
  const fail = (rule: string, message: string, hint?: { hint: string }): Diagnostic[] => [
    { severity: "error", rule, message, ...document.valueAt(path), ...hint },
  ];
  const resource = catalog.find(parseKind(text));
  const others = resource === undefined ? versionsOf(text, catalog) : [];
  if (resource === undefined && others.length > 0)
    return fail(
      "unknown-version",
      `${quote(text)} does not exist: ${parseKind(text).kind} has no version ${quote(parseKind(text).version)}`,
      others.length === 1 ? { hint: `did you mean ${quote(others[0]!)}?` } : { hint: `state one of ${listed(others)}` },
    );
  if (resource === undefined)
    return fail(
      "unknown-kind",
      `${quote(text)} is neither a built-in kind of Kubernetes 1.36 nor defined in ${searched(catalog)}`,
      nearestKind(text, catalog) ?? definedKinds(catalog),
    );
  if (!resource.isServed)
    return fail(
      "version-not-served",
      `${quote(text)} is not served, so no operator can use it`,
      servedKind(text, catalog),
    );
  const verbs = catalog.verbsOf(resource);
  const missing = neededVerbs.filter((verb) => verbs !== undefined && !verbs.includes(verb));
  if (missing.length === 0) return [];
  return fail(
    "unusable-kind",
    `the API server offers no ${missing.join(", ")} for ${quote(text)}, and an operator needs that`,
  );
}

// A right kind in a wrong group or version is meant more likely than a name that looks alike.
function nearestKind(text: string, { custom, names }: ResourceCatalog): { hint: string } | undefined {
  const inFile = custom.filter(({ crdFile }) => crdFile === text).map(formatKind);
  if (inFile.length > 0) return { hint: `a kind is written group/version/Kind: ${listed(inFile)}` };
  const { kind } = parseKind(text);
  const same = names.filter((name) => parseKind(name).kind.toLowerCase() === kind.toLowerCase());
  if (same.length === 1) return { hint: `did you mean ${same.map(quote).join()}?` };
  return didYouMean(text, same.length > 0 ? same : names);
}

/** Returns the kind in its served versions, if the version is all that is wrong. */
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
  const has = names.length === 0 ? "" : `crds/ has ${listed(names)}; `;
  return { hint: `${has}put the CustomResourceDefinition of a kind that you use into crds/` };
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 10).map(quote).join(", ");
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}

function servedKind(text: string, { custom }: ResourceCatalog): { hint: string } {
  const { group, kind } = parseKind(text);
  const served = custom.filter((other) => other.group === group && other.kind === kind && other.isServed);
  return { hint: `served: ${served.map((resource) => quote(formatKind(resource))).join(", ") || "none"}` };
}

function searched({ crdFiles }: ResourceCatalog): string {
  if (crdFiles.length === 0) return "a CRD: the project has none in crds/";
  const first = crdFiles.slice(0, 5).join(", ");
  return crdFiles.length > 5 ? `${first} and ${crdFiles.length - 5} more files` : first;
}
