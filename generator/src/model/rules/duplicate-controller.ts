import { formatPosition, quote, type Diagnostic } from "../../diagnostic.js";
import type { Place } from "../../input/yaml-document.js";
import type { Rule } from "../resolved-project.js";

/** Finds controllers that share a name, or one kind of primary: they would reconcile the same objects and share their files. */
export const checkDuplicateController: Rule = ({ controllers }) => {
  const names = new Map<string, Place>();
  const primaries = new Map<string, { place: Place; name: string }>();
  return controllers.flatMap(({ spec: { name, document }, primary }): Diagnostic[] => {
    const place = document.valueAt(["metadata", "name"]);
    const first = names.get(name);
    if (first !== undefined) {
      const message = `controller ${quote(name)} is defined twice, first at ${formatPosition(first.position)}`;
      return [{ severity: "error", rule: "duplicate-controller", message, ...place }];
    }
    names.set(name, place);
    if (primary === undefined) return [];
    const kind = `${primary.kind}.${primary.group}`;
    const other = primaries.get(kind);
    if (other === undefined) {
      primaries.set(kind, { place: document.valueAt(["spec", "primary"]), name });
      return [];
    }
    const message =
      `controllers ${quote(other.name)} and ${quote(name)} have the same primary ${primary.kind}, ` +
      `first at ${formatPosition(other.place.position)}`;
    return [{ severity: "error", rule: "duplicate-primary", message, ...document.valueAt(["spec", "primary"]) }];
  });
};
