// Rolls Deployments out through ReplicaSets, as the deployment controller of Kubernetes 1.36 does.
import type { Cluster } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { controllerOf } from "../feed/kubernetes-object.js";
import { selects } from "../feed/selector.js";
import { controllerReference, type Pod, isFinished } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import { deploymentStatus } from "./deployment-status.js";
import { type Deployment, type ReplicaSet, REVISION, newReplicaSetOf, replicasOf, revisionOf } from "./deployment.js";
import { createNewReplicaSet, recordScaling, setRevision } from "./revision.js";
import { type Scaling, planRollout, planScaling } from "./rollout.js";
import { ownersOf } from "./workload.js";

const KIND = "deployments.apps";
const SETS = "replicasets.apps";

/** Keeps the ReplicaSets of Deployments. */
export function createDeployments(): Controller<Deployment> {
  return {
    kind: KIND,
    watches: {
      [SETS]: ownersOf({ plural: KIND, kind: "Deployment" }),
      "pods.": (pod, cluster) => {
        const owner = controllerOf(pod);
        const set =
          owner?.kind === "ReplicaSet" ? cluster.get(SETS, `${pod.metadata.namespace}/${owner.name}`) : undefined;
        const deployment = set === undefined ? undefined : controllerOf(set);
        return deployment === undefined ? [] : [`${pod.metadata.namespace}/${deployment.name}`];
      },
    },
    reconcile: (deployment, context) => new DeploymentRun(deployment, context).run(),
  };
}

/** One reconcile. */
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
    return this.#cluster.controlledBy<ReplicaSet>(SETS, this.#deployment.metadata.uid);
  }

  async #adopt(): Promise<void> {
    const { metadata, spec } = this.#deployment;
    if (metadata.deletionTimestamp !== undefined) return;
    for (const set of this.#cluster.orphans<ReplicaSet>(SETS, metadata.namespace)) {
      if (!selects(spec.selector, set.metadata.labels)) continue;
      const ownerReferences = [
        ...(set.metadata.ownerReferences ?? []),
        controllerReference("apps/v1", "Deployment", this.#deployment),
      ];
      await this.#cluster.update(SETS, { ...set, metadata: { ...set.metadata, ownerReferences } });
    }
  }

  /** Was the number of replicas changed, and nothing else? */
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

  /** Takes down what an earlier template runs; returns whether some of it is left. */
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
    // Written with the status, as the annotations of a Deployment raise its generation.
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
      await this.#cluster.update(SETS, next);
      const before = replicasOf(set);
      if (before !== replicas) recordScaling(this.#cluster, this.#deployment, { set, from: before, to: replicas });
    }
  }

  /** Deletes the oldest of what no longer runs. */
  async #cleanUp(): Promise<void> {
    const limit = this.#deployment.spec.revisionHistoryLimit ?? 10;
    const current = newReplicaSetOf(this.#deployment, this.#sets());
    const old = this.#sets()
      .filter(({ metadata }) => metadata.uid !== current?.metadata.uid && metadata.deletionTimestamp === undefined)
      .sort((a, b) => Number(revisionOf(a)) - Number(revisionOf(b)));
    for (const set of old.slice(0, Math.max(0, old.length - limit))) {
      const isIdle = replicasOf(set) === 0 && set.status?.replicas === 0;
      if (isIdle && set.metadata.generation === set.status?.observedGeneration) {
        await this.#cluster.remove(SETS, set, { propagationPolicy: "Background" });
      }
    }
  }

  async #writeStatus(): Promise<number | undefined> {
    const { status, again } = deploymentStatus(this.#deployment, this.#sets(), this.#context.now());
    if (this.#hasNewRevision || !isSame(this.#deployment.status, status)) {
      await this.#cluster.update(KIND, { ...this.#deployment, status }, { subresource: "status" });
    }
    return again;
  }
}
