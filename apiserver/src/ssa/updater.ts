// Ownership after a write: updater of structured-merge-diff. Works on field sets and values; managedFields, times, and Status errors are handled by
// the caller.
import { type JsonObject, type JsonValue, deepEqual, isObject } from "../json.js";
import { type FieldEntry, FieldSet, type PathElement } from "./field-set.js";
import { mergeValues, removeFields, withNamedFields } from "./merge.js";
import {
  type Comparison,
  type MergeType,
  checkValue,
  compareValuesOf,
  excludeFields,
  fieldSetOf,
  memberType,
  typedErrorText,
} from "./typed-value.js";

/** The fields that a manager owns, in the schema of one API version. */
export interface OwnedFields {
  readonly set: FieldSet;
  readonly apiVersion: string;
  readonly isApplied: boolean;
}

/** Owned fields by manager identity. */
export type Owners = ReadonlyMap<string, OwnedFields>;

/** A write by one manager. */
export interface OwnedWrite {
  readonly live: JsonObject;
  readonly owners: Owners;
  readonly manager: string;
  readonly apiVersion: string;
  /** Returns the merge type of a version; undefined if it is no longer served. */
  readonly typeOf: (apiVersion: string) => MergeType | undefined;
  /** Fields that the endpoint ignores, so they do not get an owner. */
  readonly resetFields: FieldSet;
  /** Ignores them also for managers that use other versions; custom resources reset fields only in the written version. Default: false */
  readonly resetsAllVersions?: boolean | undefined;
  /** Converts a value to a version; may throw an UnfitVersion. Default: all versions have the same form */
  readonly convert?: ((value: JsonObject, apiVersion: string) => JsonObject) | undefined;
}

/** The fields of another manager that an apply would change. */
export interface OwnerConflict {
  readonly manager: string;
  readonly fields: FieldSet;
}

/** Result of an apply. */
export type ApplyOutcome =
  | { readonly kind: "conflict"; readonly conflicts: OwnerConflict[] }
  /** `object` is undefined if at most the owners change. */
  | { readonly kind: "applied"; readonly object: JsonObject | undefined; readonly owners: Owners };

/**
 * Applies a configuration: merges it, prunes fields that the manager applied before and no manager owns, and updates ownership.
 *
 * @throws UnfitVersion
 */
export function applyOwned(write: OwnedWrite, config: JsonObject, options: { force: boolean }): ApplyOutcome {
  const type = typeOrThrow(write);
  const owners = reconcileOwners(write);
  const last = owners.get(write.manager);
  const set = fieldSetOf(type, config).differenceWithBelow(write.resetFields);
  owners.set(write.manager, { set, apiVersion: write.apiVersion, isApplied: true });

  const merged = (mergeValues(type, write.live, config) ?? {}) as JsonObject;
  const object = last === undefined ? merged : prune({ ...write, owners }, merged, last);
  const moved = moveOwnership({ ...write, owners }, object, options);
  if (moved.kind === "conflict") return moved;
  return { kind: "applied", object: deepEqual(write.live, object) ? undefined : object, owners: moved.owners };
}

/**
 * Tracks an update: the manager becomes the owner of the fields that it changes, and other managers lose them.
 *
 * @throws UnfitVersion
 */
export function updateOwned(write: OwnedWrite, object: JsonObject): Owners {
  const owners = reconcileOwners(write);
  const moved = moveOwnership({ ...write, owners }, object, { force: true });
  const { removed, modified, added } = moved.comparison;
  const mine = owners.get(write.manager)?.set ?? FieldSet.empty;
  const set = mine.difference(removed).union(modified).union(added).differenceWithBelow(write.resetFields);
  const result = new Map(moved.owners);
  if (set.isEmpty) result.delete(write.manager);
  else result.set(write.manager, { set, apiVersion: write.apiVersion, isApplied: false });
  return result;
}

type Moved = { kind: "moved"; owners: Map<string, OwnedFields>; comparison: Comparison };
type MoveOutcome<Force> = Force extends true ? Moved : Moved | { kind: "conflict"; conflicts: OwnerConflict[] };

function moveOwnership<Force extends boolean>(
  write: OwnedWrite,
  object: JsonObject,
  { force }: { force: Force },
): MoveOutcome<Force> {
  const comparisons = new Map<string, Comparison>();
  const comparisonIn = (apiVersion: string, type: MergeType): Comparison => {
    let comparison = comparisons.get(apiVersion);
    if (comparison === undefined) {
      const [before, after] = [write.live, object].map((value) => inVersion(write, value, apiVersion)) as [
        JsonObject,
        JsonObject,
      ];
      if (apiVersion !== write.apiVersion) checkFits(type, after, "failed to convert new object: ");
      const all = compareValuesOf(type, before, after);
      const isReset = apiVersion === write.apiVersion || write.resetsAllVersions === true;
      comparison = isReset ? excludeFields(all, write.resetFields) : all;
      comparisons.set(apiVersion, comparison);
    }
    return comparison;
  };
  const comparison = comparisonIn(write.apiVersion, typeOrThrow(write));
  const owners = new Map<string, OwnedFields>();
  const conflicts: OwnerConflict[] = [];
  for (const [manager, owned] of write.owners) {
    let { set } = owned;
    if (manager !== write.manager) {
      const type = write.typeOf(owned.apiVersion);
      // Fields of a version that is no longer served cannot be compared.
      if (type === undefined) continue;
      const { removed, modified, added } = comparisonIn(owned.apiVersion, type);
      const lost = set.intersection(modified.union(added));
      if (!lost.isEmpty) conflicts.push({ manager, fields: lost });
      set = set.difference(lost).difference(removed);
    }
    if (!set.isEmpty) owners.set(manager, set === owned.set ? owned : { ...owned, set });
  }
  const outcome: Moved | { kind: "conflict"; conflicts: OwnerConflict[] } =
    !force && conflicts.length > 0 ? { kind: "conflict", conflicts } : { kind: "moved", owners, comparison };
  return outcome as MoveOutcome<Force>;
}

/** The object has fields that are not in the schema of another version that a manager uses. */
export class UnfitVersion extends Error {
  override readonly name = "UnfitVersion";
}

function checkFits(type: MergeType, value: JsonObject, step: string): void {
  const errors = checkValue(type, value, { allowsDuplicates: true });
  if (errors.length > 0) throw new UnfitVersion(step + typedErrorText(errors));
}

/** Throws an UnfitVersion if the object does not match the schema of a version that a manager uses. */
function checkOwnersKnow(write: OwnedWrite, merged: JsonObject): void {
  const versions = new Set([...write.owners.values()].map(({ apiVersion }) => apiVersion));
  versions.delete(write.apiVersion);
  for (const version of versions) {
    const type = write.typeOf(version);
    if (type === undefined) continue;
    const step = `failed to prune fields: failed add back owned items: failed to convert merged object at version ${version}: `;
    checkFits(type, inVersion(write, merged, version) as JsonObject, step);
  }
}

/** Removes fields that the manager applied last time, does not apply now, and no manager owns. */
function prune(write: OwnedWrite, merged: JsonObject, last: OwnedFields): JsonObject {
  const mine = write.owners.get(write.manager) as OwnedFields;
  const type = write.typeOf(last.apiVersion);
  if (type === undefined || last.set.isEmpty) return merged;
  checkOwnersKnow(write, merged);
  // Fast path: if all fields are still applied, nothing is pruned.
  if (last.set.difference(mine.set).isEmpty) return merged;
  const mergedThen = inVersion(write, merged, last.apiVersion);
  const lastNamed = withNamedFields(type, last.set);
  let pruned = removeFields(type, mergedThen, lastNamed);
  for (const [apiVersion, owned] of unionByVersion(write.owners, last.apiVersion)) {
    const versionType = write.typeOf(apiVersion);
    if (versionType === undefined) continue;
    const mergedNow = inVersion(write, merged, apiVersion);
    const all = withNamedFields(versionType, fieldSetOf(versionType, mergedNow));
    const kept = withNamedFields(versionType, fieldSetOf(versionType, inVersion(write, pruned, apiVersion)));
    const unowned = all.difference(kept.union(withNamedFields(versionType, owned)));
    pruned = removeFields(versionType, mergedNow, unowned);
  }
  // Only fields that the manager owned are removed; restore everything else that was removed with them.
  const all = withNamedFields(type, fieldSetOf(type, mergedThen));
  const kept = withNamedFields(type, fieldSetOf(type, inVersion(write, pruned, last.apiVersion)));
  const left = removeFields(type, mergedThen, all.difference(kept).intersection(lastNamed)) ?? {};
  return inVersion(write, left, write.apiVersion) as JsonObject;
}

function inVersion<T extends JsonValue>({ convert }: OwnedWrite, value: T, apiVersion: string): T | JsonObject {
  if (convert === undefined || !isObject(value) || value["apiVersion"] === apiVersion) return value;
  return convert(value, apiVersion);
}

function unionByVersion(owners: Owners, first: string): Map<string, FieldSet> {
  const unions = new Map<string, FieldSet>([[first, FieldSet.empty]]);
  for (const { apiVersion, set } of owners.values()) {
    unions.set(apiVersion, (unions.get(apiVersion) ?? FieldSet.empty).union(set));
  }
  return unions;
}

function reconcileOwners(write: OwnedWrite): Map<string, OwnedFields> {
  const { owners, typeOf } = write;
  const reconciled = new Map<string, OwnedFields>();
  const checked = new Set<string>();
  for (const [manager, owned] of owners) {
    const type = typeOf(owned.apiVersion);
    if (type === undefined) continue;
    if (owned.apiVersion !== write.apiVersion && !checked.has(owned.apiVersion)) {
      checkFits(type, inVersion(write, write.live, owned.apiVersion), "");
      checked.add(owned.apiVersion);
    }
    const set = reconcileWithSchema(type, owned.set);
    reconciled.set(manager, set === owned.set ? owned : { ...owned, set });
  }
  return reconciled;
}

function typeOrThrow({ typeOf, apiVersion }: OwnedWrite): MergeType {
  const type = typeOf(apiVersion);
  if (type === undefined) throw new Error(`no merge type for the version ${apiVersion} that is being written`);
  return type;
}

/**
 * Adapts a field set to a schema that has changed since it was recorded.
 *
 * If a field has become atomic, an owner of any field in it owns it as a whole. If it has become granular, no change is needed: its owner owns
 * nothing below it.
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

// With an open schema it is unknown which shape was meant when the set was recorded.
function isOpenShaped(type: MergeType): boolean {
  return type.list !== undefined && type.map !== undefined;
}
