import type { KubernetesObject } from "../feed/kubernetes-object.js";
import type { LabelSelector } from "../feed/selector.js";

/** A PersistentVolumeClaim. */
export interface Claim extends KubernetesObject {
  spec: {
    accessModes?: string[];
    volumeName?: string;
    volumeMode?: string;
    storageClassName?: string;
    selector?: LabelSelector;
    resources?: { requests?: { storage?: string } };
    dataSource?: object;
    dataSourceRef?: object;
  };
  status?: { phase?: string; accessModes?: string[]; capacity?: { storage?: string } };
}

/** A PersistentVolume. */
export interface Volume extends KubernetesObject {
  spec: {
    accessModes?: string[];
    capacity?: { storage?: string };
    claimRef?: {
      kind?: string;
      namespace?: string;
      name?: string;
      uid?: string;
      apiVersion?: string;
      resourceVersion?: string;
    };
    persistentVolumeReclaimPolicy?: string;
    storageClassName?: string;
    volumeMode?: string;
    [source: string]: unknown;
  };
  status?: { phase?: string; message?: string; lastPhaseTransitionTime?: string };
}

/** A StorageClass. */
export interface StorageClass extends KubernetesObject {
  provisioner: string;
  reclaimPolicy?: string;
  volumeBindingMode?: string;
}

/** PersistentVolumeClaims, by plural and group. */
export const CLAIMS = "persistentvolumeclaims.";
/** PersistentVolumes, by plural and group. */
export const VOLUMES = "persistentvolumes.";
/** StorageClasses, by plural and group. */
export const CLASSES = "storageclasses.storage.k8s.io";

const UNITS: Record<string, number> = {
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 },
  ...{ k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 },
};

/** A quantity of bytes as a number. */
export function bytesOf(quantity = "0"): number {
  const [, number = "0", unit = ""] = /^([\d.]+(?:e\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  return Number(number) * (UNITS[unit] ?? 1);
}
