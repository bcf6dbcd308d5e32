import { isObject, memberOf, setMember, type JsonObject, type JsonValue } from "../../json.js";
import {
  definiteShape,
  memberType,
  shapeFor,
  type ListShape,
  type MapShape,
  type MergeType,
} from "../types/type-model.js";
import { mergeItems } from "./merge-list.js";

/**
 * Merges a configuration into a live value; the configuration wins.
 *
 * The result shares what only one side has. It is undefined where a container would end up without anything.
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
      // Two empty ones are a leaf, which keeps the difference between null and empty.
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
