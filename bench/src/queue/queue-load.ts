// A process that tells a controller of events as fast as it can take them.
import { keyOf, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import type { DecodedResource } from "#runtime/cluster/decode-resource.js";
import { createNoOpController, createShop } from "../no-op-controller.js";
import { cpuSeconds, settingsOf } from "../sync/sync-probe.js";

/** What is told, and how often. */
export interface QueueSettings {
  readonly kind: "primary" | "secondary";
  readonly events: number;
  readonly primaries: number;
}

/** What the events cost. */
export interface QueueReport {
  readonly events: number;
  readonly reconciles: number;
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

// As many as come in one piece of a watch.
const EVENTS_PER_TURN = 100;
const NAMESPACES = 20;
// Enough for V8 to compile what there is to compile.
const WARM_UP_SHARE = 0.1;

const { kind, events, primaries: count } = settingsOf<QueueSettings>();
const primaries = new Map<ObjectKey, DecodedResource>();
const keys: ObjectKey[] = [];
for (let index = 0; index < count; index++) {
  const object = createShop(`team-${index % NAMESPACES}`, `shop-${index}`);
  const key = keyOf(object.metadata);
  primaries.set(key, { object });
  keys.push(key);
}
let reconciles = 0;
const controller = createNoOpController({ primaries, onReconcile: () => void reconciles++ });
controller.start();
for (const [key, { object }] of primaries) controller.onPrimaryChange({ kind: "added", key, object, isInitial: true });
await drain();
await tell(events * WARM_UP_SHARE);
reconciles = 0;
const before = { cpu: cpuSeconds(), at: performance.now() };
await tell(events);
const report: QueueReport = {
  events,
  reconciles,
  cpuSeconds: cpuSeconds() - before.cpu,
  wallSeconds: (performance.now() - before.at) / 1000,
};
process.send!(report);
await controller.stop(0);

async function tell(total: number): Promise<void> {
  for (let event = 0; event < total; event++) {
    const key = keys[(event * 7_919) % keys.length]!;
    if (kind === "secondary") controller.onSecondaryChange([key], { source: "deployments", object: key });
    else {
      const old = primaries.get(key)!.object;
      const object = { ...old, metadata: { ...old.metadata, generation: old.metadata.generation! + 1 } };
      primaries.set(key, { object });
      controller.onPrimaryChange({ kind: "updated", key, object, old, isInitial: false });
    }
    if (event % EVENTS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await drain();
}

async function drain(): Promise<void> {
  for (let { queued, running } = controller.counts(); queued + running > 0; { queued, running } = controller.counts())
    await new Promise((resolve) => setImmediate(resolve));
}
