import type { LoadClient } from "../load-client.js";

interface Named {
  readonly metadata: { readonly name: string };
}

/**
 * Follows the objects of a collection, or those with such labels, by a watch, and returns their present states by name. Listing them until
 * all are as expected would cost the API server the more, the longer an operator takes. A watch that ends, as that of a driver which reads
 * too slowly does, begins anew.
 */
export async function followObjects<T extends Named>(
  client: Pick<LoadClient, "watch">,
  path: string,
  labelSelector = "",
): Promise<ReadonlyMap<string, T>> {
  const objects = new Map<string, T>();
  const onLine = (line: string) => {
    const { type, object } = JSON.parse(line) as { type: string; object: T };
    if (type === "DELETED") objects.delete(object.metadata.name);
    else if (type === "ADDED" || type === "MODIFIED") objects.set(object.metadata.name, object);
  };
  const watch = async (): Promise<void> => {
    // A watch without a version begins with all objects that are there.
    objects.clear();
    await client.watch(
      `${path}?watch=true&labelSelector=${encodeURIComponent(labelSelector)}`,
      onLine,
      () => void watch().catch(() => {}),
    );
  };
  await watch();
  return objects;
}
