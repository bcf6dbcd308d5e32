import { updateStatus } from "@gen-operator/runtime";
import type {
  NodePrimaryMapper,
  NodeResource,
  NodeUpdateFilter,
  PodsDeleteFilter,
  PodsFilter,
  PodsResource,
  PodWatchReconciler,
  PodWatchSources,
  PricesResource,
} from "../../../../fixtures/samples/podwatch/src/generated/podwatch/types.js";
import { Node, Pod, PodWatch } from "../../../../fixtures/samples/podwatch/src/generated/index.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

// Lists, in the types of what is kept.
export type Pods = Expect<Equal<PodWatchSources["pods"], readonly PodsResource[]>>;
export type Prices = Expect<Equal<PodWatchSources["prices"], readonly PricesResource[]>>;
export type Fields = Expect<Equal<keyof PodsResource & string, "apiVersion" | "kind" | "metadata" | "status">>;
export type Phase = Expect<
  Equal<NonNullable<PodsResource["status"]>["phase"], NonNullable<NonNullable<Pod["status"]>["phase"]> | undefined>
>;
export type Metadata = Expect<Equal<keyof NodeResource & string, "apiVersion" | "kind" | "metadata">>;

// A whole object is also what is kept of it.
export const kept = (pod: Pod): PodsResource => pod;

export const isRunning: PodsFilter = ({ status }) => status?.phase === "Running";
export const isGone: PodsDeleteFilter = (_, isFinalStateUnknown) => !isFinalStateUnknown;
export const isMoved: NodeUpdateFilter = (object, old) => object.metadata.labels !== old.metadata.labels;
export const nodesOf: NodePrimaryMapper = ({ spec }) => [spec.node ?? ""];

export const reconciler: PodWatchReconciler = {
  reconcile: async ({ secondary: { pods, prices, node }, primary }) => {
    const cost = prices.reduce((sum, { perHour }) => sum + perHour, 0);
    return updateStatus({ running: pods.filter(isRunning).length, cost, zone: node[0]?.metadata.name ?? primary.kind });
  },
  cleanup: ({ secondary }) => {
    secondary.pods.forEach(({ metadata }) => metadata.name);
  },
};

// Looking up by class gives what is kept, and of other classes everything.
export const looking: PodWatchReconciler = {
  reconcile: ({ context }) => {
    const phases = context.secondaries(Pod, { source: "pods" }).map(({ status }) => status?.phase);
    const name = context.secondary(Node)?.metadata.name ?? context.secondary(PodWatch)?.spec.mode;
    context.logger.info({ phases, name }, "looked up");
  },
};
