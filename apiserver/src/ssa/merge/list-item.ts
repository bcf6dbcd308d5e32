import { quote } from "../../errors/quote.js";
import { isObject, memberOf, type JsonObject, type JsonValue } from "../../json.js";
import { keyElement, valueElement, type PathElement } from "../fields/path-element.js";
import type { ListShape } from "../types/type-model.js";

/** The step to an item of a merging list, or what is wrong with the item. */
export type ItemIdentity = { element: PathElement } | { problem: string };

/** Tells how an item of a set or keyed list is identified; missing key fields take the schema's defaults. */
export function identifyItem(list: ListShape, item: JsonValue): ItemIdentity {
  return list.keys.length > 0 ? identifyKeyed(list, item) : identifyByValue(item);
}

/** Gives the step to an item that is known to have one; an item without one is told apart by its index. */
export function elementOfItem(list: ListShape, item: JsonValue, index: number): PathElement {
  const identity = identifyItem(list, item);
  return "element" in identity ? identity.element : `i:${index}`;
}

function identifyKeyed(list: ListShape, item: JsonValue): ItemIdentity {
  if (item === null) return { problem: "associative list with keys may not have a null element" };
  if (!isObject(item)) return { problem: "associative list with keys may not have non-map elements" };
  const fields = list.item().map?.fields;
  const keys: JsonObject = {};
  let hasKey = false;
  for (const key of list.keys) {
    // A null is a key like any other.
    const given = memberOf(item, key);
    const value = given === undefined ? fields?.get(key)?.default : given;
    if (value === undefined) continue;
    keys[key] = value;
    hasKey = true;
  }
  if (hasKey) return { element: keyElement(keys) };
  const names = `[${list.keys.map(quote).join(" ")}]`;
  const problem = `associative list with keys has an element that omits all key fields ${names}`;
  return { problem: `${problem} (and doesn't have default values for any key fields)` };
}

function identifyByValue(item: JsonValue): ItemIdentity {
  if (item === null) return { problem: "associative list without keys has an element that's an explicit null" };
  if (Array.isArray(item)) return { problem: "not supported: associative list with lists as elements" };
  if (isObject(item)) return { problem: "associative list without keys has an element that's a map type" };
  return { element: valueElement(item) };
}
