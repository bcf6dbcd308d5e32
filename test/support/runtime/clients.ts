// API clients of tests, and helpers that wait for objects.
import { waitFor, type WaitOptions } from "#apiserver/wait-for.js";
import type { KubernetesObject, ObjectRef, ResourceClass } from "#runtime/base/kubernetes-object.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";

/** A client for code that requires one but sends no requests; its server does not exist. */
export const unusedClient = new ApiClient(createConnection({ url: "http://127.0.0.1:1" }));

/** The object to wait for, the client that reads it, and the timeout. */
export interface AwaitedObject<Resource extends KubernetesObject> extends ObjectRef, WaitOptions {
  readonly client: ApiClient;
  readonly kind: ResourceClass<Resource>;
}

const read = <Resource extends KubernetesObject>({ client, kind, name, namespace }: AwaitedObject<Resource>) =>
  client.get(kind, namespace === undefined ? { name } : { name, namespace });

/** Waits until an object satisfies a condition, and returns it. */
export function untilObject<Resource extends KubernetesObject>(
  awaited: AwaitedObject<Resource>,
  holds: (object: Resource) => unknown,
): Promise<Resource> {
  const find = async () => {
    const object = await read(awaited);
    return object !== undefined && holds(object) ? object : undefined;
  };
  return waitFor(`${awaited.kind.definition.kind} ${awaited.name} is as wanted`, find, awaited);
}

/** Waits until an object does not exist. */
export async function untilNoObject(awaited: AwaitedObject<KubernetesObject>): Promise<void> {
  const isGone = async () => (await read(awaited)) === undefined;
  await waitFor(`${awaited.kind.definition.kind} ${awaited.name} is gone`, isGone, awaited);
}
