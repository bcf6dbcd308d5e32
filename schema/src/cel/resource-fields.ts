import type { Schema } from "../values/schema.js";

type Properties = NonNullable<Schema["properties"]>;

const TEXT: Schema = { type: "string" };
const RESOURCE: Properties = {
  apiVersion: TEXT,
  kind: TEXT,
  metadata: { type: "object", properties: { name: TEXT, generateName: TEXT } },
};

/**
 * Returns the fields of a resource that rules see: whatever its schema says, the apiVersion, the kind and the names; all of the metadata if
 * the schema declares those by itself.
 */
export function resourceFields(properties: Properties = {}): Properties {
  const { apiVersion, kind, metadata } = properties;
  const { name, generateName } = metadata?.type === "object" ? (metadata.properties ?? {}) : {};
  const isWhole = [apiVersion, kind, name, generateName].every((field) => field?.type === "string");
  return isWhole ? properties : { ...properties, ...RESOURCE };
}
