import { quote, type Diagnostic } from "../../diagnostic.js";
import { reachableFrom } from "../build/dependency-graph.js";
import {
  dependenciesOf,
  requiredEdgesOf,
  ruleOfController,
  subjectOf,
  type ResolvedController,
  type ResolvedDependent,
} from "../build/resolved-project.js";
import { conditionsOf } from "../build/stated-condition.js";

/** Warns of dependents that are deleted, with all that depends on them, because a condition of another one does not hold. */
export const checkConditionalDependency = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) =>
    dependenciesOf(dependent).flatMap(({ name, list, isOptional, path }): Diagnostic[] => {
      const needed = controller.dependents.find((each) => each.name === name);
      const conditions = needed === undefined || isOptional ? [] : conditionsOnlyOf(needed, dependent);
      const deleted = deletedWith(dependent, controller);
      if (conditions.length === 0 || deleted.length === 0) return [];
      const advice =
        list === "itemsDependOn" ? "" : `state { name: ${name}, optional: true } to go on without ${quote(name)}, or `;
      return [
        {
          severity: "warning",
          rule: "conditional-dependency",
          message: `${deleted.length === 1 ? "dependent" : "dependents"} ${listOf(deleted)} ${deleted.length === 1 ? "is" : "are"} deleted when the ${conditions.join(" or the ")} of ${quote(name)} does not hold`,
          about: subjectOf(controller, dependent),
          ...controller.spec.document.valueAt(path),
          hint: `${advice}accept this warning with a reason`,
        },
      ];
    }),
  ),
);

/** Returns the conditions that exclude a dependent, and not the other one as well. */
function conditionsOnlyOf(needed: ResolvedDependent, other: ResolvedDependent): string[] {
  const excluding = (dependent: ResolvedDependent) =>
    conditionsOf(dependent).filter(({ name }) => name === "activationCondition" || name === "reconcilePrecondition");
  const shared = new Set(excluding(other).map(({ condition }) => JSON.stringify(condition)));
  return excluding(needed).flatMap(({ name, condition }) => (shared.has(JSON.stringify(condition)) ? [] : name));
}

/** Returns the names of a dependent and of all that cannot exist without it, of what the operator deletes. */
function deletedWith({ name }: ResolvedDependent, { dependents }: ResolvedController): string[] {
  const edges = requiredEdgesOf(dependents);
  const isDeleted = ({ mode, external }: ResolvedDependent["spec"]) =>
    mode !== "readOnly" && (external?.capabilities?.includes("delete") ?? true);
  return dependents
    .filter((each) => each.name === name || reachableFrom(edges, each.name).has(name))
    .flatMap((each) => (isDeleted(each.spec) ? each.name : []));
}

function listOf(names: readonly string[]): string {
  const quoted = names.map(quote);
  return quoted.length === 1 ? quoted[0]! : `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
}
