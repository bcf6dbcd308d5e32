import { quote } from "../../diagnostic.js";
import { isRecord } from "../yaml/json.js";
import type { YamlPath } from "../yaml/yaml-document.js";

type Schema = { readonly [keyword: string]: unknown };

/** A path of the subresource `scale` that the schema lacks. */
export interface UselessPath {
  readonly path: YamlPath;
  readonly message: string;
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
    if (fields.length === 0 || !leadsNowhere(schema, fields)) return [];
    const message = `${name} leads to ${quote(`.${fields.join(".")}`)}, which the schema lacks, so the subresource scale is without that value`;
    return [{ path: ["scale", name], message }];
  });
}

/** Tells whether a path certainly leads to no field. */
function leadsNowhere(schema: Schema, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined || schema["x-kubernetes-preserve-unknown-fields"] === true) return false;
  const { additionalProperties } = schema;
  if (additionalProperties === true) return false;
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const field = Object.hasOwn(properties, first) ? properties[first] : additionalProperties;
  return !isRecord(field) || leadsNowhere(field, rest);
}
