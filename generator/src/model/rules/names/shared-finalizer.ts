import { formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import { isDeletedByOperator, type ResolvedController, type Rule } from "../../build/resolved-project.js";

/**
 * Finds controllers that would clean up under one finalizer: either would let a primary go before the other has cleaned up.
 *
 * That a reconciler has a cleanup is for its code to say; the operator, which sees it, does not start then.
 */
export const checkSharedFinalizer: Rule = ({ controllers }) => {
  const known = new Map<string, ResolvedController[]>();
  return controllers.flatMap((controller): Diagnostic[] => {
    const { primary, spec } = controller;
    if (primary === undefined || spec.controller.onAllEvents === true) return [];
    const { group, plural } = primary;
    const qualified = group === "" ? plural : `${plural}.${group}`;
    const domain = qualified.includes(".") ? qualified : `${qualified}.gen-operator.dev`;
    const { finalizer = `${domain}/finalizer` } = spec.controller;
    const key = JSON.stringify([qualified, finalizer]);
    const others = known.get(key) ?? [];
    known.set(key, [...others, controller]);
    const other = others.find((each) => cleansUp(each) || cleansUp(controller));
    if (other === undefined) return [];
    const path = spec.controller.finalizer === undefined ? ["metadata", "name"] : ["spec", "controller", "finalizer"];
    const place = formatPosition(other.spec.document.valueAt(["metadata", "name"]).position);
    return [
      {
        severity: "error",
        rule: "shared-finalizer",
        message: `controllers ${quote(other.spec.name)} and ${quote(spec.name)} share the finalizer ${quote(finalizer)} on ${plural}: the first to remove it ends the cleanup of the other; first at ${place}`,
        ...spec.document.valueAt(path),
        hint: `in spec.controller state finalizer: ${domain}/${spec.name}`,
      },
    ];
  });
};

/** Tells whether a spec says that a controller has something to do before its primaries go. */
function cleansUp({ spec: { controller, dependents, removed } }: ResolvedController): boolean {
  if (controller.cleanupPolicy === "sweep") return false;
  const isHeld = [...dependents.values()].some(({ heldForCleanup }) => heldForCleanup === true);
  const isOrphaned = [...dependents.values()].some(
    ({ mode, deletion }) => mode !== "readOnly" && deletion === "orphan",
  );
  const isUntied = [...removed.values()].some(({ deletion }) => deletion === "orphan");
  return isHeld || isOrphaned || isUntied || [...dependents.values()].some(isDeletedByOperator);
}
