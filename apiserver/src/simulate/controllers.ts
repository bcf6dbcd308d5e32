// The controllers and the objects that they are created from.
import { createSigning } from "./certificates.js";
import { createEventExpiry } from "./event-expiry.js";
import type { Controller } from "./feed/controller.js";
import { createCronJobs } from "./jobs/cron-jobs.js";
import { createJobs } from "./jobs/jobs.js";
import { createNamespaceContents } from "./namespace-contents.js";
import { createNodes } from "./pods/node.js";
import { createPods } from "./pods/pods.js";
import { createAutoscalers } from "./policies/autoscalers.js";
import { createClusterRoles } from "./policies/cluster-roles.js";
import { createDisruptionBudgets } from "./policies/disruption-budgets.js";
import { createPolicyTypes } from "./policies/policy-types.js";
import { createQuotas } from "./policies/quotas.js";
import { createEndpointSlices, createEndpoints } from "./services/endpoints.js";
import { createLoadBalancers } from "./services/load-balancers.js";
import { createClaims, createVolumes } from "./volumes.js";
import { createDaemonSets } from "./workloads/daemon-sets.js";
import { createDeployments } from "./workloads/deployments.js";
import { createReplicaSets } from "./workloads/replica-sets.js";
import { createStatefulSets } from "./workloads/stateful-sets.js";

/** A controller of one kind. */
export type KindController =
  | "pods"
  | "deployments"
  | "replicasets"
  | "statefulsets"
  | "daemonsets"
  | "jobs"
  | "cronjobs"
  | "endpoints"
  | "load-balancers"
  | "volumes"
  | "namespace-contents"
  | "disruption-budgets"
  | "autoscalers"
  | "cluster-roles"
  | "certificates"
  | "quotas"
  | "policy-types"
  | "events";

/** Name of a controller that the server can simulate. */
export type SimulatedController = KindController | "garbage-collection" | "namespaces";

// The controllers have different object types, which the type of the table cannot express.
const CONTROLLERS: Record<KindController, () => unknown[]> = {
  pods: () => [createPods(), createNodes()],
  deployments: () => [createDeployments()],
  replicasets: () => [createReplicaSets()],
  statefulsets: () => [createStatefulSets()],
  daemonsets: () => [createDaemonSets()],
  jobs: () => [createJobs()],
  cronjobs: () => [createCronJobs()],
  endpoints: () => [createEndpointSlices(), createEndpoints()],
  "load-balancers": () => [createLoadBalancers()],
  volumes: () => [createClaims(), createVolumes()],
  "namespace-contents": () => [createNamespaceContents()],
  "disruption-budgets": () => [createDisruptionBudgets()],
  autoscalers: () => [createAutoscalers()],
  "cluster-roles": () => [createClusterRoles()],
  certificates: () => [createSigning()],
  quotas: () => [createQuotas()],
  "policy-types": () => [createPolicyTypes()],
  events: () => [createEventExpiry()],
};

/** The names of all controllers. */
export const simulatedControllers: readonly SimulatedController[] = [
  "garbage-collection",
  "namespaces",
  ...(Object.keys(CONTROLLERS) as KindController[]),
];

/** Creates the controllers with these names. */
export function controllersNamed(names: readonly SimulatedController[]): Controller[] {
  const kinds = names.filter((name): name is KindController => name in CONTROLLERS);
  return kinds.flatMap((name) => CONTROLLERS[name]() as Controller[]);
}
