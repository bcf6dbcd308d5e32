import type { RawSchema } from "../../model/project-model.js";
import { isRecord, schemasOf } from "../../model/schema/raw-schema.js";

/** What an API server says of definitions and their fields, by names; the empty name is for the definition itself. */
export type Descriptions = { readonly [definition: string]: { readonly [field: string]: string } };

/** Puts descriptions into the definitions that they are of. */
export function describe(
  definitions: ReadonlyMap<string, RawSchema>,
  descriptions: Descriptions,
): ReadonlyMap<string, RawSchema> {
  return new Map(
    [...definitions].map(([name, schema]) => {
      const texts = Object.hasOwn(descriptions, name) ? descriptions[name] : undefined;
      return [name, texts === undefined ? schema : describeOne(schema, texts)];
    }),
  );
}

function describeOne(schema: RawSchema, { "": own, ...fields }: { readonly [field: string]: string }): RawSchema {
  const described = own === undefined ? schema : { ...schema, description: own };
  if (!isRecord(schema["properties"])) return described;
  const properties = [...schemasOf(schema, "properties")].map(([name, field]) => {
    const text = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return [name, text === undefined ? field : { ...field, description: text }] as const;
  });
  return { ...described, properties: Object.fromEntries(properties) };
}
