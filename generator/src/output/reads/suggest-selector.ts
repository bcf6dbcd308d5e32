import { formatPosition, type SourcePosition } from "../../diagnostic.js";
import type { InformerModel } from "../../model/project-model.js";
import { isLabelKey } from "../../model/rules/watches/label-selector.js";

/** Whether the watch of an event source may leave out the objects without the label of its mapping. */
export type SelectorSuggestion =
  | { readonly kind: "selector"; readonly labelSelector: string }
  /** The spec states such a selector. */
  | { readonly kind: "stated" }
  | { readonly kind: "none"; readonly reason: string };

/**
 * Decides whether an event source may ask the API server only for objects with the label of its mapping; undefined if its mapping is not
 * by label. `lookup` is where the code may look up an object without the label.
 */
export function suggestSelector(
  source: InformerModel,
  lookup: SourcePosition | undefined,
): SelectorSuggestion | undefined {
  const { mapping, labelSelector: stated = "" } = source;
  if (mapping.kind !== "label") return undefined;
  const { name } = mapping.keys;
  if (requiresLabel(stated, name)) return { kind: "stated" };
  const reason = obstacleOf(source, { key: name, lookup });
  if (reason !== undefined) return { kind: "none", reason };
  return { kind: "selector", labelSelector: stated === "" ? name : `${stated},${name}` };
}

// Any requirement but the negative ones leaves out objects without the label.
function requiresLabel(selector: string, key: string): boolean {
  return selector
    .split(/,(?![^(]*\))/)
    .map((requirement) => requirement.trim())
    .some((requirement) => {
      const rest = requirement.startsWith(key) ? requirement.slice(key.length) : undefined;
      return rest !== undefined && /^(?:$|\s*==?(?!=)|\s+in\b)/.test(rest);
    });
}

function obstacleOf(
  { primaryToSecondary, filters }: InformerModel,
  { key, lookup }: { readonly key: string; readonly lookup: SourcePosition | undefined },
): string | undefined {
  if (!isLabelKey(key)) return "no API server selects by it";
  if (primaryToSecondary !== undefined) return "primaryToSecondary may name objects without it";
  // With the selector, an object that gets the label is added and one that loses it is deleted; without, both are updated.
  const filter = (["onAdd", "onDelete", "generic"] as const).find((name) => filters[name] !== undefined);
  if (filter !== undefined) return `the filter ${filter} would see other changes`;
  return lookup === undefined ? undefined : `objects without it may be looked up in ${formatPosition(lookup)}`;
}
