// A process that tells a controller of events as fast as it can take them.
import { type DecodedResource, type ObjectKey, keyOf } from "#runtime/base/kubernetes-object.js";
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
}

/** An event that is still to be told. */
interface Event {
  readonly key: ObjectKey;
  /** What the primary is now. */
  readonly entry: DecodedResource;
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

/** Returns the CPU seconds that events cost, from being told to the end of the last reconcile; what makes them does not count. */
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

/** Makes events of as many primaries, in another order than that in which they are stored. */
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

// Each primary has one event in a round, and after it a reconcile.
async function drain(until: number): Promise<void> {
  while (reconciles < until) await nextTurn();
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
