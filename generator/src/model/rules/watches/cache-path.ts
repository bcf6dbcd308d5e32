import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController } from "../../build/resolved-project.js";
import { fieldAt } from "../../schema/schema-path.js";

/** Finds paths to keep that the kind does not have, and limits that a projection cannot have. */
export const checkCachePath = ruleOfController(({ spec: { document }, eventSources }) =>
  eventSources.flatMap(({ spec: { cache }, path, resource }): Diagnostic[] => {
    if (typeof cache !== "object" || resource === undefined) return [];
    return cache.paths.flatMap((text, index): Diagnostic[] => {
      const found = fieldAt(resource, text.split("."));
      if (found.kind !== "unknown") return [];
      const before = text.split(".").slice(0, found.depth);
      const candidates = found.known.map((name) => [...before, name].join("."));
      const listed = candidates.length > 0 ? { hint: `known fields: ${candidates.join(", ")}` } : {};
      const what =
        found.reason === "whole"
          ? `the cache keeps ${quote(before.join("."))} as a whole or not at all`
          : `${resource.kind} has no field ${quote(text)}`;
      return [
        {
          severity: "error",
          rule: "cache-path",
          message: what,
          ...document.valueAt([...path, "cache", "paths", index]),
          ...(found.reason === "whole"
            ? { hint: `state ${quote(before.join("."))}: what is inside a list or a map has no path of its own` }
            : (didYouMean(text, candidates) ?? listed)),
        },
      ];
    });
  }),
);
