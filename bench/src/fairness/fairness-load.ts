// A process in which one primary waits behind ten thousand others: of another namespace, or of a list while somebody edits it.
import { setTimeout as sleep } from "node:timers/promises";
import { type DecodedResource, type ObjectKey, keyOf } from "#runtime/base/kubernetes-object.js";
import { createNoOpController, createShop } from "../no-op-controller.js";
import { settingsOf } from "../sync/sync-probe.js";

/** Who waits behind whom. */
export interface FairnessSettings {
  readonly scene: "namespace" | "edit" | "first-come";
  readonly crowd: number;
}

/** How long the one had to wait. */
export interface FairnessReport {
  readonly waitedMs: number;
  /** How many reconciles of others began before its own. */
  readonly before: number;
}

// As many at once as an operator has by default, each as long as a request takes.
const CONCURRENCY = 50;
const RECONCILE_MS = 5;

const { scene, crowd } = settingsOf<FairnessSettings>();
const primaries = new Map<ObjectKey, DecodedResource>();
// First come, first served is what a queue does that has one line for all.
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
