// What expressions can construct: the well-known types of Protocol Buffers, and what mutating policies patch with.
import { DYN, type CheckedType } from "./types.js";

/** A type that can be constructed. */
export interface MessageType {
  readonly type: CheckedType;
  /** Returns the type of a field; undefined if there is no such field. */
  readonly field: (name: string) => CheckedType | undefined;
}

const LIST: CheckedType = { kind: "list", element: DYN };
const STRUCT: CheckedType = { kind: "map", key: { kind: "string" }, element: DYN };

// The types of their values; their fields are not checked.
const WELL_KNOWN: { readonly [name: string]: CheckedType } = {
  Any: DYN,
  BoolValue: { kind: "bool" },
  BytesValue: { kind: "bytes" },
  DoubleValue: { kind: "double" },
  Duration: { kind: "duration" },
  FloatValue: { kind: "double" },
  Int32Value: { kind: "int" },
  Int64Value: { kind: "int" },
  ListValue: LIST,
  StringValue: { kind: "string" },
  Struct: STRUCT,
  Timestamp: { kind: "timestamp" },
  UInt32Value: { kind: "uint" },
  UInt64Value: { kind: "uint" },
  Value: DYN,
};
const PATCH: { readonly [name: string]: CheckedType } = {
  op: { kind: "string" },
  path: { kind: "string" },
  from: { kind: "string" },
  value: DYN,
};

/** Returns a type that can be constructed; undefined if there is none. `Object{…}` and `JSONPatch{…}` are for mutating policies. */
export function messageNamed(name: string, hasPatchTypes: boolean): MessageType | undefined {
  const [, wellKnown = ""] = /^\.?google\.protobuf\.(\w+)$/.exec(name) ?? [];
  if (Object.hasOwn(WELL_KNOWN, wellKnown)) return { type: WELL_KNOWN[wellKnown]!, field: () => DYN };
  if (!hasPatchTypes) return undefined;
  const type = { kind: "object", name, field: () => DYN } as const;
  if (name === "JSONPatch") return { type, field: (field) => (Object.hasOwn(PATCH, field) ? PATCH[field] : undefined) };
  return /^Object(\.\w+)*$/.test(name) ? { type, field: () => DYN } : undefined;
}
