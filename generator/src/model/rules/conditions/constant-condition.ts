import { quote, type Diagnostic } from "../../../diagnostic.js";
import { constantValueOf } from "../../expression/constant-value.js";
import { digestOf } from "../../../parts/digest.js";
import type { PartMemory } from "../../../parts/part-memory.js";
import { reachableFrom } from "../../build/dependency-graph.js";
import type { ConditionName } from "../../project-model.js";
import { formatKind, parseKind, type ResourceCatalog } from "../../build/resource-catalog.js";
import {
  edgesOf,
  requiredEdgesOf,
  ruleOfController,
  subjectOf,
  type ResolvedController,
  type ResolvedDependent,
  type Rule,
} from "../../build/resolved-project.js";
import { conditionsOf, placeOfCondition, type LocatedCondition } from "../../build/stated-condition.js";

/** What it means that a condition never holds. */
export const NEVER: { readonly [K in ConditionName]: (name: string) => string } = {
  activationCondition: (name) => `dependent ${name} never takes part`,
  reconcilePrecondition: (name) => `the operator never creates dependent ${name}`,
  readyPostcondition: (name) => `the operator never creates what depends on ${name}`,
  existing: (name) => `dependent ${name} never adopts an object`,
  deletePostcondition: (name) => `the operator never deletes what ${name} depends on, nor does the primary go`,
};

/** Warns of conditions that are the same whatever happens: nodes that can never activate, and conditions without effect. */
export function checkConstantCondition(parts: PartMemory): Rule {
  const decide: Decide = (when, absent = new Set()) =>
    parts.recall("constant", digestOf(when, ...[...absent].sort()), () => {
      const constant = constantValueOf(when, absent);
      return constant === undefined ? "depends" : constant.value ? "holds" : "fails";
    });
  return ruleOfController((controller, { catalog }) =>
    controller.dependents.flatMap((dependent) =>
      conditionsOf(dependent).flatMap((located): Diagnostic[] => {
        const { document } = controller.spec;
        const problem = problemOf(located, { dependent, controller, catalog, decide });
        if (problem === undefined) return [];
        return [
          {
            severity: "warning",
            rule: "constant-condition",
            message: problem,
            about: subjectOf(controller, dependent),
            ...(located.condition.kind === "when"
              ? document.valueAt(located.path)
              : placeOfCondition(located, document)),
          },
        ];
      }),
    ),
  );
}

/** Tells what an expression comes to whenever what the texts in `absent` stand for is not there. Default: nothing */
type Decide = (when: string, absent?: ReadonlySet<string>) => "holds" | "fails" | "depends";

interface Around {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
  readonly catalog: ResourceCatalog;
  readonly decide: Decide;
}

function problemOf(
  { name: kind, condition }: LocatedCondition,
  { dependent, controller, catalog, decide }: Around,
): string | undefined {
  const { name, resource } = dependent;
  if (condition.kind === "when") {
    const { expression: when } = condition;
    const always = decide(when);
    if (always === "holds" && kind === "existing")
      return "the condition of existing is always true: set existing: adopt";
    if (always === "holds") return `the ${kind} always holds, so it has no effect`;
    if (always === "fails" && kind === "existing")
      return "the condition of existing is always false: set existing: refuse";
    if (always === "fails") return `the ${kind} never holds, so ${NEVER[kind](quote(name))}`;
    const later = laterThan(dependent, controller, kind);
    const isStuck = later.size > 0 && decide(when, withoutTexts(later, name)) === "fails";
    return isStuck ? `${describeLater(when, name, { later, decide })}, so ${NEVER[kind](quote(name))}` : undefined;
  }
  if (condition.name !== "crdPresent" || condition.kind !== "builtin") return undefined;
  const { of, isNegated } = condition;
  const asked = of === undefined ? resource : typeof of === "string" ? catalog.find(parseKind(of)) : undefined;
  if (asked === undefined || asked.isCustom) return undefined;
  return `${isNegated ? "not: crdPresent never" : "crdPresent always"} holds: ${formatKind(asked)} is a kind of Kubernetes 1.36 and needs no CustomResourceDefinition`;
}

/** Returns the dependents that are made only after a condition of one holds: itself, and what waits for it. */
function laterThan(
  { name }: ResolvedDependent,
  { dependents }: ResolvedController,
  kind: ConditionName,
): ReadonlySet<string> {
  // An object may be found whatever the operator has made.
  if (kind === "deletePostcondition" || kind === "existing") return new Set();
  // What waits for it only if it is wanted comes before it as long as it is not.
  const edges = kind === "readyPostcondition" ? edgesOf(dependents) : requiredEdgesOf(dependents);
  const isLater = (other: string) =>
    other === name ? kind !== "readyPostcondition" : reachableFrom(edges, other).has(name);
  return new Set(dependents.filter((each) => isMadeHere(each) && isLater(each.name)).map((each) => each.name));
}

// What others make may be there before, and of a bulk dependent there is always a record.
function isMadeHere({ spec: { external, mode, existing, bulk } }: ResolvedDependent): boolean {
  return external === undefined && mode !== "readOnly" && (existing ?? "refuse") === "refuse" && bulk === undefined;
}

function describeLater(
  when: string,
  name: string,
  { later, decide }: Pick<Around, "decide"> & { readonly later: ReadonlySet<string> },
): string {
  const needed = [...later].find((each) => decide(when, withoutTexts(new Set([each]), name)) === "fails");
  if (needed === name) return `the condition never holds before ${quote(name)} exists`;
  const waiting = needed === undefined ? "what" : `${quote(needed)}, which`;
  return `the condition never holds before ${waiting} waits for ${quote(name)}${needed === undefined ? "" : ","} exists`;
}

/** Returns the texts that stand for dependents that are not there, in a condition of one of them. */
function withoutTexts(absent: ReadonlySet<string>, name: string): ReadonlySet<string> {
  return new Set([...absent].flatMap((each) => [`secondary.${each}`, ...(each === name ? ["live"] : [])]));
}
