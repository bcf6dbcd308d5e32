// ControllerRevisions: the template history of StatefulSets and DaemonSets.
import type { Cluster } from "../feed/cluster.js";
import { type KubernetesObject, controllerOf, isSame, selects } from "../feed/kubernetes-object.js";
import { type PodTemplate, controllerReference } from "../pods/pod.js";
import { type Workload, templateHash } from "./workload.js";

export interface ControllerRevision extends KubernetesObject {
  revision: number;
  data: { spec: { template: PodTemplate & { $patch: "replace" } } };
}

const KIND = "controllerrevisions.apps";
const HASH = "controller.kubernetes.io/hash";

/** Returns the revisions of a workload, oldest first. */
export function revisionsOf(cluster: Cluster, { metadata }: KubernetesObject): ControllerRevision[] {
  return cluster.controlledBy<ControllerRevision>(KIND, metadata.uid).sort((a, b) => a.revision - b.revision);
}

/** Returns the revision of the current template. Creates or renumbers it if needed, so that it has the highest number. */
export async function currentRevision(
  cluster: Cluster,
  workload: Workload,
  { kind, hashLabel }: { kind: string; hashLabel: string },
): Promise<ControllerRevision> {
  await adoptRevisions(cluster, workload, kind);
  const revisions = revisionsOf(cluster, workload);
  const { template } = workload.spec;
  const highest = revisions.at(-1)?.revision ?? 0;
  const same = revisions.findLast(({ data }) => isSame(templateOf(data), template));
  if (same !== undefined) {
    return same.revision === highest ? same : cluster.update(KIND, { ...same, revision: highest + 1 });
  }
  const hash = templateHash(template);
  const { name, namespace } = workload.metadata;
  return cluster.create<ControllerRevision>(KIND, {
    metadata: {
      name: `${name}-${hash}`,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...template.metadata?.labels, [hashLabel]: hash },
      annotations: { ...workload.metadata.annotations },
      ownerReferences: [controllerReference("apps/v1", kind, workload)],
    },
    data: { spec: { template: { ...template, $patch: "replace" } } },
    revision: highest + 1,
  });
}

// Revisions orphaned by the deletion of the previous workload would conflict with the names of new ones.
async function adoptRevisions(cluster: Cluster, workload: Workload, kind: string): Promise<void> {
  for (const revision of cluster.list<ControllerRevision>(KIND, workload.metadata.namespace)) {
    const { metadata } = revision;
    if (controllerOf(revision) !== undefined || !selects(workload.spec.selector, metadata.labels)) continue;
    const reference = controllerReference("apps/v1", kind, workload);
    const ownerReferences = [...(metadata.ownerReferences ?? []), reference];
    await cluster.update(KIND, { ...revision, metadata: { ...metadata, ownerReferences } });
  }
}

/** Deletes the oldest unused revisions beyond revisionHistoryLimit. */
export async function cleanRevisions(cluster: Cluster, workload: Workload, used: Set<string>): Promise<void> {
  const limit = workload.spec.revisionHistoryLimit ?? 10;
  const unused = revisionsOf(cluster, workload).filter(({ metadata }) => !used.has(metadata.name));
  for (const revision of unused.slice(0, Math.max(0, unused.length - limit))) await cluster.remove(KIND, revision);
}

/** Returns the Pod template of a revision. */
export function templateOf({ spec }: ControllerRevision["data"]): PodTemplate {
  const { $patch: _, ...template } = spec.template;
  return template;
}

/** Returns the hash at the end of the name of a revision. */
export function hashOfRevision({ metadata }: ControllerRevision): string {
  return metadata.labels?.[HASH] ?? metadata.name.slice(metadata.name.lastIndexOf("-") + 1);
}
