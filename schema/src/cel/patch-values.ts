// What the expressions of mutating policies construct, as JSON.
import type { CelMap, CelValue } from "@bufbuild/cel";
import { KIND, kindOf } from "./kubernetes-value.js";
import { loadLibrary } from "./library.js";
import { int64Number, type JsonObject, type JsonValue } from "../json/json.js";
import type { PatchOperation } from "../json/patch.js";

/** Returns what an expression of an apply configuration came to; throws if its types are not those of its fields. */
export function applyConfigurationOf(value: CelValue): JsonObject {
  const { isCelMap } = loadLibrary();
  if (!isCelMap(value) || kindOf(value) !== "Object")
    throw new Error("unsupported return type from ApplyConfiguration expression");
  checkTypes(value);
  return objectOf(value);
}

/** Returns the operations that an expression of a JSON patch came to; throws if it has made none. */
export function jsonPatchOf(value: CelValue): PatchOperation[] {
  const { isCelList, isCelMap } = loadLibrary();
  if (!isCelList(value)) throw new Error("type mismatch: JSONPatchType.expression should evaluate to array");
  return [...value].map((operation) => {
    if (!isCelMap(operation) || kindOf(operation) !== "JSONPatch")
      throw new Error("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
    const textAt = (field: string): string => {
      const text = operation.get(field) ?? "";
      if (typeof text !== "string")
        throw new Error(`unexpected type ${typeof text} for JSONPatchType '${field}' field`);
      return text;
    };
    const [from, given] = [textAt("from"), operation.get("value")];
    if (given !== undefined) checkTypes(given);
    return {
      op: textAt("op"),
      path: textAt("path"),
      ...(from === "" ? {} : { from }),
      ...(given === undefined ? {} : { value: jsonOf(given) }),
    };
  });
}

// An object below a field has the type of the object around it and the name of the field.
function checkTypes(root: CelValue): void {
  const { isCelMap } = loadLibrary();
  const name = isCelMap(root) ? kindOf(root) : undefined;
  const problems = typeof name === "string" ? typeProblems(root, name) : [];
  if (problems.length > 0) throw new Error(`type mismatch: ${problems.join("\n")}`);
}

function typeProblems(value: CelValue, path: string): string[] {
  const { isCelList, isCelMap } = loadLibrary();
  if (isCelList(value)) return [...value].flatMap((item) => typeProblems(item, path));
  if (!isCelMap(value)) return [];
  const name = kindOf(value);
  const fields = [...value.entries()].filter(([field]) => field !== KIND);
  if (typeof name !== "string") return fields.flatMap(([, member]) => typeProblems(member, path));
  const root = "which matches field name path from root Object type";
  return [
    ...(name === path
      ? []
      : [`unexpected type name ${JSON.stringify(name)}, expected ${JSON.stringify(path)}, ${root}`]),
    ...fields.flatMap(([field, member]) => typeProblems(member, `${path}.${String(field)}`)),
  ];
}

function objectOf(object: CelMap): JsonObject {
  const fields = [...object.entries()].filter(([name]) => name !== KIND);
  return Object.fromEntries(fields.map(([name, value]) => [String(name), fieldOf(value)]));
}

// kube-apiserver does not convert what is inside of lists and maps, so a map in a list is nothing that a field can be.
function fieldOf(value: CelValue, isInside = false): JsonValue {
  const { isCelList, isCelMap } = loadLibrary();
  if (value === null || value instanceof Uint8Array)
    throw new Error(`a field cannot be ${value === null ? "null" : "bytes"}`);
  if (isCelMap(value) && kindOf(value) !== undefined) return objectOf(value);
  if ((isCelList(value) || isCelMap(value)) && isInside) return UNCONVERTED;
  if (isCelList(value)) return [...value].map((item) => fieldOf(item, true));
  if (!isCelMap(value)) return jsonOf(value);
  return Object.fromEntries([...value.entries()].map(([name, member]) => [String(name), fieldOf(member, true)]));
}

// Fits neither a list nor a map.
const UNCONVERTED = "map[ref.Val]ref.Val";

function jsonOf(value: CelValue): JsonValue {
  const { isCelList, isCelMap, isCelUint } = loadLibrary();
  if (value === null || typeof value === "boolean" || typeof value === "string" || typeof value === "number")
    return value;
  if (typeof value === "bigint") return int64Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (isCelUint(value)) return Number(value.value);
  if (isCelList(value)) return [...value].map(jsonOf);
  if (!isCelMap(value)) throw new Error("the value has a type that JSON does not have");
  const entries = [...value.entries()].filter(([name]) => name !== KIND);
  return Object.fromEntries(entries.map(([name, member]) => [String(name), jsonOf(member)]));
}
