import { isDeepStrictEqual } from "node:util";
import type { JsonValue, KubernetesObject, StatusCondition } from "../base/kubernetes-object.js";
import type { Condition } from "./workflow-definition.js";

// What the conditions read of an object; every part may be missing.
interface Observed extends KubernetesObject {
  readonly spec?: { readonly replicas?: number; readonly completions?: number; readonly type?: string };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly phase?: string;
    readonly loadBalancer?: { readonly ingress?: readonly unknown[] };
    readonly conditions?: readonly StatusCondition[];
  };
}

/**
 * Holds when the object does what it is for: workloads have all their replicas updated and available, jobs are complete, volumes are
 * bound, load balancers have an address, and anything with a `Ready` or `Available` condition has it true. Other kinds are ready as
 * soon as they exist. A status that is older than the spec does not count.
 */
export const ready: Condition<unknown, unknown, never> = ({ dependent: { live } }) =>
  live !== undefined && isReady(live as Observed);

/** Holds when the object is gone; as a deletePostcondition it keeps what it depends on until then. */
export const deleted: Condition<unknown, unknown, never> = ({ dependent: { live } }) => live === undefined;

/** Holds when the object has a condition of this type with this status; one that is older than the spec does not count. */
export function conditionIs({
  type,
  status,
}: Pick<StatusCondition, "type" | "status">): Condition<unknown, unknown, never> {
  return ({ dependent: { live } }) => {
    const conditions = (live as Observed | undefined)?.status?.conditions ?? [];
    return conditions.some(
      (condition) =>
        condition.type === type && condition.status === status && isOfGeneration(condition, live as Observed),
    );
  };
}

/** Holds when a field has this value; `path` leads to it through objects: `status.phase`. */
export function fieldEquals(path: string, value: JsonValue): Condition<unknown, unknown, never> {
  const names = path.split(".");
  return ({ dependent: { live } }) => {
    let field: unknown = live;
    for (const name of names) {
      if (typeof field !== "object" || field === null || !Object.hasOwn(field, name)) return false;
      field = (field as { [name: string]: unknown })[name];
    }
    return isDeepStrictEqual(field, value);
  };
}

// JOSDK's CRDPresentActivationCondition: an absent kind is asked for again after 10 s at the earliest, a present one never.
const CHECK_AGAIN_AFTER_MS = 10_000;
const served = new WeakMap<object, Map<string, { isServed: Promise<boolean>; checkedAt: number }>>();

/** Holds when the API server serves the kind of the dependent, which tells whether its CustomResourceDefinition is installed. */
export const crdPresent: Condition<unknown, unknown, never> = async ({
  dependent: { definition },
  context: { client },
}) => {
  if (definition === undefined)
    throw new Error("crdPresent is about kinds of Kubernetes, which this dependent is none of");
  const checks = served.get(client) ?? new Map<string, { isServed: Promise<boolean>; checkedAt: number }>();
  served.set(client, checks);
  const kind = `${definition.apiVersion}/${definition.kind}`;
  const last = checks.get(kind);
  if (last !== undefined && ((await last.isServed) || performance.now() - last.checkedAt < CHECK_AGAIN_AFTER_MS))
    return last.isServed;
  const isServed = client.isServed(definition);
  checks.set(kind, { isServed, checkedAt: performance.now() });
  isServed.catch(() => checks.delete(kind));
  return isServed;
};

function isReady(live: Observed): boolean {
  const { apiVersion, kind, metadata, spec, status } = live;
  const isCurrent = status?.observedGeneration === undefined || status.observedGeneration >= (metadata.generation ?? 0);
  switch (`${apiVersion}/${kind}`) {
    case "apps/v1/Deployment": {
      const replicas = spec?.replicas ?? 1;
      const { observedGeneration, updatedReplicas = 0, availableReplicas = 0, replicas: existing = 0 } = status ?? {};
      const isUpdated = updatedReplicas >= replicas && existing <= updatedReplicas;
      return observedGeneration !== undefined && isCurrent && isUpdated && availableReplicas >= replicas;
    }
    case "apps/v1/StatefulSet": {
      const replicas = spec?.replicas ?? 1;
      const { observedGeneration, updatedReplicas = 0, readyReplicas = 0 } = status ?? {};
      return observedGeneration !== undefined && isCurrent && updatedReplicas >= replicas && readyReplicas >= replicas;
    }
    case "apps/v1/ReplicaSet":
      return (
        status?.observedGeneration !== undefined && isCurrent && (status.readyReplicas ?? 0) >= (spec?.replicas ?? 1)
      );
    case "apps/v1/DaemonSet": {
      const {
        observedGeneration,
        desiredNumberScheduled = 0,
        updatedNumberScheduled = 0,
        numberAvailable = 0,
      } = status ?? {};
      const isUpdated = updatedNumberScheduled >= desiredNumberScheduled;
      return observedGeneration !== undefined && isCurrent && isUpdated && numberAvailable >= desiredNumberScheduled;
    }
    case "batch/v1/Job":
      return hasCondition(live, "Complete");
    case "v1/Pod":
      return hasCondition(live, "Ready") || status?.phase === "Succeeded";
    case "v1/PersistentVolumeClaim":
      return status?.phase === "Bound";
    case "v1/Service":
      return spec?.type !== "LoadBalancer" || (status?.loadBalancer?.ingress?.length ?? 0) > 0;
    default: {
      const conditions = status?.conditions ?? [];
      const telling = conditions.filter(({ type }) => type === "Ready" || type === "Available");
      return isCurrent && telling.every((condition) => isTrueAndCurrent(condition, live));
    }
  }
}

function hasCondition(live: Observed, type: string): boolean {
  return (
    live.status?.conditions?.some((condition) => condition.type === type && isTrueAndCurrent(condition, live)) ?? false
  );
}

function isTrueAndCurrent(condition: StatusCondition, live: Observed): boolean {
  return condition.status === "True" && isOfGeneration(condition, live);
}

function isOfGeneration({ observedGeneration }: StatusCondition, { metadata }: Observed): boolean {
  return observedGeneration === undefined || observedGeneration >= (metadata.generation ?? 0);
}
