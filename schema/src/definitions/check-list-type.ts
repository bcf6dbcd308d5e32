import { forbiddenError, invalidError, notSupportedError, requiredError, type FieldError } from "./field-error.js";
import { arrayAt, isJsonObject, memberOf, stringAt } from "../json/json.js";
import { itemSchema, propertiesOf, type StructuralSchema } from "./structural-schema.js";

const KEYS = "x-kubernetes-list-map-keys";
const LIST_TYPE = "x-kubernetes-list-type";
const MAP_TYPE = "x-kubernetes-map-type";
const LIST_TYPES = ["atomic", "set", "map"];
const KEY_TEXT = "this property is in x-kubernetes-list-map-keys, so it";

/** Checks how lists and maps of a schema node merge. */
export function checkListType(schema: StructuralSchema, path: string): FieldError[] {
  return [...checkMapType(schema, path), ...checkOwnListType(schema, path), ...checkKeys(schema, path)];
}

function checkMapType(schema: StructuralSchema, path: string): FieldError[] {
  const mapType = stringAt(schema, MAP_TYPE);
  if (mapType === undefined) return [];
  return [
    ...checkType(schema, { path, wanted: "object", member: MAP_TYPE }),
    ...(mapType === "atomic" || mapType === "granular"
      ? []
      : [notSupportedError(`${path}.${MAP_TYPE}`, mapType, ["atomic", "granular"])]),
  ];
}

function checkType(
  schema: StructuralSchema,
  { path, wanted, member }: { path: string; wanted: string; member: string },
): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  if (type === wanted) return [];
  const text = `must be ${wanted} if ${member} is specified`;
  return [type === "" ? requiredError(`${path}.type`, text) : invalidError(`${path}.type`, type, text)];
}

function checkOwnListType(schema: StructuralSchema, path: string): FieldError[] {
  const listType = stringAt(schema, LIST_TYPE);
  if (listType === undefined) return [];
  const ofType = checkType(schema, { path, wanted: "array", member: LIST_TYPE });
  const items = itemSchema(schema) ?? {};
  const isKnown = LIST_TYPES.includes(listType);
  const nullable =
    ofType.length === 0 && isKnown && items["nullable"] === true && listType !== "atomic"
      ? [forbiddenError(`${path}.items.nullable`, `cannot be nullable when ${LIST_TYPE} is ${listType}`)]
      : [];
  return [
    ...ofType,
    ...(ofType.length === 0 && listType === "set" ? checkSetItems(items, path) : []),
    ...(isKnown ? [] : [notSupportedError(`${path}.${LIST_TYPE}`, listType, LIST_TYPES)]),
    ...nullable,
  ];
}

function checkSetItems(items: StructuralSchema, path: string): FieldError[] {
  const suffix = `must be atomic as item of a list with ${LIST_TYPE}=set`;
  if (items["type"] === "object" && items[MAP_TYPE] !== "atomic") {
    return [invalidError(`${path}.items.${MAP_TYPE}`, items[LIST_TYPE] ?? null, suffix)];
  }
  const listType = items[LIST_TYPE];
  return items["type"] === "array" && listType !== undefined && listType !== "atomic"
    ? [invalidError(`${path}.items.${LIST_TYPE}`, listType, suffix)]
    : [];
}

function checkKeys(schema: StructuralSchema, path: string): FieldError[] {
  const keys = (arrayAt(schema, KEYS) ?? []).map(String);
  const listType = stringAt(schema, LIST_TYPE);
  if (listType !== "map") {
    const text = `must be map if ${KEYS} is non-empty`;
    const field = `${path}.${LIST_TYPE}`;
    if (keys.length === 0) return [];
    return [listType === undefined ? requiredError(field, text) : invalidError(field, listType, text)];
  }
  const errors =
    keys.length === 0 ? [requiredError(`${path}.${KEYS}`, `must not be empty if ${LIST_TYPE} is map`)] : [];
  const items = itemSchema(schema);
  if (items === undefined)
    return [...errors, requiredError(`${path}.items`, `must have a schema if ${LIST_TYPE} is map`)];
  if (items["type"] !== "object") {
    const text = `must be object if parent array's ${LIST_TYPE} is map`;
    return [...errors, invalidError(`${path}.items.type`, items["type"] ?? "", text)];
  }
  const properties = propertiesOf(items);
  for (const [index, key] of keys.entries()) {
    if (!Object.hasOwn(properties, key))
      errors.push(invalidError(`${path}.${KEYS}`, keys, "entries must all be names of item properties"));
    if (keys.indexOf(key) < index)
      errors.push(invalidError(`${path}.${KEYS}`, keys, "must not contain duplicate entries"));
  }
  return [...errors, ...[...new Set(keys)].flatMap((key) => checkKey(items, { key, path }))];
}

function checkKey(items: StructuralSchema, { key, path }: { key: string; path: string }): FieldError[] {
  const property = memberOf(propertiesOf(items), key);
  if (!isJsonObject(property)) return [];
  const field = `${path}.items.properties[${key}]`;
  const type = stringAt(property, "type") ?? "";
  const errors: FieldError[] = [];
  if (type === "object" || type === "array") {
    // Kubernetes shows the type of the item.
    errors.push(invalidError(`${field}.type`, "object", `must be a scalar type if parent array's ${LIST_TYPE} is map`));
  }
  if (memberOf(property, "default") === undefined && !(arrayAt(items, "required") ?? []).includes(key)) {
    errors.push(requiredError(`${field}.default`, `${KEY_TEXT} must have a default or be a required property`));
  }
  if (property["nullable"] === true) {
    errors.push(forbiddenError(`${field}.nullable`, `${KEY_TEXT} cannot be nullable`));
  }
  return errors;
}
