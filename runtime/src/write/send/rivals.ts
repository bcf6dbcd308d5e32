import type { ApiClient } from "../../client/api-client.js";
import type { FieldsV1 } from "../../match/field-set.js";

/** An entry of the managed fields. */
export type ManagedEntry = { readonly [member in "manager" | "operation" | "subresource"]?: string } & {
  fieldsV1?: FieldsV1;
};

/** Returns the managed fields of the object at `path`, which no cache keeps. */
export async function readManagedFields(client: ApiClient, path: string, signal?: AbortSignal) {
  const { metadata } = JSON.parse((await client.readPath(path, { signal })) ?? "{}");
  return (metadata?.managedFields ?? []) as readonly ManagedEntry[];
}

/** Returns the field managers but `own` that own one of these paths (`data.text`) of the object at `path`; none if that cannot be read now. */
export async function findRivals(
  client: ApiClient,
  { path, paths, own }: { readonly path: string; readonly paths: readonly string[]; readonly own: string },
  signal?: AbortSignal,
): Promise<readonly string[]> {
  try {
    const managedFields = await readManagedFields(client, path, signal);
    // Up to the first item of a list, which managed fields name by its keys.
    const names = paths.map((each) => each.replace(/\[.*$/, "").split("."));
    const rivals = managedFields.flatMap(({ manager, fieldsV1 = {} }) =>
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
