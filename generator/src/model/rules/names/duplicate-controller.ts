import { formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import type { Place } from "../../../input/yaml/yaml-document.js";
import type { Rule } from "../../build/resolved-project.js";

/** Finds controllers that share a name, and with it their files. */
export const checkDuplicateController: Rule = ({ controllers }) => {
  const names = new Map<string, Place>();
  return controllers.flatMap(({ spec: { name, document } }): Diagnostic[] => {
    const place = document.valueAt(["metadata", "name"]);
    const first = names.get(name);
    if (first === undefined) {
      names.set(name, place);
      return [];
    }
    const message = `controller ${quote(name)} is defined twice, first at ${formatPosition(first.position)}`;
    return [{ severity: "error", rule: "duplicate-controller", message, ...place }];
  });
};
