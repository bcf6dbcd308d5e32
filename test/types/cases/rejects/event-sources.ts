import { informerSource } from "@gen-operator/runtime";
import type {
  NodePrimaryMapper,
  PodsUpdateFilter,
  PodWatchReconciler,
} from "../../../../fixtures/samples/podwatch/src/generated/podwatch/types.js";
import { Pod as PodClass, type Pod } from "../../../../fixtures/samples/podwatch/src/generated/index.js";

export const reconciler: PodWatchReconciler = {
  reconcile: ({ secondary }) => {
    secondary.pods[0]?.spec;
    secondary.pods[0]?.status?.podIP;
    secondary.pods.push(undefined as unknown as Pod);
    secondary.prices[0]?.perDay;
    secondary.nodes;
  },
};

export const filter: PodsUpdateFilter = (object, old) => object.status?.phase === old.spec?.nodeName;
export const mapper: NodePrimaryMapper = ({ spec }) => spec.node;

export const ofOneKey = informerSource({ name: "pods", resource: PodClass, mapper: ({ metadata }) => metadata.name });

export const looking: PodWatchReconciler = {
  reconcile: ({ context, workflow }) => {
    context.secondaries(PodClass)[0]?.spec;
    context.secondary(PodClass, { name: "a" })?.status?.podIP;
    context.secondaries(PodClass, { sources: "pods" });
    workflow.dependents.pods;
  },
};
