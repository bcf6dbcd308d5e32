import type { ApiClient } from "@gen-operator/runtime";
import { compareCrds } from "../diff/compare-crds.js";
import { type ControllerModel, type ProjectModel, type ResourceModel, kindsOf } from "../model/project-model.js";
import { pathOfCrd } from "../read/cluster.js";
import { type Crd, readCrds } from "../read/crd/read-crds.js";
import { type Check, ok, skipped } from "./check.js";

const NAME = "kinds";
const TIMEOUT_MS = 30_000;
/** Maximum number of differences listed per CRD. */
const MOST_LISTED = 20;

/** Compares the kinds that a project uses with those of the cluster: whether each is served, and whether its CRD has the same schema. */
export async function checkKinds(client: ApiClient, model: ProjectModel, crds: readonly Crd[]): Promise<Check[]> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const used = usedKinds(model.controllers);
  const served = await Promise.all(
    used.map(async ({ resource }) =>
      client.isServed({ ...resource, apiVersion: apiVersionOf(resource), schema: {} }, { signal }),
    ),
  );
  const wanted = crds.filter((crd) => used.some(({ resource }) => nameOf(resource) === nameOf(crd)));
  const live = await Promise.all(wanted.map((crd) => readClusterCrd(client, nameOf(crd), signal)));
  const missing = wanted.filter((_, index) => live[index]?.kind === "missing").map(nameOf);
  const checks = [
    ...unserved(used, served).filter(({ name }) => !missing.some((each) => name === `kind ${each}`)),
    ...wanted.flatMap((crd, index) => checkCrd(crd, live[index]!, used)),
  ];
  return checks.length > 0
    ? checks
    : [ok(NAME, `the cluster serves all ${used.length} kinds of the project, with the same schemas`)];
}

interface UsedKind {
  readonly resource: ResourceModel;
  readonly isPrimary: boolean;
  /** True if an activation condition makes the kind optional. */
  readonly isOptional: boolean;
}

/** Returns the distinct kinds of the primaries, dependents, and event sources in the cluster of the operator. */
function usedKinds(controllers: readonly ControllerModel[]): UsedKind[] {
  const used = new Map<string, UsedKind>();
  const add = (kind: UsedKind) => {
    const key = `${nameOf(kind.resource)}/${kind.resource.version}`;
    const known = used.get(key);
    const isPrimary = kind.isPrimary || known?.isPrimary === true;
    used.set(key, { ...kind, isPrimary, isOptional: kind.isOptional && known?.isOptional !== false });
  };
  for (const { primary, dependents, eventSources } of controllers) {
    add({ resource: primary, isPrimary: true, isOptional: false });
    for (const dependent of dependents) {
      if ("cluster" in dependent && dependent.cluster !== undefined) continue;
      const isOptional = dependent.conditions.activationCondition !== undefined;
      for (const resource of kindsOf(dependent)) add({ resource, isPrimary: false, isOptional });
    }
    for (const source of eventSources)
      if (source.kind === "informer")
        add({
          resource: source.resource,
          isPrimary: false,
          isOptional: source.activationCondition !== undefined,
        });
  }
  return [...used.values()];
}

function unserved(used: readonly UsedKind[], served: readonly boolean[]): Check[] {
  return used
    .filter((_, index) => served[index] !== true)
    .map(({ resource, isOptional }) => ({
      name: `kind ${nameOf(resource)}`,
      outcome: isOptional ? "warning" : "failed",
      message: `the cluster does not serve ${apiVersionOf(resource)} ${resource.kind}`,
      advice: isOptional
        ? "do nothing if the dependent is meant to be inactive here"
        : resource.isCustom
          ? "use a version that the cluster serves"
          : "use a cluster of a Kubernetes version that serves it",
    }));
}

function missingCrd(crd: Crd, used: readonly UsedKind[]): Check {
  const name = nameOf(crd);
  const kinds = used.filter(({ resource }) => nameOf(resource) === name);
  const isPrimary = kinds.some((kind) => kind.isPrimary);
  const isOptional = kinds.every((kind) => kind.isOptional);
  return {
    name: `CRD ${name}`,
    outcome: isOptional ? "warning" : "failed",
    message: "CRD not found in the cluster",
    advice: isPrimary
      ? `run kubectl apply -f deploy/generated/crds/${name}.yaml`
      : "install the operator that provides it",
  };
}

function checkCrd(crd: Crd, live: LiveCrd, used: readonly UsedKind[]): Check[] {
  if (live.kind === "missing") return [missingCrd(crd, used)];
  if (live.kind === "unreadable") return [skipped(`CRD ${nameOf(crd)}`, live.message, live.advice)];
  return live.crd === undefined ? [] : compare(crd, live.crd, used);
}

function compare(crd: Crd, other: Crd, used: readonly UsedKind[]): Check[] {
  const name = nameOf(crd);
  const changes = compareCrds([crd], [other]);
  if (changes.length === 0) return [];
  const kinds = used.filter(({ resource }) => nameOf(resource) === name);
  const versions = new Set(kinds.map(({ resource }) => `${name} ${resource.version}`));
  // Only changes of the CRD itself and of the used versions can break the project.
  const isBreaking = changes.some(
    ({ effect, subject }) => effect === "breaking" && (subject === name || versions.has(subject)),
  );
  const isPrimary = kinds.some((kind) => kind.isPrimary);
  const lines = changes.map(({ subject, path, message }) =>
    [
      ...(subject === name ? [] : [subject.slice(name.length + 1)]),
      ...(path === undefined ? [] : [path]),
      message,
    ].join(": "),
  );
  const more = lines.length - MOST_LISTED;
  return [
    {
      name: `CRD ${name}`,
      outcome: isBreaking ? "failed" : "warning",
      message: "the cluster and the project have different definitions; changes from the project to the cluster:",
      details: more > 1 ? [...lines.slice(0, MOST_LISTED), `and ${more} more`] : lines,
      advice: isPrimary
        ? `run kubectl apply -f deploy/generated/crds/${name}.yaml, or copy the definition of the cluster to ${crd.file} and run npx gen-operator generate`
        : `copy the definition of the cluster to ${crd.file} and run npx gen-operator generate`,
    },
  ];
}

/** A CRD of the cluster. `crd` is absent if its definition cannot be compared. */
type LiveCrd =
  | { readonly kind: "found"; readonly crd?: Crd }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly message: string; readonly advice?: string };

// Reads the CRD by name: the role of an operator may get its own CRDs, but not list all.
async function readClusterCrd(client: ApiClient, name: string, signal: AbortSignal): Promise<LiveCrd> {
  const { isApiError, messageOf } = await import("@gen-operator/runtime");
  try {
    const text = await client.readPath(pathOfCrd(name), { signal });
    if (text === undefined) return { kind: "missing" };
    // The API server has accepted the definition, so diagnostics of this reader do not matter.
    const [crd] = readCrds({ file: `cluster/${name}.json`, text }).crds;
    return { kind: "found", ...(crd !== undefined && { crd }) };
  } catch (error) {
    const advice = `ask for permission to get customresourcedefinition ${name}`;
    return { kind: "unreadable", message: messageOf(error), ...(isApiError(error, 403) && { advice }) };
  }
}

function nameOf({ plural, group }: Pick<ResourceModel, "plural" | "group">): string {
  return group === "" ? plural : `${plural}.${group}`;
}

function apiVersionOf({ group, version }: ResourceModel): string {
  return group === "" ? version : `${group}/${version}`;
}
