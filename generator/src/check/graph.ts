import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import {
  type ResolvedController,
  type ResolvedDependent,
  checkOfController,
  conditionsOf,
  dependenciesOf,
  edgesOf,
  findCycles,
  isCollected,
  isDeletedByOperator,
  nameOfDependency,
  presentNames,
  reachableFrom,
  requiredEdgesOf,
  subjectOf,
} from "../model/resolved-project.js";
import { mayBeAbsent } from "../model/schema.js";
import type { YamlPath } from "../read/yaml/yaml-document.js";
import {
  CLEANUP_INPUT,
  CONDITIONAL_DEPENDENCY,
  DELETION_ORDER,
  DEPENDENCY_CYCLE,
  ITEM_DEPENDENCY,
  UNKNOWN_DEPENDENT,
} from "./rules.js";

/** Reports names in `dependsOn` and `itemsDependOn` that are not dependents. */
export const checkUnknownDependent = checkOfController(({ spec, dependents }) =>
  dependents.flatMap((dependent) => {
    const { document, eventSources } = spec;
    const present = presentNames(spec.moved);
    const others = dependents.map(({ name }) => name).filter((other) => other !== dependent.name);
    return dependenciesOf(dependent).flatMap(({ name, path }): Diagnostic[] => {
      if (name === dependent.name || others.includes(name)) return [];
      return [
        {
          ...UNKNOWN_DEPENDENT.violation,
          message: `dependent ${quote(dependent.name)} depends on ${quote(name)}, which is not found in spec.dependents`,
          ...document.valueAt(path),
          ...(eventSources.has(name)
            ? {
                hint: `remove it: ${quote(name)} is an event source, and event sources are read before any dependent is reconciled`,
              }
            : present.has(name)
              ? { hint: `use ${quote(present.get(name) ?? "")}, its new name` }
              : (didYouMean(name, others) ?? { hint: adviceFor(name, others) })),
        },
      ];
    });
  }),
);

function adviceFor(name: string, others: readonly string[]): string {
  const add = `add ${quote(name)} to spec.dependents, or remove it here`;
  return others.length === 0 ? add : `${add}; other dependents: ${others.map(quote).join(", ")}`;
}

/** Reports dependents that depend on themselves, directly or transitively. */
export const checkDependencyCycle = checkOfController(({ spec: { document }, dependents }) =>
  findCycles(edgesOf(dependents)).map((cycle): Diagnostic => {
    const edge = dependents
      .filter(({ name }) => name === cycle[0])
      .flatMap(dependenciesOf)
      .find(({ name }) => name === cycle[1]);
    return {
      ...DEPENDENCY_CYCLE.violation,
      message: `dependents form a cycle: ${cycle.join(" → ")}`,
      ...document.valueAt(edge?.path ?? []),
      hint: "remove one of these dependencies",
    };
  }),
);

/**
 * Reports `itemsDependOn` entries that have no effect: a side without items, or a dependency that is also in `dependsOn`. Also reports duplicates in
 * `dependsOn`.
 */
export const checkItemDependency = checkOfController(({ spec: { document, dependents } }) =>
  [...dependents].flatMap(([name, { itemsDependOn = [], dependsOn = [], bulk }]) => {
    const path = ["spec", "dependents", name, "itemsDependOn"];
    const names = dependsOn.map(nameOfDependency);
    const twice = names.findIndex((each, index) => names.indexOf(each) < index);
    if (twice !== -1) {
      const place = document.valueAt(["spec", "dependents", name, "dependsOn", twice]);
      const message = `duplicate value ${quote(names[twice]!)} in dependsOn of dependent ${quote(name)}`;
      return [{ ...ITEM_DEPENDENCY.violation, message, ...place, hint: "remove one of the two entries" }];
    }
    const fail = (message: string, index: number | undefined, hint: string): Diagnostic => ({
      ...ITEM_DEPENDENCY.violation,
      message,
      ...(index === undefined ? document.keyAt(path) : document.valueAt([...path, index])),
      hint,
    });
    if (itemsDependOn.length > 0 && bulk === undefined)
      return [
        fail(
          `itemsDependOn requires a bulk dependent: dependent ${quote(name)} has no items`,
          undefined,
          "set bulk: true, or use dependsOn instead of itemsDependOn",
        ),
      ];
    return itemsDependOn.flatMap((other, index) => {
      const needed = dependents.get(other);
      if (needed !== undefined && needed.bulk === undefined)
        return [
          fail(
            `itemsDependOn can list bulk dependents only: dependent ${quote(other)} has no items`,
            index,
            `move ${quote(other)} to dependsOn, or set bulk: true on it`,
          ),
        ];
      if (!names.includes(other)) return [];
      return [
        fail(
          `dependent ${quote(name)} lists ${quote(other)} in both dependsOn and itemsDependOn`,
          index,
          "remove it from one of the two",
        ),
      ];
    });
  }),
);

/** Warns about dependents that are deleted, with all that require them, when a condition of a dependency is not met. */
export const checkConditionalDependency = checkOfController((controller) =>
  controller.dependents.flatMap((dependent) =>
    dependenciesOf(dependent).flatMap(({ name, list, isOptional, path }): Diagnostic[] => {
      const needed = controller.dependents.find((each) => each.name === name);
      const reasons = needed === undefined || isOptional ? [] : reasonsFor(needed, { dependent, controller });
      const deleted = deletedWith(dependent, controller);
      if (reasons.length === 0 || deleted.length === 0) return [];
      const advice =
        list === "itemsDependOn"
          ? ""
          : `use { name: ${name}, optional: true } to keep ${quote(dependent.name)} without ${quote(name)}, or `;
      return [
        {
          ...CONDITIONAL_DEPENDENCY.violation,
          message: `${deleted.length === 1 ? "dependent" : "dependents"} ${listOf(deleted)} ${deleted.length === 1 ? "depends" : "depend"} on ${quote(name)} and ${deleted.length === 1 ? "is" : "are"} deleted whenever its ${reasons.join(", or its ")}`,
          about: subjectOf(controller, dependent),
          ...controller.spec.document.valueAt(path),
          hint: `${advice}accept the warning and give a reason`,
        },
      ];
    }),
  ),
);

interface Edge {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
}

/** Returns the cases in which `needed` is inactive while `dependent`, which requires it, may be active. */
function reasonsFor(needed: ResolvedDependent, { dependent, controller }: Edge): string[] {
  const conditions = conditionsOnlyOf(needed, dependent);
  const name = needed.spec.ref?.name;
  const isUnnamed = name !== undefined && mayBeUndefined(name, controller.primary) && !isGuarded(dependent, name);
  return [
    ...(conditions.length === 0 ? [] : [`${conditions.join(" or ")} is false`]),
    ...(isUnnamed ? [`ref is undefined (name: ${name.trim()})`] : []),
  ];
}

/** Returns whether the name expression of a ref visibly evaluates to undefined for some primaries. */
function mayBeUndefined(expression: string, primary: ResolvedController["primary"]): boolean {
  const text = expression.trim();
  if (/:\s*undefined$/.test(text)) return true;
  if (primary === undefined || !/^primary(\??\.[\w$]+)+$/.test(text)) return false;
  return mayBeAbsent(primary, text.split(/\??\./).slice(1));
}

/** Returns whether a condition of the dependent reads the ref name that it requires, and so handles primaries without one. */
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

/** Returns the conditions that exclude `needed` but not `other`. */
function conditionsOnlyOf(needed: ResolvedDependent, other: ResolvedDependent): string[] {
  const excluding = (dependent: ResolvedDependent) =>
    conditionsOf(dependent).filter(({ name }) => name === "activationCondition" || name === "reconcilePrecondition");
  const shared = new Set(excluding(other).map(({ condition }) => JSON.stringify(condition)));
  return excluding(needed).flatMap(({ name, condition }) => (shared.has(JSON.stringify(condition)) ? [] : name));
}

/** Returns the dependent and all that require it, limited to those that the operator deletes. */
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

/**
 * Reports dependents that would be deleted after their dependencies, and deletePostconditions that are never evaluated.
 *
 * While the primary exists, the operator deletes the objects that are not garbage-collected. The garbage collector acts only afterwards and evaluates
 * no condition.
 */
export const checkDeletionOrder = checkOfController((controller) =>
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
        ...DELETION_ORDER.violation,
        message: `dependent ${quote(name)} would be deleted after ${quote(deleted)}, which it depends on${through}: it is garbage-collected, and ${quote(deleted)} is deleted by the operator`,
        ...controller.spec.document.valueAt(path),
        hint: `set deletion: ordered on ${quote(name)}`,
      },
    ];
  });
}

/** Returns the first of a dependent and its transitive dependencies that the operator deletes. A dependency that is never deleted is skipped. */
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

// While the primary exists, the operator deletes objects whose precondition is not met, and those that require them.
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
    ...DELETION_ORDER.violation,
    message: `${what}: the garbage collector deletes the object, not the operator`,
    ...document.keyAt([...path, ...at]),
    hint: `set deletion: ordered, or remove ${thing}`,
  });
  const { deletePostcondition, operations, bulk } = spec;
  // The operator itself prunes items that desired() no longer returns.
  const hasOperation = operations?.delete !== undefined && bulk === undefined;
  return [
    ...(deletePostcondition === undefined
      ? []
      : [
          fail(
            `deletePostcondition of dependent ${quote(name)} is never evaluated`,
            ["deletePostcondition"],
            "the deletePostcondition",
          ),
        ]),
    ...(hasOperation
      ? [
          fail(
            `operations.delete of dependent ${quote(name)} is never called`,
            ["operations", "delete"],
            "operations.delete",
          ),
        ]
      : []),
  ];
}

/**
 * Warns about objects that may already be deleted when a cleanup needs them. Foreground deletion of the primary and deletion of the namespace remove
 * garbage-collected objects and objects of other clients regardless of the order of the graph.
 */
export const checkCleanupInput = checkOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    const code = cleanupCodeOf(dependent);
    if (code === undefined) return [];
    return dependenciesOf(dependent).flatMap(({ name, path }): Diagnostic[] => {
      const input = controller.dependents.find((each) => each.name === name);
      if (input === undefined || !mayBeGone(input)) return [];
      return [
        {
          ...CLEANUP_INPUT.violation,
          message: `the object of dependent ${quote(name)} may already be deleted when the ${code} of ${quote(dependent.name)} runs: foreground deletion of the primary or deletion of the namespace deletes it first`,
          about: subjectOf(controller, dependent),
          ...controller.spec.document.valueAt(path),
          hint: `if its ${code} needs the object, add to dependent ${quote(name)}: heldForCleanup: true\notherwise accept the warning and give a reason`,
        },
      ];
    });
  }),
);

/** Returns the operation or condition that runs during cleanup and may read the dependencies; undefined if there is none. */
function cleanupCodeOf({ spec }: ResolvedDependent): string | undefined {
  if (!isDeletedByOperator(spec)) return undefined;
  if (spec.external !== undefined || spec.operations?.delete === "own") return "delete";
  const { deletePostcondition: condition } = spec;
  const reads =
    typeof condition === "object" &&
    ("function" in condition || ("when" in condition && /\bsecondary\b/.test(condition.when)));
  return reads ? "deletePostcondition" : undefined;
}

function mayBeGone({ spec }: ResolvedDependent): boolean {
  const isOfOthers = spec.external === undefined && spec.mode === "readOnly";
  return spec.heldForCleanup !== true && (isOfOthers || isCollected(spec));
}
