import { type JsonObject, type JsonValue, arrayAt, canonicalJson, isObject, memberOf, stringAt } from "../../json.js";
import { ageOf } from "../age.js";
import { textsOfEveryObject } from "../column-texts.js";
import { compileJsonPath } from "./json-path.js";

/** A printer column of a custom resource. */
export interface CustomColumn {
  definition: JsonObject;
  cell: (object: JsonObject, now: Date) => JsonValue;
}

/** Returns the additionalPrinterColumns of a CRD version, or only Age if there are none. */
export function customColumnsOf(version: JsonObject): CustomColumn[] {
  const declared = (arrayAt(version, "additionalPrinterColumns") ?? []).filter(isObject);
  return (declared.length === 0 ? [ageColumn()] : declared).map(columnOf);
}

function ageColumn(): JsonObject {
  return {
    name: "Age",
    type: "date",
    jsonPath: ".metadata.creationTimestamp",
    description: textsOfEveryObject().creationTimestamp,
  };
}

function columnOf(column: JsonObject): CustomColumn {
  const path = stringAt(column, "jsonPath") ?? "";
  const type = stringAt(column, "type") ?? "string";
  const find = compileJsonPath(path);
  return {
    definition: {
      name: stringAt(column, "name") ?? "",
      type,
      format: stringAt(column, "format") ?? "",
      description: stringAt(column, "description") ?? `Custom resource definition column (in JSONPath format): ${path}`,
      priority: memberOf(column, "priority") ?? 0,
    },
    cell: (object, now) => cellOf(type, find(object)[0], now),
  };
}

function cellOf(type: string, value: JsonValue | undefined, now: Date): JsonValue {
  // Go templates print this for null.
  if (value === null && type === "string") return "<no value>";
  if (value === undefined || value === null) return null;
  switch (type) {
    case "string":
      return typeof value === "string" ? value : typeof value === "object" ? canonicalJson(value) : String(value);
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      if (typeof value !== "string") return null;
      return Number.isNaN(Date.parse(value)) ? "<invalid>" : ageOf(value, now);
    default:
      return null;
  }
}
