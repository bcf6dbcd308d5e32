import { didYouMean, quote } from "../../diagnostic.js";
import { isRecord } from "../yaml/json.js";
import type { YamlPath } from "../yaml/yaml-document.js";

type Schema = { readonly [keyword: string]: unknown };

/** A path of the subresource `scale` that the schema lacks. */
export interface UselessPath {
  readonly path: YamlPath;
  readonly message: string;
  readonly hint?: string;
}

const SCALE_PATHS = ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"];

/** Lists the paths of the subresource `scale` that lead to no field: the API server takes them. */
export function findUselessScalePaths(subresources: unknown, schema: Schema): UselessPath[] {
  const scale = isRecord(subresources) ? subresources["scale"] : undefined;
  if (!isRecord(scale)) return [];
  return SCALE_PATHS.flatMap((name): UselessPath[] => {
    const path = scale[name];
    // To the API server an index is a part of a name.
    const fields = typeof path === "string" && path.startsWith(".") ? path.slice(1).split(".") : [];
    const known = fields.length === 0 ? undefined : fieldsInstead(schema, fields);
    if (known === undefined) return [];
    const text = textOf(fields);
    const message = `${name} leads to ${quote(text)}, which the schema lacks, so the subresource scale is without that value`;
    return [{ path: ["scale", name], message, ...didYouMean(text, known.map(textOf)) }];
  });
}

function textOf(fields: readonly string[]): string {
  return `.${fields.join(".")}`;
}

/** Returns the fields that exist in place of one that does not; undefined if the path may lead to a field. */
function fieldsInstead(
  schema: Schema,
  [first, ...rest]: readonly string[],
): readonly (readonly string[])[] | undefined {
  if (first === undefined || schema["x-kubernetes-preserve-unknown-fields"] === true) return undefined;
  const { additionalProperties } = schema;
  if (additionalProperties === true) return undefined;
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const field = Object.hasOwn(properties, first) ? properties[first] : additionalProperties;
  if (!isRecord(field)) return Object.keys(properties).map((name) => [name]);
  return fieldsInstead(field, rest)?.map((path) => [first, ...path]);
}
