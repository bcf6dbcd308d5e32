// Decodes an object into the Go type of a built-in kind as Kubernetes does: reports unknown fields and the first value of the wrong type.
import { goTypeOf } from "../errors/go-format.js";
import { numberTextsIn } from "../exact-numbers.js";
import { type JsonObject, type JsonValue, isObject } from "../json.js";
import { type GoField, goFieldOf } from "./go-types.js";
import { type SchemaNode, type TextType, schemaNode, shortName } from "./schema-node.js";
import type { ServedType } from "./served-type.js";

/** The result of decoding an object. The object itself is not changed. */
export interface Decoding {
  /** Paths of unknown fields in document order, e.g. `spec.containers[0].x`. */
  unknownFields: string[];
  /** The error of Go's JSON decoder, if decoding failed. */
  error?: string;
}

/** A value of the wrong type. Go's decoder continues after a type mismatch; an error returned by UnmarshalJSON is final and ends the decoding. */
interface Misfit {
  message: string;
  isFinal: boolean;
}

/** Decodes an object of a built-in type. */
export function decodeBuiltin(type: Pick<ServedType, "schemaName">, object: JsonObject): Decoding {
  if (type.schemaName === undefined) return { unknownFields: [] };
  const unknownFields: string[] = [];
  const misfits: Misfit[] = [];
  inspect(new Place(schemaNode(type.schemaName)), object, { unknownFields, misfits });
  const misfit = misfits.find(({ isFinal }) => isFinal) ?? misfits[0];
  return misfit === undefined ? { unknownFields } : { unknownFields, error: misfit.message };
}

/** The position of a value during decoding. Its path is computed lazily, since only errors need it. */
class Place {
  readonly node: SchemaNode;
  readonly #in: Place | undefined;
  readonly #step: string | number;

  constructor(node: SchemaNode, step: string | number = "", within?: Place) {
    this.node = node;
    this.#in = within;
    this.#step = step;
  }

  /** Returns the same position with another schema. */
  as(node: SchemaNode): Place {
    return new Place(node, this.#step, this.#in);
  }

  /** With indexes, e.g. `spec.containers[0].name`. */
  get path(): string {
    const before = this.#in?.path ?? "";
    if (typeof this.#step === "number") return `${before}[${this.#step}]`;
    return before === "" ? this.#step : `${before}.${this.#step}`;
  }

  /** Without indexes, as Go's error messages have it. */
  get goPath(): string {
    const { goField } = this;
    const before = this.#in?.goPath ?? "";
    if (goField === undefined) return before;
    const own = `${goField.embedded}${this.#step}`;
    return before === "" ? own : `${before}.${own}`;
  }

  /** The name of the Go struct that holds the field. */
  get struct(): string {
    const name = this.goField && this.#in?.node.name;
    return name === undefined ? (this.#in?.struct ?? "") : shortName(name);
  }

  /** The Go type of the value, where it cannot be derived from the schema. */
  get goType(): string | undefined {
    return typeof this.#step === "number" ? this.#in?.goType?.replace(/^\[\]/, "") : this.goField?.type;
  }

  /** Undefined for list items and map entries. */
  private get goField(): GoField | undefined {
    if (typeof this.#step === "number" || this.#in === undefined || this.#in.node.values !== undefined)
      return undefined;
    return goFieldOf(this.#in.node.name, this.#step);
  }
}

interface Findings {
  readonly unknownFields: string[];
  readonly misfits: Misfit[];
}

// These types have their own UnmarshalJSON, which ignores unknown fields.
function inspectChoice(place: Place, schema: SchemaNode, { value, misfits }: { value: JsonValue; misfits: Misfit[] }) {
  const findings: Findings = { unknownFields: [], misfits };
  if (isObject(value)) inspectMembers(place.as(schema), value, findings);
  else if (Array.isArray(value) && place.node.name?.endsWith("StringArray") !== true)
    value.forEach((item) => inspect(place.as(schema), item, findings));
  else if (place.node.name?.endsWith("OrBool") === true && typeof value !== "boolean")
    misfits.push({ message: "boolean or JSON schema expected", isFinal: true });
}

/** `text` is the literal of an integer that is written as a float, such as 1.0. */
function inspect(place: Place, value: JsonValue, findings: Findings, text?: string): void {
  if (value === null || findings.misfits.at(-1)?.isFinal === true) return;
  const { node } = place;
  const { choice } = node;
  if (choice !== undefined) return inspectChoice(place, choice, { value, misfits: findings.misfits });
  const message = misfitText(place, value, text);
  if (message !== undefined) {
    // These types have their own UnmarshalJSON, whose error is final.
    findings.misfits.push({ message, isFinal: node.text !== undefined || node.isIntOrString });
  } else if (Array.isArray(value)) {
    const { items } = node;
    if (items === undefined) return;
    const texts = numberTextsIn(value);
    value.forEach((item, index) => inspect(new Place(items, index, place), item, findings, texts?.get(index)));
  } else if (isObject(value)) inspectMembers(place, value, findings);
}

function inspectMembers(place: Place, value: JsonObject, findings: Findings): void {
  const { node } = place;
  if (node.properties.size === 0 && node.values === undefined) return;
  const texts = numberTextsIn(value);
  for (const key of Object.keys(value)) {
    const member = node.child(key);
    if (member === undefined) findings.unknownFields.push(new Place(node, key, place).path);
    else inspect(new Place(member, key, place), value[key] as JsonValue, findings, texts?.get(key));
  }
}

function misfitText(place: Place, value: JsonValue, text: string | undefined): string | undefined {
  const { node } = place;
  if (node.text !== undefined) return textProblem(node.text, place, value);
  if (node.isIntOrString) {
    if (typeof value === "string") return undefined;
    if (typeof value !== "number") return misfit(place, value, { target: "int32" });
    return integerMisfit(place, value, { target: "int32", text });
  }
  switch (node.type) {
    case "object":
      // A RawExtension holds any JSON value.
      return isObject(value) || node.isRaw ? undefined : misfit(place, value);
    case "array":
      return Array.isArray(value) ? undefined : misfit(place, value);
    case "integer":
      if (typeof value !== "number") return misfit(place, value);
      return integerMisfit(place, value, { target: targetOf(place), text });
    case "number":
      return typeof value === "number" ? undefined : misfit(place, value);
    case "boolean":
      return typeof value === "boolean" ? undefined : misfit(place, value);
    case "string":
      if (node.isBytes && Array.isArray(value)) return bytesMisfit(place, value);
      if (typeof value !== "string") return misfit(place, value);
      return node.isBytes ? base64Problem(value) : undefined;
    default:
      return undefined;
  }
}

function textProblem(text: TextType, place: Place, value: JsonValue): string | undefined {
  if (typeof value !== "string" && !text.takesNumbers) return misfit(place, value, { target: "string" });
  const canonical = text.canonical(typeof value === "number" ? decimalText(value) : String(value));
  return "problem" in canonical ? canonical.problem : undefined;
}

function targetOf({ goType, node }: Place): string {
  return goType ?? node.goTarget;
}

function misfit(place: Place, value: JsonValue, of: { target?: string; shown?: string } = {}): string {
  const { target = targetOf(place), shown = goTypeOf(value) } = of;
  const { struct, goPath } = place;
  const field = struct === "" ? "value" : `struct field ${struct}.${goPath}`;
  return `json: cannot unmarshal ${shown} into Go ${field} of type ${target}`;
}

interface IntegerType {
  readonly target: string;
  readonly text: string | undefined;
}

function integerMisfit(place: Place, value: number, { target, text }: IntegerType): string | undefined {
  const limit = target === "int32" ? 2 ** 31 : 2 ** 63;
  if (text === undefined && Number.isInteger(value) && value >= -limit && value < limit) return undefined;
  return misfit(place, value, { target, shown: `number ${text ?? value}` });
}

// encoding/json also decodes an array of numbers into []byte.
function bytesMisfit(place: Place, value: JsonValue[]): string | undefined {
  const odd = value.find(
    (byte) => byte !== null && (typeof byte !== "number" || !Number.isInteger(byte) || byte < 0 || byte > 255),
  );
  if (odd === undefined) return undefined;
  return misfit(place, odd, { target: "uint8", ...(typeof odd === "number" ? { shown: `number ${odd}` } : {}) });
}

/** Returns the error of Go's base64 decoder; undefined for valid input. */
export function base64Problem(text: string): string | undefined {
  const index = text.search(/[^A-Za-z0-9+/=\r\n]/);
  const length = text.replace(/[\r\n]/g, "").length;
  if (index === -1 && length % 4 === 0) return undefined;
  // Go reports the offset of the incomplete quantum.
  return `illegal base64 data at input byte ${index === -1 ? length - (length % 4) : index}`;
}

/** Formats a number as JSON does, but without the plus sign in the exponent, which quantities do not accept. */
export function decimalText(value: number): string {
  return String(value).replace("e+", "e");
}
