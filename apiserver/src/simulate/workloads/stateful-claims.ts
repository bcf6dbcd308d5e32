import type { Cluster } from "../feed/cluster.js";
import type { KubernetesObject, OwnerReference } from "../feed/kubernetes-object.js";
import type { Pod } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import { type StatefulSet, claimName, ordinalOf } from "./stateful-pod.js";

const CLAIMS = "persistentvolumeclaims.";

/** Creates the claims of a Pod that are missing. */
export async function createClaims(cluster: Cluster, set: StatefulSet, ordinal: number): Promise<void> {
  const { namespace = "" } = set.metadata;
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const name = claimName(template, set, ordinal);
    if (cluster.get(CLAIMS, `${namespace}/${name}`) !== undefined) continue;
    const { labels, annotations } = template.metadata;
    await cluster.create(CLAIMS, {
      metadata: {
        name,
        namespace,
        labels: { ...labels, ...set.spec.selector?.matchLabels },
        ...(annotations === undefined ? {} : { annotations }),
      },
      spec: template.spec,
    });
    const message = `Create Claim ${name} Pod ${set.metadata.name}-${ordinal} in StatefulSet ${set.metadata.name} success`;
    cluster.record("statefulsets.apps", set, { reason: "SuccessfulCreate", message });
  }
}

/** Lets claims go with their StatefulSet or with their Pod, where the retention policy says so. */
export async function keepClaims(cluster: Cluster, set: StatefulSet, pods: Pod[]): Promise<void> {
  const { whenDeleted = "Retain", whenScaled = "Retain" } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  if (whenDeleted === "Retain" && whenScaled === "Retain") return;
  const { name, namespace = "", uid } = set.metadata;
  const last = (set.spec.ordinals?.start ?? 0) + (set.spec.replicas ?? 1) - 1;
  for (const pod of pods) {
    const ordinal = ordinalOf(pod);
    for (const template of set.spec.volumeClaimTemplates ?? []) {
      const claim = cluster.get<KubernetesObject>(CLAIMS, `${namespace}/${claimName(template, set, ordinal)}`);
      if (claim === undefined) continue;
      const others = (claim.metadata.ownerReferences ?? []).filter(
        (owner) => owner.uid !== uid && owner.kind !== "Pod",
      );
      const ownerReferences: OwnerReference[] = [
        ...others,
        ...(whenDeleted === "Delete" && !(whenScaled === "Delete" && ordinal > last)
          ? [{ apiVersion: "apps/v1", kind: "StatefulSet", name, uid, controller: true, blockOwnerDeletion: true }]
          : []),
        ...(whenScaled === "Delete" && ordinal > last
          ? [
              {
                apiVersion: "v1",
                kind: "Pod",
                name: pod.metadata.name,
                uid: pod.metadata.uid,
                controller: true,
                blockOwnerDeletion: true,
              },
            ]
          : []),
      ];
      if (isSame(claim.metadata.ownerReferences ?? [], ownerReferences)) continue;
      await cluster.update(CLAIMS, { ...claim, metadata: { ...claim.metadata, ownerReferences } });
    }
  }
}
