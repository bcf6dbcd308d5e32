import { CONTROLLER_SETTINGS, OPERATOR_SETTINGS, type Setting } from "#runtime/operate/settings.js";

type Schema = { readonly [keyword: string]: unknown };

/** Returns the JSON Schema of settings files, for editors. */
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
    const leaf = { ...type.schema, description: help };
    if (rest.length === 0) properties[first] = leaf;
    else {
      const group = (properties[first] ??= { type: "object", additionalProperties: false, properties: {} });
      (group["properties"] as { [name: string]: unknown })[rest.join(".")] = leaf;
    }
  }
  return properties;
}
