import type { NewObject } from "../feed/cluster.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import type { Pod, PodTemplate } from "../pods/pod.js";
import { type Workload, type WorkloadSpec, podFrom } from "./workload.js";

/** What is read from the spec of a StatefulSet. */
export interface StatefulSetSpec extends WorkloadSpec {
  serviceName?: string;
  podManagementPolicy?: string;
  ordinals?: { start?: number };
  updateStrategy?: { type?: string; rollingUpdate?: { partition?: number } };
  volumeClaimTemplates?: ClaimTemplate[];
  persistentVolumeClaimRetentionPolicy?: { whenDeleted?: string; whenScaled?: string };
}

/** A template of the claims that each Pod has for itself. */
export interface ClaimTemplate {
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: object;
}

/** A StatefulSet. */
export type StatefulSet = Workload<StatefulSetSpec>;

/** The number at the end of the name of a Pod; -1 without. */
export function ordinalOf({ metadata }: KubernetesObject): number {
  const number = /-(\d+)$/.exec(metadata.name)?.[1];
  return number === undefined ? -1 : Number(number);
}

/** The name of the claim that a Pod has by a template. */
export function claimName(template: ClaimTemplate, set: StatefulSet, ordinal: number): string {
  return `${template.metadata.name}-${set.metadata.name}-${ordinal}`;
}

/** The Pod of a StatefulSet with this number. */
export function statefulPod(
  set: StatefulSet,
  { ordinal, revision, template }: { ordinal: number; revision: string; template: PodTemplate },
): NewObject & Pick<Pod, "spec"> {
  const pod = podFrom(template, { apiVersion: "apps/v1", kind: "StatefulSet", object: set });
  const name = `${set.metadata.name}-${ordinal}`;
  pod.metadata.name = name;
  Object.assign(pod.metadata.labels, {
    "controller-revision-hash": revision,
    "statefulset.kubernetes.io/pod-name": name,
    "apps.kubernetes.io/pod-index": String(ordinal),
  });
  const claims = set.spec.volumeClaimTemplates ?? [];
  const names = new Set(claims.map(({ metadata }) => metadata.name));
  const volumes = [
    ...claims.map((claim) => ({
      name: claim.metadata.name,
      persistentVolumeClaim: { claimName: claimName(claim, set, ordinal) },
    })),
    ...(template.spec.volumes ?? []).filter((volume) => !names.has(volume.name)),
  ];
  const { serviceName } = set.spec;
  pod.spec = {
    ...template.spec,
    hostname: name,
    ...(serviceName === undefined ? {} : { subdomain: serviceName }),
    ...(volumes.length === 0 ? {} : { volumes }),
  };
  return pod;
}
