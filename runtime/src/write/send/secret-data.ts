import type { ResourceDefinition } from "../../base/resource-definition.js";

/**
 * Returns a Secret with its `stringData` encoded into `data`; any other object as it is.
 *
 * The API server stores `stringData` as `data`, but records the manager as the owner of `stringData` (1.36): such an object could never
 * be compared, and nobody would own the value.
 */
export function withEncodedData<Desired extends object>(definition: ResourceDefinition, desired: Desired): Desired {
  if (definition.kind !== "Secret" || definition.apiVersion !== "v1" || !("stringData" in desired)) return desired;
  const { stringData, ...rest } = desired as { stringData?: { [key: string]: string } | null; data?: object };
  const encoded = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  if (encoded.length === 0) return rest as unknown as Desired;
  return { ...rest, data: { ...rest.data, ...Object.fromEntries(encoded) } } as unknown as Desired;
}
