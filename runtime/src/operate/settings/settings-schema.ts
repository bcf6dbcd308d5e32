import { CONTROLLER_SETTINGS, OPERATOR_SETTINGS, type Setting, type SettingType } from "./setting-table.js";

type Schema = { readonly [keyword: string]: unknown };

/** Returns the JSON Schema of a file of settings, for editors. */
export function settingsSchema(): Schema {
  const operator = nested(OPERATOR_SETTINGS);
  const controller = nested(CONTROLLER_SETTINGS);
  const controllers = {
    type: "object",
    description: "The settings of controllers, by their names",
    additionalProperties: { type: "object", additionalProperties: false, properties: controller },
  };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of an operator",
    type: "object",
    additionalProperties: false,
    properties: { ...operator, controllers },
  };
}

function nested(settings: readonly Setting[]): Schema {
  const properties: { [name: string]: { [keyword: string]: unknown } } = {};
  for (const { path, type, help } of settings) {
    const [first = "", ...rest] = path.split(".");
    const leaf = { ...schemaOf(type), description: help };
    if (rest.length === 0) properties[first] = leaf;
    else {
      const group = (properties[first] ??= { type: "object", additionalProperties: false, properties: {} });
      (group["properties"] as { [name: string]: unknown })[rest.join(".")] = leaf;
    }
  }
  return properties;
}

function schemaOf(type: SettingType): Schema {
  switch (type.kind) {
    case "text":
    case "address":
      return { type: "string" };
    case "boolean":
      return { type: "boolean" };
    case "integer":
      return { type: type.kind, minimum: type.least };
    case "number":
      return { type: type.kind, minimum: type.least, ...(type.most !== undefined && { maximum: type.most }) };
    case "duration":
      return { type: "string", pattern: "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$" };
    case "list":
      return { type: "array", minItems: 1, items: { type: "string", minLength: 1 } };
    case "choice":
      return { enum: type.of };
  }
}
