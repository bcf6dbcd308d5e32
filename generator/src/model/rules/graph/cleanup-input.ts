import { quote, type Diagnostic } from "../../../diagnostic.js";
import {
  dependenciesOf,
  isCollected,
  isDeletedByOperator,
  ruleOfController,
  subjectOf,
  type ResolvedDependent,
} from "../../build/resolved-project.js";

/**
 * Warns of objects that a cleanup may need when they are gone: foreground deletion of the primary, and deletion of the namespace, delete what
 * the garbage collector owns, or somebody else's object, without regard to the order of the graph.
 */
export const checkCleanupInput = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    const code = cleanupCodeOf(dependent);
    if (code === undefined) return [];
    return dependenciesOf(dependent).flatMap(({ name, path }): Diagnostic[] => {
      const input = controller.dependents.find((each) => each.name === name);
      if (input === undefined || !mayBeGone(input)) return [];
      return [
        {
          severity: "warning",
          rule: "cleanup-input",
          message: `the object of dependent ${quote(name)} may already be deleted when the ${code} of ${quote(dependent.name)} runs: foreground deletion of the primary or deletion of the namespace deletes it first`,
          about: subjectOf(controller, dependent),
          ...controller.spec.document.valueAt(path),
          hint: `if its ${code} needs the object, add to dependent ${quote(name)}: heldForCleanup: true\notherwise accept the warning and give a reason`,
        },
      ];
    });
  }),
);

/** Returns the code of a dependent that runs in a cleanup and may read what the dependent waits for; undefined if there is none. */
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
