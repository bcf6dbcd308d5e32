// A process in which one primary waits in a queue with ten thousand others: the others are in another namespace, or in an initial list, and the
// primary is edited during that list.
import { setTimeout as sleep } from "node:timers/promises";
import { type DecodedResource, type ObjectKey, keyOf } from "#runtime/base/kubernetes-object.js";
import { createNoOpController, createShop } from "../no-op-controller.js";
import { settingsOf } from "../sync/sync-probe.js";

/** The scenario, and the number of other primaries. */
export interface FairnessSettings {
  readonly scene: "namespace" | "edit" | "first-come";
  readonly crowd: number;
}

/** The wait of the measured primary. */
export interface FairnessReport {
  readonly waitedMs: number;
  /** The number of other reconciles that started before its own. */
  readonly before: number;
}

// The default concurrency of an operator; each reconcile takes about as long as a request.
const CONCURRENCY = 50;
const RECONCILE_MS = 5;

const { scene, crowd } = settingsOf<FairnessSettings>();
const primaries = new Map<ObjectKey, DecodedResource>();
// In the scene "first-come", all primaries are in one namespace and in the initial list, so the queue is first-come, first-served.
const crowdNamespace = "crowd";
const loneNamespace = scene === "namespace" ? "lone" : crowdNamespace;
let began = 0;
let askedAt = 0;
let beganWhenAsked = 0;
const lone = createShop(loneNamespace, "lone");
const controller = createNoOpController({
  primaries,
  maxConcurrentReconciles: CONCURRENCY,
  onReconcile(key) {
    if (key === keyOf(lone.metadata)) report();
    else began++;
    return sleep(RECONCILE_MS);
  },
});
const tellOf = (object: ReturnType<typeof createShop>, isInitial: boolean) => {
  const key = keyOf(object.metadata);
  primaries.set(key, { object });
  controller.onPrimaryChange({ kind: "added", key, object, isInitial });
};
controller.start();
for (let index = 0; index < crowd; index++) tellOf(createShop(crowdNamespace, `shop-${index}`), scene !== "namespace");
askedAt = performance.now();
beganWhenAsked = began;
tellOf(lone, scene === "first-come");

function report(): void {
  const waited: FairnessReport = { waitedMs: performance.now() - askedAt, before: began - beganWhenAsked };
  process.send!(waited);
  setImmediate(() => process.exit(0));
}
