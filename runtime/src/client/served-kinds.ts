import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "./api-client.js";
import type { ReadOptions } from "./call-options.js";
import { collectionPath } from "./resource-path.js";

type Reader = Pick<ApiClient, "readPath">;

/** Tells whether the API server serves a kind in its version. */
export async function isServed(reader: Reader, definition: ResourceDefinition, options: ReadOptions): Promise<boolean> {
  const path = collectionPath(definition).replace(/\/[^/]+$/, "");
  const found = JSON.parse((await reader.readPath(path, options)) ?? "{}") as { resources?: { name: string }[] };
  return (found.resources ?? []).some(({ name }) => name === definition.plural);
}

/** Tells whether the API server serves a kind in any version, so that there may be objects of it. */
export async function isKnown(
  reader: Reader,
  definition: ResourceDefinition,
  options: ReadOptions = {},
): Promise<boolean> {
  const { group } = definition;
  if (group === "") return isServed(reader, definition, options);
  const text = (await reader.readPath(`/apis/${group}`, options)) ?? "{}";
  const { versions = [] } = JSON.parse(text) as { versions?: { version: string }[] };
  const served = versions.map(({ version }) => isServed(reader, { ...definition, version }, options));
  return (await Promise.all(served)).includes(true);
}
