import type { CountedCluster } from "./counted-cluster.js";

interface Named {
  readonly metadata: { readonly name: string };
}

/**
 * Follows the objects of a collection by one watch, and returns their present states by name. Listing them until all are as expected would cost
 * the API server the more, the longer an operator takes.
 */
export async function followObjects<T extends Named>(
  cluster: CountedCluster,
  path: string,
): Promise<ReadonlyMap<string, T>> {
  const objects = new Map<string, T>();
  await cluster.watch(`${path}?watch=true`, (line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: T };
    if (type === "DELETED") objects.delete(object.metadata.name);
    else if (type === "ADDED" || type === "MODIFIED") objects.set(object.metadata.name, object);
  });
  return objects;
}
