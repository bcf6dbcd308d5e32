import type { ApiClient } from "../../client/api-client.js";

/** Returns the field managers but `own` that own one of these paths (`data.text`) of the object at `path`; none if that cannot be read now. */
export async function findRivals(
  client: ApiClient,
  { path, paths, own }: { readonly path: string; readonly paths: readonly string[]; readonly own: string },
  signal?: AbortSignal,
): Promise<readonly string[]> {
  try {
    const { metadata } = JSON.parse((await client.readPath(path, { signal })) ?? "") as {
      metadata: { managedFields?: { manager?: string; fieldsV1?: object }[] };
    };
    // Up to the first item of a list, which managed fields name by its keys.
    const names = paths.map((each) => each.replace(/\[.*$/, "").split("."));
    const rivals = (metadata.managedFields ?? []).flatMap(({ manager, fieldsV1 = {} }) =>
      manager !== own && names.some((each) => owns(fieldsV1, each)) ? (manager ?? []) : [],
    );
    return [...new Set(rivals)];
  } catch {
    // Without it the message says less, and nothing else is different.
    return [];
  }
}

function owns(fields: object, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true;
  const inner = (fields as { readonly [key: string]: object | undefined })[`f:${name}`];
  return inner !== undefined && (Object.keys(inner).length === 0 || owns(inner, rest));
}
