import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { YamlPath } from "../../../input/yaml/yaml-document.js";
import { reachableFrom } from "../../build/dependency-graph.js";
import {
  dependenciesOf,
  edgesOf,
  isCollected,
  isDeletedByOperator,
  requiredEdgesOf,
  ruleOfController,
  type ResolvedController,
  type ResolvedDependent,
} from "../../build/resolved-project.js";

/**
 * Finds dependents that would be deleted after what they depend on, and deletePostconditions that are never asked.
 *
 * The operator deletes what is not garbage-collected while the primary still exists; the garbage collector acts only afterwards, and asks
 * nobody.
 */
export const checkDeletionOrder = ruleOfController((controller) =>
  controller.dependents
    .filter(({ spec }) => isCollected(spec))
    .flatMap((dependent) => [
      ...checkEdges(dependent, controller),
      ...(canBeDeletedInTime(dependent, controller) ? [] : checkNeverDeleted(dependent, controller)),
    ]),
);

function checkEdges(dependent: ResolvedDependent, controller: ResolvedController) {
  const { name } = dependent;
  return dependenciesOf(dependent).flatMap(({ name: other, path }): Diagnostic[] => {
    const deleted = deletedBehind(other, controller);
    if (deleted === undefined) return [];
    const through = deleted === other ? "" : ` through ${quote(other)}`;
    return [
      {
        severity: "error",
        rule: "deletion-order",
        message: `the operator deletes ${quote(deleted)} before the garbage collector deletes ${quote(name)}, which depends on it${through}`,
        ...controller.spec.document.valueAt(path),
        hint: `state deletion: ordered for ${quote(name)}, too, and the operator deletes it first`,
      },
    ];
  });
}

/** Returns the first of a dependent and its dependencies that the operator deletes. A dependent that is never deleted delays no deletion. */
function deletedBehind(start: string, { spec, dependents }: ResolvedController): string | undefined {
  const edges = edgesOf(dependents);
  const seen = new Set([start]);
  for (const name of seen) {
    const needed = spec.dependents.get(name);
    if (needed === undefined || isCollected(needed)) continue;
    if (isDeletedByOperator(needed)) return name;
    for (const next of edges.get(name) ?? []) seen.add(next);
  }
  return undefined;
}

// While the primary lives, the operator deletes what must not exist: where a precondition does not hold, and what depends on that.
function canBeDeletedInTime({ name, spec }: ResolvedDependent, { dependents }: ResolvedController): boolean {
  if (spec.reconcilePrecondition !== undefined) return true;
  const reached = reachableFrom(requiredEdgesOf(dependents), name);
  return dependents.some(
    (other) =>
      reached.has(other.name) &&
      (other.spec.reconcilePrecondition !== undefined || other.spec.activationCondition !== undefined),
  );
}

function checkNeverDeleted(
  { name, spec, path }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
): Diagnostic[] {
  const fail = (what: string, at: YamlPath, thing: string): Diagnostic => ({
    severity: "error",
    rule: "deletion-order",
    message: `${what}: the garbage collector deletes it, and no condition makes the operator do so`,
    ...document.keyAt([...path, ...at]),
    hint: `state deletion: ordered, or remove the ${thing}`,
  });
  const { deletePostcondition, operations, bulk } = spec;
  // Items that desired() does not return any more are deleted by the operator.
  const hasOperation = operations?.delete !== undefined && bulk === undefined;
  return [
    ...(deletePostcondition === undefined
      ? []
      : [
          fail(
            `the operator never asks the deletePostcondition of dependent ${quote(name)}`,
            ["deletePostcondition"],
            "condition",
          ),
        ]),
    ...(hasOperation
      ? [fail(`operations.delete of dependent ${quote(name)} has no effect`, ["operations", "delete"], "operation")]
      : []),
  ];
}
