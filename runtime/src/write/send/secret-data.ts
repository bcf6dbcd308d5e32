import type { ResourceDefinition } from "../../base/resource-definition.js";

/**
 * Returns a Secret with its `stringData` encoded into `data`, as the API server does: but that records the manager as the owner of
 * `stringData` (1.36), so that such an object could never be compared.
 */
export function withEncodedData<Desired extends object>(definition: ResourceDefinition, desired: Desired): Desired {
  if (definition.kind !== "Secret" || definition.apiVersion !== "v1" || !("stringData" in desired)) return desired;
  const { stringData, ...rest } = desired as { stringData?: { [key: string]: string } | null; data?: object };
  const encoded = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  if (encoded.length === 0) return rest as unknown as Desired;
  return { ...rest, data: { ...rest.data, ...Object.fromEntries(encoded) } } as unknown as Desired;
}
