// What the unit tests of event sources start them with: time that stands still, primaries of the test, and a record of what they say.
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { keyOf, refOfKey } from "#runtime/base/kubernetes-object.js";
import type { EventSourceContext } from "#runtime/sources/event-source.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { defineResource } from "#runtime/api/define-resource.js";
import { unusedClient } from "../../../support/runtime/clients.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { SimulatedInformers } from "./simulated-informers.js";
import type { SecondaryCause } from "#runtime/base/activity.js";

export const page = defineResource({
  group: "example.com",
  version: "v1",
  kind: "Page",
  plural: "pages",
  scope: "Namespaced",
  hasStatusSubresource: true,
  isCustom: true,
  schema: {},
});

/** One call of `notify`. */
export interface Notification {
  readonly primaries: readonly ObjectKey[];
  readonly cause: SecondaryCause | undefined;
}

/** A primary of this key. */
export function primaryOf(key: ObjectKey): KubernetesObject {
  return {
    apiVersion: page.apiVersion,
    kind: page.kind,
    metadata: { ...refOfKey(key), uid: key, resourceVersion: "1" },
  };
}

/** Creates a context whose primaries are those of the keys. */
export function createSourceContext(...keys: readonly ObjectKey[]) {
  const clock = new VirtualClock();
  const informers = new SimulatedInformers();
  const primaries = new ResourceView(page);
  const known = new ResourceCache();
  primaries.attach(known);
  let version = 1;
  const addPrimary = (object: KubernetesObject) => {
    const metadata = { ...object.metadata, resourceVersion: String(++version) };
    known.observe({ object: { ...object, metadata } });
  };
  const deletePrimary = (key: ObjectKey) =>
    known.observeDeletion({
      ...primaryOf(key),
      metadata: { ...primaryOf(key).metadata, resourceVersion: String(++version) },
    });
  for (const key of keys) addPrimary(primaryOf(key));
  const notifications: Notification[] = [];
  const lines: string[] = [];
  const log = (level: string) => (_fields: object, message: string) => void lines.push(`${level}: ${message}`);
  const context: EventSourceContext = {
    controller: "pages",
    primary: page,
    primaries,
    namespaces: undefined,
    fieldManager: "pages",
    informers,
    client: unusedClient,
    logger: { debug: () => {}, info: log("info"), warn: log("warn"), error: log("error") },
    clock,
    notify: (notified, cause) => void notifications.push({ primaries: [...notified], cause }),
  };
  /** Lets everything happen that needs no time. */
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  /** Moves time forward and lets happen what comes of it. */
  const advance = async (ms: number) => {
    clock.advance(ms);
    await settle();
  };
  /** The primaries notified since the last call. */
  const notified = () => notifications.splice(0).flatMap((each) => each.primaries);
  return { context, clock, addPrimary, deletePrimary, informers, notifications, notified, lines, settle, advance };
}

/** The change that tells of a primary. */
export function changeOf(kind: "added" | "updated" | "deleted", object: KubernetesObject) {
  return { kind, key: keyOf(object.metadata), object, isInitial: false } as const;
}
