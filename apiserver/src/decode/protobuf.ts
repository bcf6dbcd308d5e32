/**
 * Decodes protobuf bodies, which typed Go clients send for built-in kinds: client-go, controller-runtime, kubectl create.
 *
 * Bodies are converted to JSON. Go also encodes zero values; decoding the built-in kinds drops those that JSON omits.
 */
import { readFileSync } from "node:fs";
import { schemaNameOf } from "../builtin/schemas.js";
import { BodySyntaxError } from "../errors/decode-errors.js";
import { type JsonObject, type JsonValue, isObject, setMember } from "../json.js";
import { packageFile } from "../package-file.js";

/** Prefix of every protobuf body. */
export const MAGIC = Buffer.from("k8s\0");
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;
const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

interface Field {
  readonly number: number;
  readonly value: number | Buffer;
}

// Messages that are a single JSON value (apimachinery 1.36). Undefined values are omitted.
const VALUES: Readonly<Record<string, (fields: Field[]) => JsonValue | undefined>> = {
  [`${META}.Time`]: (fields) => timeOf(fields)?.replace(/\.\d+Z$/, "Z"),
  [`${META}.MicroTime`]: (fields) => timeOf(fields),
  [`${META}.Duration`]: (fields) => `${numberOf(fields, 1) / 1e9}s`,
  [`${META}.FieldsV1`]: (fields) => jsonOf(fields),
  "io.k8s.apimachinery.pkg.api.resource.Quantity": (fields) => bytesOf(fields, 1).toString() || "0",
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (fields) =>
    numberOf(fields, 1) === 0 ? numberOf(fields, 2) : bytesOf(fields, 3).toString(),
  "io.k8s.apimachinery.pkg.runtime.RawExtension": (fields) => jsonOf(fields),
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": (fields) => jsonOf(fields),
};

/** Parses a body; undefined if there is no message for its kind. Throws a BodySyntaxError if the envelope or a message is malformed. */
export function parseProtobuf(body: Buffer): JsonObject | undefined {
  try {
    return parseEnvelope(body);
  } catch (error) {
    // Messages that are nested too deeply, and times out of the range of Date.
    if (error instanceof RangeError) throw broken(`proto: ${error.message}`);
    if (error instanceof SyntaxError) throw broken(error.message);
    throw error;
  }
}

function parseEnvelope(body: Buffer): JsonObject | undefined {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC))
    throw broken("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  // The envelope (runtime.Unknown) contains the type in field 1 and the object in field 2.
  const envelope = fieldsOf(body.subarray(MAGIC.length));
  const typeMeta = fieldsOf(bytesOf(envelope, 1));
  const apiVersion = bytesOf(typeMeta, 1).toString();
  const kind = bytesOf(typeMeta, 2).toString();
  const name = messageNameOf(apiVersion, kind);
  if (name === undefined) return undefined;
  const object = parseValue(name, bytesOf(envelope, 2));
  return { kind, apiVersion, ...(isObject(object) ? object : {}) };
}

function parseMessage(name: string, bytes: Buffer): JsonObject {
  const object: JsonObject = {};
  const message = messageOf(name);
  for (const { number, value } of fieldsOf(bytes)) {
    const declaration = message?.[number];
    if (declaration === undefined) continue;
    const [member, ...type] = declaration.split(" ") as [string, ...string[]];
    addField(object, { member, type, value });
  }
  return object;
}

function addField(object: JsonObject, field: { member: string; type: string[]; value: number | Buffer }): void {
  const { member, type, value } = field;
  const [shape = "string", inner = "string"] = type;
  if (shape === "inline") Object.assign(object, parseValue(inner, value));
  else if (shape === "list") {
    const list = (object[member] ??= []) as JsonValue[];
    list.push(parseValue(inner, value) ?? null);
  } else if (shape === "map") {
    if (typeof value === "number") throw broken("proto: wrong wireType = 0");
    const map = (object[member] ?? {}) as JsonObject;
    // A map entry is a message with a key and a value.
    const entry = fieldsOf(value);
    const parsed = parseValue(inner, entry.find(({ number }) => number === 2)?.value ?? Buffer.alloc(0));
    if (parsed !== undefined) setMember(map, bytesOf(entry, 1).toString(), parsed);
    object[member] = map;
  } else {
    const parsed = parseValue(shape, value);
    if (parsed !== undefined) object[member] = parsed;
  }
}

function parseValue(type: string, value: number | Buffer): JsonValue | undefined {
  if (typeof value === "number") return type === "bool" ? value !== 0 : value;
  if (type === "string") return value.toString();
  if (type === "bytes") return value.toString("base64");
  if (type === "double") return value.length === 8 ? value.readDoubleLE() : 0;
  const toValue = VALUES[type];
  if (toValue !== undefined) return toValue(fieldsOf(value));
  const message = messageOf(type);
  // A named list of strings, such as ExtraValue, is encoded as a message with an items field.
  if (message !== undefined && Object.values(message).join() === "items list string")
    return fieldsOf(value).map((item) => item.value.toString());
  return parseMessage(type, value);
}

// Go's zero time is an empty message.
function timeOf(fields: Field[]): string | undefined {
  if (fields.length === 0) return undefined;
  const micros = Math.floor(numberOf(fields, 2) / 1000);
  const seconds = new Date(numberOf(fields, 1) * 1000).toISOString().slice(0, -".000Z".length);
  return `${seconds}.${String(micros).padStart(6, "0")}Z`;
}

function jsonOf(fields: Field[]): JsonValue | undefined {
  const text = bytesOf(fields, 1).toString();
  return text === "" ? undefined : (JSON.parse(text) as JsonValue);
}

function numberOf(fields: Field[], number: number): number {
  const value = fields.find((field) => field.number === number)?.value;
  return typeof value === "number" ? value : 0;
}

function bytesOf(fields: Field[], number: number): Buffer {
  const value = fields.find((field) => field.number === number)?.value;
  return value !== undefined && typeof value !== "number" ? value : Buffer.alloc(0);
}

/** Parses the fields of a message, with the errors of Go's generated code. https://protobuf.dev/programming-guides/encoding */
function fieldsOf(bytes: number | Buffer): Field[] {
  const fields: Field[] = [];
  if (typeof bytes === "number") return fields;
  let at = 0;
  const readVarint = (): number => {
    let value = 0n;
    for (let shift = 0n; shift < 64n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw broken("unexpected EOF");
      value |= BigInt(byte & 0x7f) << shift;
      // A negative number takes ten bytes, in two's complement.
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    throw broken("proto: integer overflow");
  };
  const take = (length: number): Buffer => {
    if (length < 0) throw broken("proto: negative length found during unmarshaling");
    if (at + length > bytes.length) throw broken("unexpected EOF");
    return bytes.subarray(at, (at += length));
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (number <= 0) throw broken(`proto: illegal tag ${number} (wire type ${wireType})`);
    if (wireType === VARINT) fields.push({ number, value: readVarint() });
    else if (wireType === FIXED64 || wireType === FIXED32)
      fields.push({ number, value: take(wireType === FIXED64 ? 8 : 4) });
    else if (wireType === LENGTH) fields.push({ number, value: take(readVarint()) });
    else throw broken(`proto: illegal wireType ${wireType}`);
  }
  return fields;
}

function broken(problem: string): BodySyntaxError {
  return new BodySyntaxError(problem, "protobuf");
}

const MESSAGES_FILE = packageFile("data/kubernetes-1.36-protobuf.json");
const DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/**
 * A message: the name and type of each field, by field number. `list` and `map` precede the type of their values; `inline` precedes a message whose
 * fields are inlined in JSON.
 */
type Message = Readonly<Record<string, string>>;

let memoisedMessages: Readonly<Record<string, Message>> | undefined;

/** Returns a message by name, such as `io.k8s.api.core.v1.Pod`. */
function messageOf(name: string): Message | undefined {
  memoisedMessages ??= JSON.parse(readFileSync(MESSAGES_FILE, "utf8")) as Readonly<Record<string, Message>>;
  return Object.hasOwn(memoisedMessages, name) ? memoisedMessages[name] : undefined;
}

/** Returns the message name of a kind; undefined for custom resources, CustomResourceDefinitions, and APIServices. */
function messageNameOf(apiVersion: string, kind: string): string | undefined {
  // Clients send DeleteOptions in the group version of the object to delete.
  if (kind === "DeleteOptions") return DELETE_OPTIONS;
  const slash = apiVersion.indexOf("/");
  const group = slash === -1 ? "" : apiVersion.slice(0, slash);
  const name = schemaNameOf({ group, version: apiVersion.slice(slash + 1), kind });
  return name === undefined || messageOf(name) === undefined ? undefined : name;
}
