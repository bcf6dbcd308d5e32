/**
 * Bodies in protobuf, as far as kubectl insists on them.
 *
 * `kubectl create namespace` and its like, and `kubectl auth`, send protobuf and give up on 415. Objects of the few kinds in
 * `protobuf-messages.ts` are turned into JSON; fields that are not listed there are skipped.
 */
import { setMember, type JsonObject, type JsonValue } from "../json.js";
import { MESSAGES } from "./protobuf-messages.js";

const MAGIC = Buffer.from("k8s\0");
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

type Field = { number: number; value: number | Buffer };

/** Parses a body; undefined when it is of a kind that is not understood. */
export function parseProtobuf(body: Buffer): JsonObject | undefined {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  // The envelope holds the type and, in its second field, the object.
  const envelope = fieldsOf(body.subarray(MAGIC.length));
  const typeMeta = fieldsOf(bytesOf(envelope, 1));
  const apiVersion = bytesOf(typeMeta, 1).toString();
  const kind = bytesOf(typeMeta, 2).toString();
  const message = `${apiVersion}/${kind}`;
  if (MESSAGES[message] === undefined) return undefined;
  return { kind, apiVersion, ...parseMessage(message, bytesOf(envelope, 2)) };
}

function parseMessage(name: string, bytes: Buffer): JsonObject {
  const object: JsonObject = {};
  for (const { number, value } of fieldsOf(bytes)) {
    const declaration = MESSAGES[name]?.[number];
    if (declaration === undefined) continue;
    const [member, ...type] = declaration.split(" ") as [string, ...string[]];
    addField(object, { member, type, value });
  }
  return object;
}

function addField(object: JsonObject, field: { member: string; type: string[]; value: number | Buffer }): void {
  const { member, type, value } = field;
  const [shape = "string", inner = "string"] = type;
  if (shape === "list") {
    const list = (object[member] ?? []) as JsonValue[];
    object[member] = [...list, parseValue(inner, value)];
  } else if (shape === "map") {
    const map = (object[member] ?? {}) as JsonObject;
    // An entry is a message of a key and a value.
    const entry = fieldsOf(value as Buffer);
    setMember(map, bytesOf(entry, 1).toString(), parseValue(inner, bytesOf(entry, 2)));
    object[member] = map;
  } else object[member] = parseValue(shape, value);
}

function parseValue(type: string, value: number | Buffer): JsonValue {
  if (typeof value === "number") return type === "bool" ? value !== 0 : value;
  if (type === "string") return value.toString();
  return type === "bytes" ? value.toString("base64") : parseMessage(type, value);
}

function bytesOf(fields: Field[], number: number): Buffer {
  const field = fields.find((one) => one.number === number);
  return field !== undefined && typeof field.value !== "number" ? field.value : Buffer.alloc(0);
}

// https://protobuf.dev/programming-guides/encoding
function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (wireType === VARINT) fields.push({ number, value: readVarint() });
    else if (wireType === FIXED64) at += 8;
    else if (wireType === FIXED32) at += 4;
    else if (wireType === LENGTH) {
      const length = readVarint();
      fields.push({ number, value: bytes.subarray(at, at + length) });
      at += length;
    } else return fields;
  }
  return fields;
}
