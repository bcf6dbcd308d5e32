import { type Quantities, sumOf } from "../../strategies/shared/resource-requests.js";
import type { JsonObject } from "../../json.js";
import { isInScopes, usageOf } from "../../quota.js";
import type { Cluster } from "../feed/cluster.js";
import type { Controller } from "../feed/controller.js";
import { type KubernetesObject, isSame, keyOfObject } from "../feed/kubernetes-object.js";

interface ResourceQuota extends KubernetesObject {
  spec?: { hard?: Record<string, string> };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

const KIND = "resourcequotas.";
const COUNTED = [
  ...["configmaps.", "persistentvolumeclaims.", "pods.", "replicationcontrollers.", "resourcequotas.", "secrets."],
  ...["services.", "cronjobs.batch", "daemonsets.apps", "deployments.apps", "jobs.batch", "replicasets.apps"],
  "statefulsets.apps",
];

/**
 * Recalculates status.used of ResourceQuotas when counted objects are created or deleted. The quota admission plugin adds the usage of new objects
 * itself.
 */
export function createQuotas(): Controller<ResourceQuota> {
  const ofNamespace = ({ metadata }: KubernetesObject, cluster: Cluster): string[] =>
    cluster.list(KIND, metadata.namespace).map((quota) => keyOfObject(quota.metadata));
  return {
    kind: KIND,
    watches: Object.fromEntries(COUNTED.map((kind) => [kind, ofNamespace])),
    async reconcile(quota, { cluster }) {
      const { metadata, spec = {}, status = {} } = quota;
      if (metadata.deletionTimestamp !== undefined) return;
      const hard = spec.hard ?? {};
      const used = usedOf(quota, { hard, before: status.used ?? {}, cluster });
      if (isSame(status.hard ?? {}, hard) && isSame(status.used ?? {}, used)) return;
      await cluster.update(KIND, { ...quota, status: { hard, used } }, { subresource: "status" });
    },
  };
}

function usedOf(
  quota: ResourceQuota,
  { hard, before, cluster }: { hard: Quantities; before: Quantities; cluster: Cluster },
): Quantities {
  const usages = COUNTED.flatMap((kind) => {
    const [plural = "", group = ""] = splitOnce(kind);
    const isPod = kind === "pods.";
    return cluster
      .list(kind, quota.metadata.namespace)
      .filter((object) => isInScopes(jsonOf(quota), jsonOf(object), { isPod }))
      .map((object) => usageOf({ plural, group }, jsonOf(object)));
  });
  const sum = sumOf(usages);
  const entries = Object.keys(hard).map((name): [string, string] => {
    const isFollowed =
      !name.startsWith("count/") || COUNTED.some((kind) => `count/${kind.replace(/\.$/, "")}` === name);
    // The usage of other kinds is only increased, by the quota admission plugin.
    return [name, sum[name] ?? (isFollowed ? "0" : (before[name] ?? "0"))];
  });
  return Object.fromEntries(entries);
}

function splitOnce(kind: string): [string, string] {
  const dot = kind.indexOf(".");
  return [kind.slice(0, dot), kind.slice(dot + 1)];
}

// The caches hold decoded JSON objects.
function jsonOf(object: KubernetesObject): JsonObject {
  return object as unknown as JsonObject;
}
