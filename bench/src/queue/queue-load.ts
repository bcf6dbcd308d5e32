// A process that sends events to a controller as fast as it can process them.
import { type DecodedResource, type ObjectKey, keyOf } from "#runtime/base/kubernetes-object.js";
import { createNoOpController, createShop } from "../no-op-controller.js";
import { cpuSeconds, settingsOf } from "../sync/sync-probe.js";

/** The kind and number of events. */
export interface QueueSettings {
  readonly kind: "primary" | "secondary";
  readonly events: number;
  readonly primaries: number;
}

/** The cost of the events. */
export interface QueueReport {
  readonly events: number;
  readonly reconciles: number;
  readonly cpuSeconds: number;
}

/** An event to send. */
interface Event {
  readonly key: ObjectKey;
  /** The new state of the primary. */
  readonly entry: DecodedResource;
}

// The number of events in a chunk of a watch.
const EVENTS_PER_TURN = 100;
const NAMESPACES = 20;
// Suffices for V8 to compile the hot code.
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
let generation = 1;
let reconciles = 0;
const controller = createNoOpController({ primaries, onReconcile: () => {}, observer: () => void reconciles++ });
controller.start();
for (const [key, { object }] of primaries) controller.onPrimaryChange({ kind: "added", key, object, isInitial: true });
await drain(count);
await measure(events * WARM_UP_SHARE);
reconciles = 0;
const report: QueueReport = { events, cpuSeconds: await measure(events), reconciles };
process.send!(report);
await controller.stop(0);

/** Returns the CPU time of the events in seconds, until the end of the last reconcile; excludes the creation of the events. */
async function measure(total: number): Promise<number> {
  let seconds = 0;
  for (let told = 0; told < total; told += count) {
    const round = createEvents(Math.min(count, total - told));
    const reconciledBefore = reconciles;
    const before = cpuSeconds();
    await tell(round);
    await drain(reconciledBefore + round.length);
    seconds += cpuSeconds() - before;
  }
  return seconds;
}

/** Creates events for different primaries, in another order than that of the store. */
function createEvents(total: number): Event[] {
  generation++;
  return Array.from({ length: total }, (_, index) => {
    const key = keys[(index * 7_919) % keys.length]!;
    const entry = primaries.get(key)!;
    if (kind === "secondary") return { key, entry };
    const { object } = entry;
    return { key, entry: { object: { ...object, metadata: { ...object.metadata, generation } } } };
  });
}

async function tell(round: readonly Event[]): Promise<void> {
  for (const [index, { key, entry }] of round.entries()) {
    if (kind === "secondary") controller.onSecondaryChange([key], { source: "deployments", object: key });
    else {
      const old = primaries.get(key)!.object;
      primaries.set(key, entry);
      controller.onPrimaryChange({ kind: "updated", key, object: entry.object, old, isInitial: false });
    }
    if (index % EVENTS_PER_TURN === 0) await nextTurn();
  }
}

// In each round, each primary gets one event and therefore one reconcile.
async function drain(until: number): Promise<void> {
  while (reconciles < until) await nextTurn();
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
