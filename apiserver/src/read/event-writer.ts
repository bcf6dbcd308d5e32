import type { ServedType } from "../builtin/served-type.js";
import { objectAt, type JsonObject } from "../json.js";
import { apiVersionOf } from "../object/object-key.js";
import { zeroObjectOf } from "../object/zero-object.js";
import type { ServedResource } from "../registry/served-resource.js";
import type { StoredObject } from "../storage/stored-object.js";
import type { EventWriter } from "./watch.js";

const INITIAL_EVENTS_END = { "k8s.io/initial-events-end": "true" };
const writers = new WeakMap<ServedResource, EventWriter>();

/** Returns the writer of plain JSON events, which all watches of a resource share. */
export function jsonEventWriter(resource: ServedResource): EventWriter {
  let writer = writers.get(resource);
  if (writer === undefined) writers.set(resource, (writer = createEventWriter(resource)));
  return writer;
}

function createEventWriter(resource: ServedResource): EventWriter {
  // Every watch writes an event before the next event comes, so remembering one line is enough.
  let last: { type: string; object: StoredObject; line: Buffer } | undefined;
  return {
    write(type, object) {
      if (last?.object === object && last.type === type) return last.line;
      const line = Buffer.from(`{"type":"${type}","object":${resource.jsonOf(object)}}\n`);
      last = { type, object, line };
      return line;
    },
    writeBookmark: (revision, options) => eventLine("BOOKMARK", bookmarkOf(resource, revision, options)),
  };
}

/** Builds one line of a watch. */
export function eventLine(type: string, object: unknown): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}

// Inside kube-apiserver the number of their Pods is no pointer.
const COUNTED_KINDS = new Set(["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"]);

function emptyObjectOf({ schemaName, kind }: ServedType): JsonObject {
  const zero = schemaName === undefined ? {} : zeroObjectOf(schemaName);
  return COUNTED_KINDS.has(kind) ? { ...zero, spec: { replicas: 0, ...objectAt(zero, "spec") } } : zero;
}

/** Builds the object of a bookmark, which has a revision and else what Go shows of an object without members. */
export function bookmarkOf(
  { type }: ServedResource,
  revision: number,
  { endsInitialEvents }: { endsInitialEvents: boolean },
): JsonObject {
  const annotations = endsInitialEvents ? { annotations: INITIAL_EVENTS_END } : {};
  return {
    ...emptyObjectOf(type),
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { resourceVersion: String(revision), ...annotations },
  };
}
