import { formatPosition, type SourcePosition } from "../../diagnostic.js";
import type { InformerModel } from "../../model/project-model.js";
import { isLabelKey } from "../../model/rules/label-selector.js";

/** Which objects an event source watches, as far as its mapping decides it. */
export interface DerivedSelector {
  /** Limits the watch to what may have a primary; that of the spec otherwise. */
  readonly labelSelector?: string;
  /** What to tell people. */
  readonly report: string;
}

/**
 * Decides whether the watch of an event source leaves out the objects to which its mapping gives no primary, for want of a label;
 * undefined if its mapping is not by label.
 */
export function deriveSelector(source: InformerModel, lookup: SourcePosition | undefined): DerivedSelector | undefined {
  const { mapping, labelSelector: stated } = source;
  if (mapping.kind !== "label") return undefined;
  const { name } = mapping.keys;
  const obstacle = obstacleOf(source, { key: name, lookup });
  const rest = stated === undefined ? {} : { labelSelector: stated };
  if (obstacle !== undefined)
    return { ...rest, report: `watches objects without the label ${name}, too (${obstacle})` };
  return {
    labelSelector: stated === undefined ? name : `${stated},${name}`,
    report: `watches only objects with the label ${name}, which its mapping asks for`,
  };
}

function obstacleOf(
  { statedSelector, primaryToSecondary, filters }: InformerModel,
  { key, lookup }: { readonly key: string; readonly lookup: SourcePosition | undefined },
): string | undefined {
  if (statedSelector !== undefined) return `stated in ${formatPosition(statedSelector.position)}`;
  if (!isLabelKey(key)) return "no API server selects by it";
  if (primaryToSecondary !== undefined) return "primaryToSecondary may name them";
  // With the selector, an object that gets the label is added and one that loses it is deleted; without, both are updated.
  const filter = (["onAdd", "onDelete", "generic"] as const).find((name) => filters[name] !== undefined);
  if (filter !== undefined) return `the filter ${filter} would see other changes`;
  return lookup === undefined ? undefined : `they may be looked up in ${formatPosition(lookup)}`;
}
