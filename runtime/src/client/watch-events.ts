import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { ApiStatus } from "../base/errors.js";
import { objectIn, type KubernetesObject } from "../base/kubernetes-object.js";
import { abortWith } from "../base/promises.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { WatchOptions } from "./call-options.js";
import { errorOf, errorOfStatus } from "./requester.js";
import { collectionPath, queryOf } from "./resource-path.js";
import type { Transport } from "./transport.js";

/** An event of a watch; the object of a BOOKMARK has only its resource version. */
export interface WatchedEvent<Resource extends KubernetesObject = KubernetesObject> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: Resource;
}

/** Yields the events of one watch until its signal is aborted, the server ends it, or nobody asks for more. */
export async function* watchEvents<Resource extends KubernetesObject>(
  transport: Transport,
  definition: ResourceDefinition,
  { namespace, allowBookmarks, signal, ...selection }: WatchOptions,
): AsyncGenerator<WatchedEvent<Resource>, void> {
  const query = queryOf({ watch: true, ...selection, allowWatchBookmarks: allowBookmarks });
  const leaving = new AbortController();
  const leave = abortWith(leaving, signal);
  const body = new PassThrough();
  const request = {
    method: "GET",
    path: collectionPath(definition, namespace) + query,
    signal: leaving.signal,
  } as const;
  const answered = transport.send(request, {
    // Whoever is slow to take the events holds the server back.
    onData: (chunk) => (body.write(chunk) ? undefined : once(body, "drain").then(() => {})),
  });
  answered.then(
    (response) => (response.status === 200 ? body.end() : body.destroy(errorOf(response))),
    (error: Error) => body.destroy(error),
  );
  try {
    const splitter = transport.createEventSplitter(request);
    for await (const chunk of body as AsyncIterable<Buffer>)
      for (const line of splitter.split(chunk)) {
        if (signal?.aborted === true) return;
        const event = objectIn<WatchedEvent<Resource> | { type: "ERROR"; object: ApiStatus }>(line.toString("utf8"));
        // An API server that fails may send null.
        if (!event?.object) throw transport.foreignAnswer(request, "with no event of a watch");
        if (event.type === "ERROR") throw errorOfStatus(event.object);
        yield event as WatchedEvent<Resource>;
      }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    leave();
    leaving.abort();
  }
}
