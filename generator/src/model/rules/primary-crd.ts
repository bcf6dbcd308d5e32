import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import type { PrimarySpec } from "../../input/workflow-spec.js";
import type { ResourceModel } from "../project-model.js";
import { formatKind, type ResourceCatalog } from "../build/resource-catalog.js";
import { ruleOfController } from "../build/resolved-project.js";
import { compareVersions } from "../schema/version-order.js";

/** Finds primaries whose file does not define exactly one kind, or lacks the version that is asked for. */
export const checkPrimaryCrd = ruleOfController(({ spec: { primary, document } }, { catalog }): Diagnostic[] => {
  const { crd, version } = primary;
  if (crd === undefined) return [];
  const fail = (rule: string, field: keyof PrimarySpec, message: string): Diagnostic => ({
    severity: "error",
    rule,
    message,
    ...document.valueAt(["spec", "primary", field]),
  });
  const defined = resourcesIn(crd, catalog);
  const kinds = new Set(defined.map(({ group, kind }) => `${kind}.${group}`));
  if (kinds.size === 0) return [fail("not-a-crd", "crd", `${quote(crd)} holds no CustomResourceDefinition`)];
  const served = defined.filter(({ isServed }) => isServed);
  if (kinds.size > 1) {
    const choices = served.map((resource) => formatKind(resource)).join(", ");
    const message = `${quote(crd)} defines ${kinds.size} kinds; name one with "resource" instead of "crd"`;
    return [{ ...fail("several-crds", "crd", message), hint: `one of ${choices}` }];
  }
  if (selectPrimary(primary, catalog) !== undefined) return [];
  if (version === undefined) return [fail("version-not-served", "crd", `${quote(crd)} serves no version`)];
  const isDefined = defined.some((resource) => resource.version === version);
  const message = `${quote(crd)} ${isDefined ? "does not serve" : "has no"} version ${quote(version)}`;
  const names = served.map((resource) => resource.version);
  const hint = didYouMean(version, names) ?? { hint: `it serves ${names.sort(compareVersions).map(quote).join(", ")}` };
  return [{ ...fail(isDefined ? "version-not-served" : "unknown-version", "version", message), ...hint }];
});

/**
 * Returns the version that a primary with a CRD file stands for; undefined if there is none.
 *
 * Unless stated it is the stored version, or the served one that Kubernetes prefers if the stored one is not served.
 */
export function selectPrimary({ crd = "", version }: PrimarySpec, catalog: ResourceCatalog): ResourceModel | undefined {
  const served = resourcesIn(crd, catalog).filter(({ isServed }) => isServed);
  if (new Set(served.map(({ group, kind }) => `${kind}.${group}`)).size > 1) return undefined;
  if (version !== undefined) return served.find((resource) => resource.version === version);
  const preferred = [...served].sort((left, right) => compareVersions(left.version, right.version));
  return served.find(({ isStorage }) => isStorage) ?? preferred[0];
}

function resourcesIn(file: string, { custom }: ResourceCatalog): ResourceModel[] {
  return custom.filter(({ crdFile }) => crdFile === normalPath(file));
}

/** Returns a path of a spec as the paths of CRD files are written: `./crds/a.yaml` becomes `crds/a.yaml`. */
export function normalPath(path: string): string {
  const steps: string[] = [];
  for (const step of path.split("/")) {
    if (step === "..") steps.pop();
    else if (step !== "." && step !== "") steps.push(step);
  }
  return steps.join("/");
}
