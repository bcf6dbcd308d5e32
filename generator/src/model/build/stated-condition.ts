import type {
  ConditionSpec,
  ConditionWord,
  FieldEqualsSpec,
  StatusConditionSpec,
  UntypedKindSpec,
} from "../../input/workflow-spec.js";
import type { Place, YamlDocument, YamlPath } from "../../input/yaml/yaml-document.js";
import type { ConditionName } from "../project-model.js";
import type { ResolvedController, ResolvedDependent, ResolvedEventSource } from "./resolved-project.js";

/** What a condition of a spec says, whether it is a word or a key with arguments. */
export type StatedCondition =
  | { readonly kind: "when"; readonly expression: string }
  | { readonly kind: "function"; readonly name: string }
  | StatedBuiltin;

/** A condition of the runtime that a spec states. */
export type StatedBuiltin =
  | { readonly kind: "builtin"; readonly name: Exclude<ConditionWord, "crdPresent"> }
  | StatedPresence
  | { readonly kind: "builtin"; readonly name: "condition"; readonly status: StatusConditionSpec }
  | { readonly kind: "builtin"; readonly name: "fieldEquals"; readonly field: FieldEqualsSpec };

/** `crdPresent` or its negation. */
export interface StatedPresence {
  readonly kind: "builtin";
  readonly name: "crdPresent";
  /** Default: the kind of the dependent or the event source. */
  readonly of?: string | UntypedKindSpec;
  readonly isNegated?: true;
}

/** A condition of a dependent, and the way to it. */
export interface LocatedCondition {
  readonly name: ConditionName;
  readonly condition: StatedCondition;
  /** The way to the word, or to the value of the key. */
  readonly path: YamlPath;
}

const CONDITIONS: readonly ConditionName[] = [
  "activationCondition",
  "reconcilePrecondition",
  "existing",
  "readyPostcondition",
  "deletePostcondition",
];

/** Returns the conditions of a dependent in the order of a reconcile. */
export function conditionsOf({ spec, path }: Pick<ResolvedDependent, "spec" | "path">): LocatedCondition[] {
  return CONDITIONS.flatMap((name) => {
    const stated = spec[name];
    if (stated === undefined || stated === "refuse" || stated === "adopt") return [];
    const keys = typeof stated === "string" ? [] : Object.keys(stated);
    return [{ name, condition: conditionOf(stated), path: [...path, name, ...keys] }];
  });
}

/** Returns the activationCondition of an event source. */
export function activationOf({ spec }: Pick<ResolvedEventSource, "spec">): StatedPresence | undefined {
  const { activationCondition } = spec;
  return activationCondition === undefined ? undefined : (conditionOf(activationCondition) as StatedPresence);
}

/** A kind that a `crdPresent` names, and the way to it. */
export interface LocatedKind {
  readonly kind: string | UntypedKindSpec;
  readonly path: YamlPath;
}

/** Returns the kinds that the conditions of a controller name by `crdPresent: { of: … }`. */
export function presentKindsOf({ dependents, eventSources }: ResolvedController): LocatedKind[] {
  return [
    ...dependents.flatMap((dependent) => conditionsOf(dependent)),
    ...eventSources.flatMap((source) => {
      const condition = activationOf(source);
      const path = [...source.path, "activationCondition"];
      return condition === undefined ? [] : [{ condition, path: condition.isNegated ? [...path, "not"] : path }];
    }),
  ].flatMap(({ condition, path }) => {
    if (condition.kind !== "builtin" || condition.name !== "crdPresent" || condition.of === undefined) return [];
    const own = path.at(-1) === "crdPresent" ? path : [...path, "crdPresent"];
    return [{ kind: condition.of, path: [...own, "of"] }];
  });
}

function conditionOf(spec: ConditionSpec): StatedCondition {
  if (typeof spec === "string") return { kind: "builtin", name: spec };
  if ("not" in spec) return { ...(conditionOf(spec.not) as StatedPresence), isNegated: true };
  if ("crdPresent" in spec) return { kind: "builtin", name: "crdPresent", of: spec.crdPresent.of };
  if ("when" in spec) return { kind: "when", expression: spec.when };
  if ("function" in spec) return { kind: "function", name: spec.function };
  if ("condition" in spec) return { kind: "builtin", name: "condition", status: spec.condition };
  return { kind: "builtin", name: "fieldEquals", field: spec.fieldEquals };
}

/** Returns where a spec says which condition it means: the word, or the key. */
export function placeOfCondition({ name, path }: LocatedCondition, document: YamlDocument): Place {
  return path.at(-1) === name ? document.valueAt(path) : document.keyAt(path);
}
