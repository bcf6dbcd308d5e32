import { type JsonObject, type JsonValue, isObject, memberOf, setMember } from "../json.js";
import { type FieldEntry, FieldSet, type PathElement, fieldElement, pathElementText } from "./field-set.js";
import {
  type ListShape,
  type MapShape,
  type MergeType,
  checkValue,
  definiteShape,
  elementOfItem,
  memberType,
  shapeFor,
  typedErrorText,
} from "./typed-value.js";

/**
 * Merges a configuration into a live value; the configuration takes precedence.
 *
 * Unchanged subtrees are shared with the input. Returns undefined for a container that would become empty.
 */
export function mergeValues(
  type: MergeType,
  live: JsonValue | undefined,
  config: JsonValue | undefined,
): JsonValue | undefined {
  if (config === undefined) return live;
  if (live === undefined) return config;
  switch (definiteShape(type, shapeFor(type, config))) {
    case "scalar":
      return config;
    case "list": {
      const list = type.list as ListShape;
      const before = Array.isArray(live) ? live : [];
      const wanted = Array.isArray(config) ? config : [];
      // If both are empty, the configured value is kept, which preserves the difference between null and empty.
      if (list.isAtomic || (before.length === 0 && wanted.length === 0)) return config;
      const mergeItem = (old: JsonValue | undefined, item: JsonValue): JsonValue | undefined =>
        mergeValues(list.item(), old, item);
      const merged = mergeItems({ list, live: before, config: wanted, mergeItem });
      return merged.length === 0 ? undefined : merged;
    }
    case "map": {
      const map = type.map as MapShape;
      const before = isObject(live) ? live : {};
      const wanted = isObject(config) ? config : {};
      const isEmpty = Object.keys(before).length === 0 && Object.keys(wanted).length === 0;
      return map.isAtomic || isEmpty ? config : mergeMembers(map, before, wanted);
    }
  }
}

function mergeMembers(map: MapShape, live: JsonObject, config: JsonObject): JsonObject | undefined {
  const merged: JsonObject = {};
  const mergeMember = (name: string): void => {
    const value = mergeValues(memberType(map, name), memberOf(live, name), memberOf(config, name));
    if (value !== undefined) setMember(merged, name, value);
  };
  for (const name of Object.keys(live)) mergeMember(name);
  for (const name of Object.keys(config)) if (!Object.hasOwn(live, name)) mergeMember(name);
  return Object.keys(merged).length === 0 ? undefined : merged;
}

// The order of a merged list is part of the API, as it is visible in the stored object.

/** Input of a list merge. */
interface ListMerge {
  readonly list: ListShape;
  readonly live: readonly JsonValue[];
  /** Contains no duplicates. */
  readonly config: readonly JsonValue[];
  /** Merges an item of the configuration with the live item of the same key. */
  readonly mergeItem: (live: JsonValue | undefined, config: JsonValue) => JsonValue | undefined;
}

/**
 * Merges two lists.
 *
 * Shared and new items are in the order of the configuration; items that only the live list has keep their position before the next shared item.
 */
function mergeItems({ list, live, config, mergeItem }: ListMerge): JsonValue[] {
  const liveElements = live.map((item, index) => elementOfItem(list, item, index));
  const configElements = config.map((item, index) => elementOfItem(list, item, index));
  const liveItems = uniqueItems(liveElements, live);
  const configured = new Set(configElements);
  const shared = configElements.filter((element) => liveItems.has(element));
  const emitted = new Set<PathElement>();
  const merged: JsonValue[] = [];
  let next = 0;
  let left = 0;
  let right = 0;

  const emit = (item: JsonValue | undefined): void => {
    if (item !== undefined) merged.push(item);
  };
  const emitConfigured = (): void => {
    const element = configElements[right] as PathElement;
    emitted.add(element);
    emit(mergeItem(liveItems.get(element), config[right] as JsonValue));
    right++;
  };

  while (left < live.length || right < config.length) {
    const ours = liveElements[left];
    const theirs = configElements[right];
    if (ours !== undefined && theirs !== undefined) {
      if (ours === theirs) {
        emitConfigured();
        left++;
        next++;
        continue;
      }
      // The configuration determines the position of a shared item, so skip it until it is reached there.
      if (configured.has(ours) && next < shared.length && shared[next] !== ours) {
        left++;
        continue;
      }
    }
    if (ours !== undefined) {
      if (!configured.has(ours)) {
        emit(live[left]);
        left++;
        continue;
      }
      if (emitted.has(ours)) left++;
    }
    if (theirs !== undefined) {
      emitConfigured();
      if (shared[next] === theirs) next++;
    }
  }
  return merged;
}

/** Maps path elements to items; duplicates map to undefined, so that nothing is merged into them. */
function uniqueItems(
  elements: readonly PathElement[],
  items: readonly JsonValue[],
): Map<PathElement, JsonValue | undefined> {
  const unique = new Map<PathElement, JsonValue | undefined>();
  elements.forEach((element, index) => unique.set(element, unique.has(element) ? undefined : items[index]));
  return unique;
}

/**
 * Removes the members of a set and everything below them from a value.
 *
 * A container that becomes empty is replaced by null, unless it is a member itself.
 */
export function removeFields(type: MergeType, value: JsonValue, fields: FieldSet): JsonValue {
  if (fields.isEmpty) return value;
  switch (definiteShape(type, shapeFor(type, value))) {
    case "scalar":
      return value;
    case "list":
      return removeItems(type.list as ListShape, value, fields);
    case "map":
      return removeMembers(type.map as MapShape, value, fields);
  }
}

/** Adds every declared field on the path to a member; map keys and list items are not added. */
export function withNamedFields(type: MergeType, fields: FieldSet): FieldSet {
  if (fields.isEmpty) return fields;
  const entries = new Map<PathElement, FieldEntry>();
  let hasChanged = false;
  for (const [element, entry] of fields.entries) {
    const named = entry.below.isEmpty ? entry : withNamedBelow(type, element, entry);
    if (named !== entry) hasChanged = true;
    entries.set(element, named);
  }
  return hasChanged ? FieldSet.from(entries) : fields;
}

function withNamedBelow(type: MergeType, element: PathElement, entry: FieldEntry): FieldEntry {
  const name = element.slice(2);
  const isField = element.startsWith("f:");
  const isMember = entry.isMember || (isField && type.map?.fields.has(name) === true);
  const inner = isField
    ? type.map && memberType(type.map, name)
    : element.startsWith("k:")
      ? type.list?.item()
      : undefined;
  const below = inner === undefined ? entry.below : withNamedFields(inner, entry.below);
  return isMember === entry.isMember && below === entry.below ? entry : { isMember, below };
}

function removeItems(list: ListShape, value: JsonValue, fields: FieldSet): JsonValue {
  if (!Array.isArray(value) || list.isAtomic) return null;
  const itemType = list.item();
  const kept: JsonValue[] = [];
  value.forEach((item, index) => {
    const entry = fields.entries.get(elementOfItem(list, item, index));
    if (entry?.isMember === true) return;
    kept.push(entry === undefined ? item : removeFields(itemType, item, entry.below));
  });
  return kept.length === 0 ? null : kept;
}

function removeMembers(map: MapShape, value: JsonValue, fields: FieldSet): JsonValue {
  if (!isObject(value) || map.isAtomic) return null;
  const kept: JsonObject = {};
  for (const name of Object.keys(value)) {
    const member = value[name] as JsonValue;
    const entry = fields.entries.get(map.fields.get(name)?.element ?? fieldElement(name));
    if (entry?.isMember === true) continue;
    setMember(kept, name, entry === undefined ? member : removeFields(memberType(map, name), member, entry.below));
  }
  return Object.keys(kept).length === 0 ? null : kept;
}

/**
 * Merges an ApplyConfiguration of a MutatingAdmissionPolicy into an object, without tracking owners.
 *
 * Throws an Error with the message of kube-apiserver if the configuration does not match the schema or would replace an atomic list or map.
 */
export function mergeConfiguration(type: MergeType, live: JsonObject, given: JsonObject): JsonObject {
  const config: JsonObject = { ...given, apiVersion: live["apiVersion"] ?? "", kind: live["kind"] ?? "" };
  const fail = (words: string): never => {
    throw new Error(`error applying patch: ${words}`);
  };
  const ofConfig = checkValue(type, config, { allowsDuplicates: false });
  if (ofConfig.length > 0) fail(`failed to convert patch object to typed object: ${typedErrorText(ofConfig)}`);
  const atomics = findAtomics(type, config);
  if (atomics.length > 0)
    fail(`invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(", ")}`);
  const ofLive = checkValue(type, live, { allowsDuplicates: true });
  if (ofLive.length > 0) fail(`failed to convert original object to typed object: ${typedErrorText(ofLive)}`);
  const merged = mergeValues(type, live, config);
  return isObject(merged) ? merged : live;
}

/** Lists the paths of atomic lists and maps in a value, such as `.path[0]`. */
function findAtomics(type: MergeType, value: JsonValue, path = ""): string[] {
  if (isObject(value) && type.map !== undefined) {
    const { fields, isAtomic } = type.map;
    // Only declared fields are searched.
    const inner = Object.entries(value).flatMap(([name, member]) => {
      const field = fields.get(name);
      return field === undefined ? [] : findAtomics(field.type(), member, path + pathElementText(fieldElement(name)));
    });
    return [...(isAtomic ? [path] : []), ...inner];
  }
  if (Array.isArray(value) && type.list !== undefined) {
    const { item, isAtomic } = type.list;
    const inner = value.flatMap((member, index) => findAtomics(item(), member, `${path}[${index}]`));
    return [...(isAtomic ? [path] : []), ...inner];
  }
  return [];
}
