import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController } from "../../build/resolved-project.js";
import { fieldAt } from "../../schema/schema-path.js";

/** Reports released fields that the kind does not have. */
export const checkReleasedField = ruleOfController(({ spec: { document }, dependents }) =>
  dependents.flatMap(({ resource, spec: { released = [] }, path }) =>
    released.flatMap((text, index): Diagnostic[] => {
      const found = resource === undefined ? undefined : fieldAt(resource, text.split("."));
      if (found?.kind !== "unknown") return [];
      const before = text.split(".").slice(0, found.depth);
      const candidates = found.known.map((name) => [...before, name].join("."));
      const message = `${resource!.kind} has no field ${quote(text)} that can be released`;
      const hint = didYouMean(text, candidates)?.hint ?? "set a path of fields that are no items of a list";
      return [
        { severity: "error", rule: "released-field", message, hint, ...document.valueAt([...path, "released", index]) },
      ];
    }),
  ),
);
