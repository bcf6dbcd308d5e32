// Rolls out Deployments through ReplicaSets, as the deployment controller of Kubernetes 1.36 does.
import { ApiError } from "../feed/api-client.js";
import type { Cluster } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { controllerOf, isSame, selects } from "../feed/kubernetes-object.js";
import {
  type Pod,
  type StatusCondition,
  controllerReference,
  isFinished,
  timestamp,
  withConditions,
} from "../pods/pod.js";
import {
  type Deployment,
  HASH,
  REVISION,
  type ReplicaSet,
  type Scaling,
  hashOf,
  newReplicaSetOf,
  planRollout,
  planScaling,
  replicasOf,
  revisionOf,
  rolloutLimits,
  sizeAnnotations,
} from "./deployment.js";
import { type WorkloadStatus, countAt, nonZero, ownersOf } from "./workload.js";

const DEPLOYMENTS = "deployments.apps";

/** Creates the controller of Deployments. */
export function createDeployments(): Controller<Deployment> {
  return {
    kind: DEPLOYMENTS,
    watches: {
      [REPLICA_SETS]: ownersOf({ plural: DEPLOYMENTS, kind: "Deployment" }),
      "pods.": (pod, cluster) => {
        const owner = controllerOf(pod);
        const set =
          owner?.kind === "ReplicaSet"
            ? cluster.get(REPLICA_SETS, `${pod.metadata.namespace}/${owner.name}`)
            : undefined;
        const deployment = set === undefined ? undefined : controllerOf(set);
        return deployment === undefined ? [] : [`${pod.metadata.namespace}/${deployment.name}`];
      },
    },
    reconcile: (deployment, context) => new DeploymentRun(deployment, context).run(),
  };
}

/** One reconcile of a Deployment. */
class DeploymentRun {
  #deployment: Deployment;
  #hasNewRevision = false;
  readonly #context: ControllerContext;
  readonly #cluster: Cluster;

  constructor(deployment: Deployment, context: ControllerContext) {
    this.#deployment = deployment;
    this.#context = context;
    this.#cluster = context.cluster;
  }

  async run(): Promise<number | undefined> {
    const { metadata, spec } = this.#deployment;
    await this.#adopt();
    if (metadata.deletionTimestamp === undefined) {
      if (spec.paused === true || this.#isScaled()) await this.#scale();
      else await this.#rollOut();
    }
    return this.#writeStatus();
  }

  #sets(): ReplicaSet[] {
    return this.#cluster.controlledBy<ReplicaSet>(REPLICA_SETS, this.#deployment.metadata.uid);
  }

  async #adopt(): Promise<void> {
    const { metadata, spec } = this.#deployment;
    if (metadata.deletionTimestamp !== undefined) return;
    for (const set of this.#cluster.orphans<ReplicaSet>(REPLICA_SETS, metadata.namespace)) {
      if (!selects(spec.selector, set.metadata.labels)) continue;
      const ownerReferences = [
        ...(set.metadata.ownerReferences ?? []),
        controllerReference("apps/v1", "Deployment", this.#deployment),
      ];
      await this.#cluster.update(REPLICA_SETS, { ...set, metadata: { ...set.metadata, ownerReferences } });
    }
  }

  /** Reports whether spec.replicas has changed since the ReplicaSets were last scaled. */
  #isScaled(): boolean {
    const active = this.#sets().filter((set) => replicasOf(set) > 0);
    const wanted = String(this.#deployment.spec.replicas ?? 1);
    return active.some(({ metadata }) => {
      const desired = metadata.annotations?.["deployment.kubernetes.io/desired-replicas"];
      return desired !== undefined && desired !== wanted;
    });
  }

  async #scale(): Promise<void> {
    const sets = this.#sets();
    await this.#apply(planScaling(this.#deployment, sets));
    if (this.#deployment.spec.paused === true && sets.length > 0) await this.#cleanUp();
  }

  async #rollOut(): Promise<void> {
    const isRecreate = this.#deployment.spec.strategy?.type === "Recreate";
    const existing = newReplicaSetOf(this.#deployment, this.#sets());
    if (existing === undefined && isRecreate && (await this.#stopOld())) return;
    const next = existing ?? (await createNewReplicaSet(this.#cluster, this.#deployment, this.#sets()));
    await this.#setRevision(next);
    if (existing !== undefined && isRecreate && (await this.#stopOld())) return;
    await this.#apply(planRollout(this.#deployment, this.#sets()));
    await this.#cleanUp();
  }

  /** Scales down old ReplicaSets; returns whether some of their Pods still run. */
  async #stopOld(): Promise<boolean> {
    const current = newReplicaSetOf(this.#deployment, this.#sets());
    const old = this.#sets().filter((set) => set.metadata.uid !== current?.metadata.uid);
    await this.#apply(old.map((set) => ({ set, replicas: 0 })));
    const pods = old.flatMap(({ metadata }) => this.#cluster.controlledBy<Pod>("pods.", metadata.uid));
    return pods.some((pod) => !isFinished(pod));
  }

  async #setRevision(next: ReplicaSet): Promise<void> {
    const revised = await setRevision(this.#cluster, this.#deployment, { next, sets: this.#sets() });
    const revision = revisionOf(revised);
    const { metadata } = this.#deployment;
    if (metadata.annotations?.[REVISION] === revision) return;
    const annotations = { ...metadata.annotations, [REVISION]: revision };
    // Written together with the status, because a change of the annotations increases the generation of a Deployment.
    this.#deployment = { ...this.#deployment, metadata: { ...metadata, annotations } };
    this.#hasNewRevision = true;
  }

  async #apply(scalings: Scaling[]): Promise<void> {
    for (const { set, replicas, annotations } of scalings) {
      const next = {
        ...set,
        metadata: { ...set.metadata, annotations: { ...set.metadata.annotations, ...annotations } },
        spec: { ...set.spec, replicas },
      };
      if (isSame(next, set)) continue;
      await this.#cluster.update(REPLICA_SETS, next);
      const before = replicasOf(set);
      if (before !== replicas) recordScaling(this.#cluster, this.#deployment, { set, from: before, to: replicas });
    }
  }

  /** Deletes the oldest inactive ReplicaSets beyond revisionHistoryLimit. */
  async #cleanUp(): Promise<void> {
    const limit = this.#deployment.spec.revisionHistoryLimit ?? 10;
    const current = newReplicaSetOf(this.#deployment, this.#sets());
    const old = this.#sets()
      .filter(({ metadata }) => metadata.uid !== current?.metadata.uid && metadata.deletionTimestamp === undefined)
      .sort((a, b) => Number(revisionOf(a)) - Number(revisionOf(b)));
    for (const set of old.slice(0, Math.max(0, old.length - limit))) {
      const isIdle = replicasOf(set) === 0 && set.status?.replicas === 0;
      if (isIdle && set.metadata.generation === set.status?.observedGeneration) {
        await this.#cluster.remove(REPLICA_SETS, set, { propagationPolicy: "Background" });
      }
    }
  }

  async #writeStatus(): Promise<number | undefined> {
    const { status, again } = deploymentStatus(this.#deployment, this.#sets(), this.#context.now());
    if (this.#hasNewRevision || !isSame(this.#deployment.status, status)) {
      await this.#cluster.update(DEPLOYMENTS, { ...this.#deployment, status }, { subresource: "status" });
    }
    return again;
  }
}

/** Builds the status: replica counts and the conditions Available, Progressing, and ReplicaFailure. */
function deploymentStatus(
  deployment: Deployment,
  sets: ReplicaSet[],
  now: Date,
): { status: WorkloadStatus; again: number | undefined } {
  const { metadata, status } = deployment;
  const next = newReplicaSetOf(deployment, sets);
  const total = (field: string) => sets.reduce((sum, set) => sum + countAt(set.status, field), 0);
  const counts: Counts = {
    replicas: total("replicas"),
    updatedReplicas: countAt(next?.status, "replicas"),
    readyReplicas: total("readyReplicas"),
    availableReplicas: total("availableReplicas"),
  };
  const asked = sets.reduce((sum, set) => sum + replicasOf(set), 0);
  const unavailableReplicas = Math.max(0, asked - counts.availableReplicas);
  const minimum = replicasOf(deployment) - rolloutLimits(deployment).maxUnavailable;
  const { condition, again } = progressing(deployment, { next, counts, now });
  const conditions = withConditions(
    status?.conditions?.filter(({ type }) => type !== "ReplicaFailure"),
    [
      available(counts.availableReplicas >= minimum, now),
      ...(condition === undefined ? [] : [condition]),
      ...failures(sets),
    ],
    // Progress changes lastUpdateTime even if the rest of the condition is unchanged.
  ).map((each) => (each.type === condition?.type ? { ...each, lastUpdateTime: condition.lastUpdateTime ?? "" } : each));
  const { collisionCount } = (status ?? {}) as { collisionCount?: number };
  return {
    again,
    status: {
      observedGeneration: metadata.generation,
      ...nonZero({ ...counts, unavailableReplicas }),
      terminatingReplicas: total("terminatingReplicas"),
      ...(collisionCount === undefined ? {} : { collisionCount }),
      conditions,
    },
  };
}

type Counts = Record<"replicas" | "updatedReplicas" | "readyReplicas" | "availableReplicas", number>;

function failures(sets: ReplicaSet[]): StatusCondition[] {
  const failed = sets.flatMap(({ status }) => status?.conditions ?? []).find(({ type }) => type === "ReplicaFailure");
  return failed === undefined ? [] : [{ ...failed, lastUpdateTime: failed.lastTransitionTime }];
}

function available(isAvailable: boolean, now: Date): StatusCondition {
  return conditionOf(
    [
      "Available",
      isAvailable ? "True" : "False",
      isAvailable ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
    ],
    `Deployment ${isAvailable ? "has" : "does not have"} minimum availability.`,
    now,
  );
}

function progressing(
  deployment: Deployment,
  { next, counts, now }: { next: ReplicaSet | undefined; counts: Counts; now: Date },
): { condition?: StatusCondition | undefined; again?: number | undefined } {
  const { metadata, spec, status } = deployment;
  const before = status?.conditions?.find(({ type }) => type === "Progressing");
  const deadline = spec.progressDeadlineSeconds;
  if (deadline === undefined || deadline === 2 ** 31 - 1) return {};
  if (spec.paused === true) {
    if (before?.reason === "ProgressDeadlineExceeded") return { condition: before };
    return { condition: conditionOf(["Progressing", "Unknown", "DeploymentPaused"], "Deployment is paused", now) };
  }
  const name = next?.metadata.name ?? `${metadata.name}-${hashOf(deployment)}`;
  const condition = (status: "True" | "False", reason: string, end: string) =>
    conditionOf(["Progressing", status, reason], `ReplicaSet "${name}" ${end}`, now);
  const wanted = replicasOf(deployment);
  const isComplete =
    counts.updatedReplicas === wanted && counts.replicas === wanted && counts.availableReplicas === wanted;
  if (isComplete && next !== undefined) {
    const complete = condition("True", "NewReplicaSetAvailable", "has successfully progressed.");
    const isKnown = before?.reason === complete.reason && before?.message === complete.message;
    return { condition: isKnown ? before : complete };
  }
  if (before === undefined) return { condition: condition("True", "ReplicaSetUpdated", "is progressing.") };
  const hasProgressed =
    counts.updatedReplicas > countAt(status, "updatedReplicas") ||
    counts.replicas - counts.updatedReplicas < countAt(status, "replicas") - countAt(status, "updatedReplicas") ||
    counts.readyReplicas > countAt(status, "readyReplicas") ||
    counts.availableReplicas > countAt(status, "availableReplicas");
  const isFresh = before.reason === "NewReplicaSetAvailable" || before.reason === "DeploymentPaused";
  if (hasProgressed || isFresh)
    return { condition: condition("True", "ReplicaSetUpdated", "is progressing."), again: deadline * 1000 };
  if (before.reason === "ProgressDeadlineExceeded") return { condition: before };
  const left = Date.parse(before.lastUpdateTime ?? before.lastTransitionTime) + deadline * 1000 - now.getTime();
  if (left > 0) return { condition: before, again: left };
  return { condition: condition("False", "ProgressDeadlineExceeded", "has timed out progressing.") };
}

function conditionOf(
  [type, status, reason]: [type: string, status: "True" | "False" | "Unknown", reason: string],
  message: string,
  now: Date,
): StatusCondition {
  const time = timestamp(now);
  return { type, status, lastUpdateTime: time, lastTransitionTime: time, reason, message };
}

// ReplicaSets as the revision history of a Deployment.

const REPLICA_SETS = "replicasets.apps";
const HISTORY = "deployment.kubernetes.io/revision-history";
const NOT_COPIED = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  REVISION,
  HISTORY,
  "deployment.kubernetes.io/desired-replicas",
  "deployment.kubernetes.io/max-replicas",
  "deprecated.deployment.rollback.to",
]);

/** Creates the ReplicaSet of the current template. */
async function createNewReplicaSet(cluster: Cluster, deployment: Deployment, sets: ReplicaSet[]): Promise<ReplicaSet> {
  const { metadata, spec, status } = deployment;
  const hash = hashOf(deployment);
  const { template } = spec;
  const labels = { ...template.metadata?.labels, [HASH]: hash };
  const room =
    replicasOf(deployment) + rolloutLimits(deployment).maxSurge - sets.reduce((sum, set) => sum + replicasOf(set), 0);
  const isRolling = spec.strategy?.type !== "Recreate";
  const replicas = isRolling ? Math.max(0, Math.min(replicasOf(deployment), room)) : replicasOf(deployment);
  try {
    const created = await cluster.create<ReplicaSet>(REPLICA_SETS, {
      metadata: {
        name: `${metadata.name}-${hash}`,
        ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
        labels,
        annotations: {
          ...copiedAnnotations(deployment),
          ...sizeAnnotations(deployment),
          [REVISION]: nextRevision(sets),
        },
        ownerReferences: [controllerReference("apps/v1", "Deployment", deployment)],
      },
      spec: {
        replicas,
        ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
        selector: { ...spec.selector, matchLabels: { ...spec.selector?.matchLabels, [HASH]: hash } },
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    });
    if (replicas > 0) recordScaling(cluster, deployment, { set: created, from: 0, to: replicas });
    return created;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    // The name is taken by another object; the next attempt uses another hash.
    const collisionCount = Number(status?.["collisionCount"] ?? 0) + 1;
    const next = { ...deployment, status: { ...status, collisionCount } };
    await cluster.update("deployments.apps", next, { subresource: "status" });
    throw error;
  }
}

/** Records an Event for the scaling of a ReplicaSet. */
function recordScaling(
  cluster: Cluster,
  deployment: Deployment,
  { set, from, to }: { set: ReplicaSet; from: number; to: number },
): void {
  const message = `Scaled ${from < to ? "up" : "down"} replica set ${set.metadata.name} from ${from} to ${to}`;
  cluster.record("deployments.apps", deployment, { reason: "ScalingReplicaSet", message });
}

/** Gives the current ReplicaSet the highest revision, and copies the annotations of the Deployment to it. */
async function setRevision(
  cluster: Cluster,
  deployment: Deployment,
  { next, sets }: { next: ReplicaSet; sets: ReplicaSet[] },
): Promise<ReplicaSet> {
  const old = sets.filter(({ metadata }) => metadata.uid !== next.metadata.uid);
  const wanted = nextRevision(old);
  const present = revisionOf(next);
  const isRaised = Number(present) < Number(wanted);
  const history = [next.metadata.annotations?.[HISTORY], present].filter((one) => one !== undefined && one !== "");
  const annotations = {
    ...next.metadata.annotations,
    ...copiedAnnotations(deployment),
    ...(isRaised ? { [REVISION]: wanted, ...(present === "0" ? {} : { [HISTORY]: history.join(",") }) } : {}),
  };
  const { minReadySeconds } = deployment.spec;
  const changed = {
    ...next,
    metadata: { ...next.metadata, annotations },
    spec: { ...next.spec, ...(minReadySeconds === undefined ? {} : { minReadySeconds }) },
  };
  return isSame(changed, next) ? next : cluster.update<ReplicaSet>(REPLICA_SETS, changed);
}

function nextRevision(old: ReplicaSet[]): string {
  return String(Math.max(0, ...old.map((set) => Number(revisionOf(set)))) + 1);
}

function copiedAnnotations({ metadata }: Deployment): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([name]) => !NOT_COPIED.has(name)));
}
