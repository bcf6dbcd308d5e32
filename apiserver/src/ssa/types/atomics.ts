import { isObject, type JsonValue } from "../../json.js";
import { fieldElement, pathElementText } from "../fields/path-element.js";
import type { MergeType } from "./type-model.js";

/** Lists the paths of the atomic lists and maps in a value, each as `.path[0]`. */
export function findAtomics(type: MergeType, value: JsonValue, path = ""): string[] {
  if (isObject(value) && type.map !== undefined) {
    const { fields, isAtomic } = type.map;
    // Only members that a schema names are looked into.
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
