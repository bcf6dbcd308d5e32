// What Kubernetes finds when it decodes an object into the Go type of a built-in kind: members that the type does not have,
// and the first value that does not fit.
import { goTypeOf } from "../errors/go-format.js";
import { isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";
import { goFieldOf } from "./go-types.js";
import { isIntOrString, isQuantity, textTypeOf } from "./scalar-text.js";
import { childNode, resolveSchema } from "./schemas.js";
import type { ServedType } from "./served-type.js";

/** The result of decoding an object, which is not changed. */
export interface Decoding {
  /** Paths of unknown members in document order, e.g. `spec.containers[0].x`. */
  unknownFields: string[];
  /** Why the object cannot be decoded, in the words of Go's JSON decoder. */
  error?: string;
}

/** A value that does not fit. Go reads on after one of another type; a text that a type cannot read ends the decoding. */
interface Misfit {
  message: string;
  isFinal: boolean;
}

/** Says what is unknown or wrong about an object of a built-in type. */
export function decodeBuiltin(type: Pick<ServedType, "schemaName">, object: JsonObject): Decoding {
  const decoding: Decoding = { unknownFields: [] };
  if (type.schemaName === undefined) return decoding;
  const node: JsonObject = { $ref: `#/components/schemas/${type.schemaName}` };
  const found: Misfit[] = [];
  inspect({ node, value: object, place: { path: "", goPath: "", struct: "" }, decoding, found });
  const misfit = found.find(({ isFinal }) => isFinal) ?? found[0];
  return misfit === undefined ? decoding : { ...decoding, error: misfit.message };
}

interface Place {
  /** With indexes, e.g. `spec.containers[0].name`. */
  path: string;
  /** Without indexes, as Go reports it. */
  goPath: string;
  /** The Go struct that holds the field. */
  struct: string;
  /** Its Go type, where the schema does not tell. */
  goType?: string;
}

interface Inspection {
  node: JsonObject;
  value: JsonValue;
  place: Place;
  decoding: Decoding;
  found: Misfit[];
}

function inspect({ node, value, place, decoding, found }: Inspection): void {
  if (value === null || found.at(-1)?.isFinal === true) return;
  const { name, schema } = resolveSchema(node);
  const misfit = misfitOf(node, value, place);
  if (misfit !== undefined) found.push(misfit);
  else if (Array.isArray(value)) {
    const items = objectAt(schema, "items");
    if (items === undefined) return;
    const { goType, ...rest } = place;
    const itemType = goType === undefined ? {} : { goType: goType.replace(/^\[\]/, "") };
    value.forEach((item, index) => {
      const itemPlace = { ...rest, ...itemType, path: `${place.path}[${index}]` };
      inspect({ node: items, value: item, place: itemPlace, decoding, found });
    });
  } else if (isObject(value)) inspectMembers({ name, schema, value, place, decoding, found });
}

interface MemberInspection {
  name: string | undefined;
  schema: JsonObject;
  value: JsonObject;
  place: Place;
  decoding: Decoding;
  found: Misfit[];
}

function inspectMembers({ name, schema, value, place, decoding, found }: MemberInspection): void {
  const properties = objectAt(schema, "properties");
  const isMap = objectAt(schema, "additionalProperties") !== undefined;
  if (properties === undefined && !isMap) return;
  for (const [key, member] of Object.entries(value)) {
    const path = place.path === "" ? key : `${place.path}.${key}`;
    const node = childNode(schema, key);
    if (node === undefined) {
      decoding.unknownFields.push(path);
      continue;
    }
    inspect({ node, value: member, place: { ...memberPlace({ name, isMap, place, key }), path }, decoding, found });
  }
}

function memberPlace(member: { name: string | undefined; isMap: boolean; place: Place; key: string }) {
  const { name, isMap, place, key } = member;
  const struct = isMap || name === undefined ? place.struct : shortName(name);
  if (isMap) return { goPath: place.goPath, struct };
  const { embedded, type } = goFieldOf(name, key);
  const goPath = place.goPath === "" ? `${embedded}${key}` : `${place.goPath}.${embedded}${key}`;
  return { goPath, struct, ...(type === undefined ? {} : { goType: type }) };
}

function misfitOf(node: JsonObject, value: JsonValue, place: Place): Misfit | undefined {
  const { name } = resolveSchema(node);
  // Such types read themselves, and what they say ends the decoding.
  const isFinal = textTypeOf(name) !== undefined || isIntOrString(name);
  const message = misfitText(node, value, place);
  return message === undefined ? undefined : { message, isFinal };
}

function misfitText(node: JsonObject, value: JsonValue, place: Place): string | undefined {
  const { name, schema } = resolveSchema(node);
  const text = textTypeOf(name);
  const misfit = (target: string, shown = goTypeOf(value)) => {
    const field = place.struct === "" ? "value" : `struct field ${place.struct}.${place.goPath}`;
    return `json: cannot unmarshal ${shown} into Go ${field} of type ${target}`;
  };
  if (text !== undefined) {
    if (typeof value !== "string" && !text.takesNumbers) return misfit("string");
    const canonical = text.canonical(
      isQuantity(name) && typeof value === "number" ? decimalText(value) : String(value),
    );
    return "problem" in canonical ? canonical.problem : undefined;
  }
  if (isIntOrString(name)) {
    if (typeof value === "string") return undefined;
    return typeof value === "number" ? integerMisfit(value, "int32", misfit) : misfit("int32");
  }
  const target = place.goType ?? goTargetOf(node);
  switch (schema["type"]) {
    case "object":
      return isObject(value) ? undefined : misfit(target);
    case "array":
      return Array.isArray(value) ? undefined : misfit(target);
    case "integer":
      return typeof value === "number" ? integerMisfit(value, target, misfit) : misfit(target);
    case "number":
      return typeof value === "number" ? undefined : misfit(target);
    case "boolean":
      return typeof value === "boolean" ? undefined : misfit(target);
    case "string":
      if (schema["format"] === "byte" && Array.isArray(value)) return bytesMisfit(value, misfit);
      if (typeof value !== "string") return misfit(target);
      return schema["format"] === "byte" ? base64Problem(value) : undefined;
    default:
      return undefined;
  }
}

function integerMisfit(value: number, target: string, misfit: (target: string, shown: string) => string) {
  const limit = target === "int32" ? 2 ** 31 : 2 ** 63;
  return Number.isInteger(value) && value >= -limit && value < limit ? undefined : misfit(target, `number ${value}`);
}

// Go reads a list of numbers as bytes, too.
function bytesMisfit(value: JsonValue[], misfit: (target: string, shown: string) => string): string | undefined {
  const odd = value.find(
    (byte) => byte !== null && (typeof byte !== "number" || !Number.isInteger(byte) || byte < 0 || byte > 255),
  );
  if (odd === undefined) return undefined;
  return misfit("uint8", typeof odd === "number" ? `number ${odd}` : goTypeOf(odd));
}

function base64Problem(text: string): string | undefined {
  const index = text.search(/[^A-Za-z0-9+/=\r\n]/);
  const length = text.replace(/[\r\n]/g, "").length;
  if (index === -1 && length % 4 === 0) return undefined;
  // Go names the first of the four characters that are incomplete.
  return `illegal base64 data at input byte ${index === -1 ? length - (length % 4) : index}`;
}

/** Writes a number as JSON does, but never with an exponent that a quantity could not take. */
export function decimalText(value: number): string {
  return String(value).replace("e+", "e");
}

// The Go type that a schema node was generated from, as far as the schema tells.
function goTargetOf(node: JsonObject): string {
  const { name, schema } = resolveSchema(node);
  if (name !== undefined) return `${name.split(".").at(-2)}.${shortName(name)}`;
  const values = objectAt(schema, "additionalProperties");
  if (values !== undefined) {
    return isQuantity(resolveSchema(values).name) ? "v1.ResourceList" : `map[string]${goTargetOf(values)}`;
  }
  const format = stringAt(schema, "format");
  switch (schema["type"]) {
    case "array":
      return `[]${goTargetOf(objectAt(schema, "items") ?? {})}`;
    case "boolean":
      return "bool";
    case "integer":
      return format ?? "int64";
    case "number":
      return "float64";
    case "string":
      return format === "byte" ? "[]uint8" : "string";
    default:
      return "map[string]interface {}";
  }
}

function shortName(schemaName: string): string {
  return schemaName.slice(schemaName.lastIndexOf(".") + 1);
}
