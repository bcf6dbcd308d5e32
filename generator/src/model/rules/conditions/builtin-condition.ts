import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { BuiltinConditionName } from "../../../input/workflow-spec.js";
import type { ConditionName } from "../../project-model.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../../build/resolved-project.js";
import { conditionsOf, placeOfCondition, type LocatedCondition } from "../../build/stated-condition.js";

// `deleted` holds before the first creation, so anywhere else it would hold at the wrong time; what looks at the object never holds before.
const USES: { readonly [K in BuiltinConditionName]: readonly ConditionName[] } = {
  ready: ["readyPostcondition"],
  bound: ["readyPostcondition"],
  deleted: ["deletePostcondition"],
  crdPresent: ["activationCondition", "reconcilePrecondition"],
  condition: ["readyPostcondition", "existing"],
  fieldEquals: ["readyPostcondition", "existing"],
};

/** Those that are about objects of Kubernetes alone. */
const OF_KUBERNETES: ReadonlySet<string> = new Set(["ready", "bound", "crdPresent", "condition"]);

/** Finds built-in conditions where they make no sense, or that do not suit external dependents. */
export const checkBuiltinCondition = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) =>
    conditionsOf(dependent).flatMap((located) => checkUse(located, { dependent, controller })),
  ),
);

interface Owner {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
}

function checkUse(located: LocatedCondition, { dependent, controller }: Owner): Diagnostic[] {
  const { name, condition } = located;
  if (condition.kind !== "builtin") return [];
  const builtin = condition.name;
  const uses = USES[builtin];
  const isExternal = dependent.spec.external !== undefined;
  const fail = (message: string, hint: string): Diagnostic[] => [
    {
      severity: "error",
      rule: "builtin-condition",
      message,
      ...placeOfCondition(located, controller.spec.document),
      hint,
    },
  ];
  const isAboutOther = condition.name === "crdPresent" && condition.of !== undefined;
  if (isExternal && OF_KUBERNETES.has(builtin) && !isAboutOther)
    return fail(
      `condition ${quote(builtin)} reads an object of Kubernetes, but dependent ${quote(dependent.name)} is external`,
      builtin === "crdPresent" ? "use crdPresent: { of: <kind> }, when: or function:" : "use when: or function:",
    );
  const { resource } = dependent;
  if (builtin === "bound" && resource !== undefined && !isVolume(resource))
    return fail(
      `condition "bound" is about volumes, but dependent ${quote(dependent.name)} is a ${resource.kind}`,
      "use ready",
    );
  if (uses.includes(name)) return [];
  const suited = (Object.keys(USES) as BuiltinConditionName[]).filter((other) => USES[other].includes(name));
  return fail(
    `condition ${quote(builtin)} is ${withArticle(uses.join(" or "))}, not ${withArticle(name)}`,
    `${withArticle(name)} may be ${[...suited, "when", "function"].join(", ")}`,
  );
}

function isVolume({ group, kind }: { readonly group: string; readonly kind: string }): boolean {
  return group === "" && (kind === "PersistentVolumeClaim" || kind === "PersistentVolume");
}

function withArticle(condition: string): string {
  return `${condition.startsWith("a") ? "an" : "a"} ${condition}`;
}
