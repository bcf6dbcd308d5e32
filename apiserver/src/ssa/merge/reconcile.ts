import { FieldSet, type FieldEntry } from "../fields/field-set.js";
import type { PathElement } from "../fields/path-element.js";
import { memberType, type MergeType } from "../types/type-model.js";

/**
 * Adapts a manager's set to a schema that has changed since it was recorded.
 *
 * What has become atomic is owned as a whole by whoever owned something in it. The other way nothing is to be done: a member that
 * has become granular owns nothing below it any more.
 */
export function reconcileWithSchema(type: MergeType, fields: FieldSet): FieldSet {
  if (fields.isEmpty || isOpenShaped(type)) return fields;
  const entries = new Map<PathElement, FieldEntry>();
  let hasChanged = false;
  for (const [element, entry] of fields.entries) {
    const inner = typeBelow(type, element);
    const adapted = inner === undefined || entry.below.isEmpty ? entry : adaptEntry(inner, entry);
    if (adapted !== entry) hasChanged = true;
    entries.set(element, adapted);
  }
  return hasChanged ? FieldSet.from(entries) : fields;
}

function adaptEntry(type: MergeType, entry: FieldEntry): FieldEntry {
  if (isOpenShaped(type)) return entry;
  if (type.list?.isAtomic === true || type.map?.isAtomic === true) return FieldSet.leaf;
  const below = reconcileWithSchema(type, entry.below);
  return below === entry.below ? entry : { isMember: entry.isMember, below };
}

function typeBelow(type: MergeType, element: PathElement): MergeType | undefined {
  if (element.startsWith("f:")) return type.map && memberType(type.map, element.slice(2));
  return type.list?.item();
}

// Where the schema leaves the shape open, nothing tells what was meant when the set was recorded.
function isOpenShaped(type: MergeType): boolean {
  return type.list !== undefined && type.map !== undefined;
}
