import type { LoadClient } from "../load-client.js";

interface Named {
  readonly metadata: { readonly name: string };
}

/**
 * Watches the objects of a collection that match the selector, and returns their current state by name. Polling lists instead would load the API
 * server more, the longer an operator takes. A watch that ends, for example because the driver reads too slowly, is restarted.
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
    // A watch without a resourceVersion starts with all existing objects.
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
