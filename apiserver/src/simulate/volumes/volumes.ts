// Tells volumes which state they are in, and deletes those whose claim is gone where their policy says so.
import type { Cluster } from "../feed/cluster.js";
import type { Controller } from "../feed/controller.js";
import { timestamp } from "../pods/pod.js";
import { CLAIMS, VOLUMES, type Claim, type Volume } from "./volume.js";

const PROTECTION = "kubernetes.io/pv-protection";

/** Makes the controller of volumes. */
export function createVolumes(): Controller<Volume> {
  return {
    kind: VOLUMES,
    watches: {
      [CLAIMS]: ({ metadata }, cluster) =>
        cluster
          .list<Volume>(VOLUMES)
          .filter(({ spec }) => spec.claimRef?.name === metadata.name && spec.claimRef.namespace === metadata.namespace)
          .map((volume) => volume.metadata.name),
    },
    async reconcile(volume, { cluster, now }) {
      const phase = phaseOf(volume, cluster);
      if (volume.metadata.deletionTimestamp !== undefined) return letGo(volume, phase, cluster);
      const shown =
        volume.status?.phase === phase
          ? volume
          : await cluster.update<Volume>(
              VOLUMES,
              { ...volume, status: { phase, lastPhaseTransitionTime: timestamp(now()) } },
              { subresource: "status" },
            );
      if (phase === "Released" && volume.spec.persistentVolumeReclaimPolicy === "Delete")
        await cluster.remove(VOLUMES, shown);
    },
  };
}

function phaseOf({ spec }: Volume, cluster: Cluster): string {
  const { claimRef } = spec;
  if (claimRef === undefined) return "Available";
  const claim = cluster.get<Claim>(CLAIMS, `${claimRef.namespace}/${claimRef.name}`);
  if (claimRef.uid === undefined) return "Available";
  return claim?.metadata.uid === claimRef.uid ? "Bound" : "Released";
}

async function letGo(volume: Volume, phase: string, cluster: Cluster): Promise<void> {
  const finalizers = volume.metadata.finalizers ?? [];
  if (phase === "Bound" || !finalizers.includes(PROTECTION)) return;
  const metadata = { ...volume.metadata, finalizers: finalizers.filter((finalizer) => finalizer !== PROTECTION) };
  await cluster.update(VOLUMES, { ...volume, metadata });
}
