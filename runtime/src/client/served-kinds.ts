import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "./api-client.js";
import type { ReadOptions } from "./call-options.js";

/** Tells whether the API server serves a kind in any version, so that there may be objects of it. */
export async function isKnown(
  client: Pick<ApiClient, "isServed" | "readPath">,
  definition: ResourceDefinition,
  options: ReadOptions = {},
): Promise<boolean> {
  const { group } = definition;
  if (group === "") return client.isServed(definition, options);
  const text = (await client.readPath(`/apis/${group}`, options)) ?? "{}";
  const { versions = [] } = JSON.parse(text) as { versions?: { version: string }[] };
  const served = versions.map(({ version }) => client.isServed({ ...definition, version }, options));
  return (await Promise.all(served)).includes(true);
}
