import { quote, type Diagnostic } from "../../../diagnostic.js";
import { reachableFrom } from "../../build/dependency-graph.js";
import {
  dependenciesOf,
  requiredEdgesOf,
  ruleOfController,
  subjectOf,
  type ResolvedController,
  type ResolvedDependent,
} from "../../build/resolved-project.js";
import { conditionsOf } from "../../build/stated-condition.js";
import { mayBeAbsent } from "../../schema/schema-path.js";

/** Warns of dependents that are deleted, with all that depends on them, because a condition of another one does not hold. */
export const checkConditionalDependency = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) =>
    dependenciesOf(dependent).flatMap(({ name, list, isOptional, path }): Diagnostic[] => {
      const needed = controller.dependents.find((each) => each.name === name);
      const reasons = needed === undefined || isOptional ? [] : reasonsFor(needed, { dependent, controller });
      const deleted = deletedWith(dependent, controller);
      if (reasons.length === 0 || deleted.length === 0) return [];
      const advice =
        list === "itemsDependOn" ? "" : `state { name: ${name}, optional: true } to go on without ${quote(name)}, or `;
      return [
        {
          severity: "warning",
          rule: "conditional-dependency",
          message: `${deleted.length === 1 ? "dependent" : "dependents"} ${listOf(deleted)} ${deleted.length === 1 ? "is" : "are"} deleted when ${reasons.join(", or when ")}`,
          about: subjectOf(controller, dependent),
          ...controller.spec.document.valueAt(path),
          hint: `${advice}accept this warning with a reason`,
        },
      ];
    }),
  ),
);

interface Edge {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
}

/** Returns when a dependent is not wanted while the other one, which requires it, may be. */
function reasonsFor(needed: ResolvedDependent, { dependent, controller }: Edge): string[] {
  const conditions = conditionsOnlyOf(needed, dependent);
  const name = needed.spec.ref?.name;
  const isUnnamed = name !== undefined && mayBeUndefined(name, controller.primary) && !isGuarded(dependent, name);
  return [
    ...(conditions.length === 0 ? [] : [`the ${conditions.join(" or the ")} of ${quote(needed.name)} does not hold`]),
    ...(isUnnamed ? [`the ref of ${quote(needed.name)} is undefined (name: ${name.trim()})`] : []),
  ];
}

/** Tells whether the expression for the name of an object has no value for some primaries, where that is plain to see. */
function mayBeUndefined(expression: string, primary: ResolvedController["primary"]): boolean {
  const text = expression.trim();
  if (/:\s*undefined$/.test(text)) return true;
  if (primary === undefined || !/^primary(\??\.[\w$]+)+$/.test(text)) return false;
  return mayBeAbsent(primary, text.split(/\??\./).slice(1));
}

/** Tells whether a condition of a dependent reads the name that it requires: it then has a say about the primaries without one. */
function isGuarded(dependent: ResolvedDependent, name: string): boolean {
  const plain = (text: string) => text.replaceAll("?.", ".");
  return conditionsOf(dependent).some(
    ({ name: slot, condition }) =>
      slot !== "readyPostcondition" &&
      slot !== "deletePostcondition" &&
      slot !== "existing" &&
      condition.kind === "when" &&
      plain(condition.expression).includes(plain(name.trim())),
  );
}

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
