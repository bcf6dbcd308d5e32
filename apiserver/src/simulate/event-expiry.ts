import type { Controller } from "./feed/controller.js";
import type { KubernetesObject } from "./feed/kubernetes-object.js";

interface Event extends KubernetesObject {
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { lastObservedTime?: string };
}

/** Default of kube-apiserver's --event-ttl. */
const TIME_TO_LIVE_MS = 3_600_000;

/** Deletes Events an hour after their last occurrence. */
export function createEventExpiry(): Controller<Event> {
  return {
    kind: "events.",
    async reconcile(event, { cluster, now }) {
      const { lastTimestamp, eventTime, series, metadata } = event;
      const times = [metadata.creationTimestamp, lastTimestamp, eventTime, series?.lastObservedTime];
      const last = Math.max(...times.map((time) => Date.parse(time ?? "") || 0));
      const left = last + TIME_TO_LIVE_MS - now().getTime();
      if (left > 0) return left;
      await cluster.remove("events.", event);
      return undefined;
    },
  };
}
