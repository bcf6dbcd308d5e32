import { quote, type Diagnostic } from "../../diagnostic.js";
import type { BuiltinConditionName, ConditionSpec } from "../../input/workflow-spec.js";
import type { ConditionName } from "../project-model.js";
import {
  conditionsOf,
  ruleOfController,
  type LocatedCondition,
  type ResolvedController,
  type ResolvedDependent,
} from "../build/resolved-project.js";

// `deleted` holds before the first creation, so anywhere else it would hold at the wrong time; what looks at the object never holds before.
const USES: { readonly [K in BuiltinConditionName]: readonly ConditionName[] } = {
  ready: ["readyPostcondition"],
  deleted: ["deletePostcondition"],
  crdPresent: ["activationCondition", "reconcilePrecondition"],
  condition: ["readyPostcondition"],
  fieldEquals: ["readyPostcondition"],
};

/** What each takes besides its name. */
const ARGUMENTS: { readonly [K in BuiltinConditionName]?: { readonly [name: string]: "needed" | "optional" } } = {
  condition: { type: "needed", status: "optional" },
  fieldEquals: { path: "needed", value: "needed" },
};

/** Those that are about objects of Kubernetes alone. */
const OF_KUBERNETES: ReadonlySet<string> = new Set(["ready", "crdPresent", "condition"]);

/** Finds built-in conditions where they make no sense, and arguments that are missing or no use. */
export const checkBuiltinCondition = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) =>
    conditionsOf(dependent).flatMap((located) => [
      ...checkUse(located, { dependent, controller }),
      ...checkArguments(located, controller),
    ]),
  ),
);

interface Owner {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
}

function checkUse({ name, condition: { builtin }, path }: LocatedCondition, { dependent, controller }: Owner) {
  if (builtin === undefined) return [];
  const uses = USES[builtin];
  const isExternal = dependent.spec.external !== undefined;
  const fail = (message: string, hint: string): Diagnostic[] => [
    {
      severity: "error",
      rule: "builtin-condition",
      message,
      ...controller.spec.document.valueAt([...path, "builtin"]),
      hint,
    },
  ];
  if (isExternal && OF_KUBERNETES.has(builtin))
    return fail(
      `the built-in condition ${quote(builtin)} is about objects of Kubernetes, and ${quote(dependent.name)} is external`,
      "state when: or function: instead",
    );
  if (uses.includes(name)) return [];
  const suited = (Object.keys(USES) as BuiltinConditionName[]).filter((other) => USES[other].includes(name));
  return fail(
    `the built-in condition ${quote(builtin)} is ${withArticle(uses.join(" or "))}, not ${withArticle(name)}`,
    `for ${withArticle(name)} there is ${suited.map(quote).join(", ")}`,
  );
}

function checkArguments({ condition, path }: LocatedCondition, { spec: { document } }: ResolvedController) {
  const { builtin, when: _when, function: _function, ...given } = condition;
  const known = (builtin === undefined ? undefined : ARGUMENTS[builtin]) ?? {};
  const what = builtin === undefined ? "this condition" : `the built-in condition ${quote(builtin)}`;
  const missing = Object.keys(known).filter(
    (name) => known[name] === "needed" && given[name as keyof ConditionSpec & keyof typeof given] === undefined,
  );
  return [
    ...missing.map((name): Diagnostic => ({
      severity: "error",
      rule: "builtin-condition",
      message: `${what} lacks ${quote(name)}`,
      ...document.valueAt([...path, "builtin"]),
    })),
    ...Object.keys(given)
      .filter((name) => !Object.hasOwn(known, name))
      .map((name): Diagnostic => ({
        severity: "error",
        rule: "builtin-condition",
        message: `${what} takes no ${quote(name)}`,
        ...document.keyAt([...path, name]),
        hint: "remove it",
      })),
  ];
}

function withArticle(condition: string): string {
  return `${condition.startsWith("a") ? "an" : "a"} ${condition}`;
}
