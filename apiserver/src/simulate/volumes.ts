// Binds PersistentVolumeClaims to matching volumes, provisions volumes, and removes the protection finalizer of unused claims.
import type { EventDetail } from "./event-recorder.js";
import type { Cluster } from "./feed/cluster.js";
import type { Controller, ControllerContext } from "./feed/controller.js";
import { type KubernetesObject, type LabelSelector, isSame, selects } from "./feed/kubernetes-object.js";
import { type Pod, isFinished, timestamp } from "./pods/pod.js";

const CLAIM_PROTECTION = "kubernetes.io/pvc-protection";
const DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class";
const BOUND = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";
const SELECTED_NODE = "volume.kubernetes.io/selected-node";
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

/** Creates the controller of PersistentVolumeClaims. */
export function createClaims(): Controller<Claim> {
  /** Message of the last recorded Event, by claim. */
  const told = new Map<string, string>();
  const waiting = (_: unknown, cluster: Cluster) => keysOf(cluster.list<Claim>(CLAIMS));
  return {
    kind: CLAIMS,
    watches: {
      "pods.": (pod) =>
        ((pod as Pod).spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
          persistentVolumeClaim === undefined ? [] : [`${pod.metadata.namespace}/${persistentVolumeClaim.claimName}`],
        ),
      [VOLUMES]: waiting,
      [CLASSES]: waiting,
    },
    async reconcile(claim, context) {
      if (claim.metadata.deletionTimestamp !== undefined) return letClaimGo(claim, context.cluster);
      const classed = await setClass(claim, context.cluster);
      if (classed.metadata.annotations?.[BOUND] === undefined) return bind(classed, context.cluster, told);
      return keepBound(classed, context.cluster);
    },
    async gone(key) {
      told.delete(key);
    },
  };
}

function keysOf(claims: Claim[]): string[] {
  return claims.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

function usersOf({ metadata }: Claim, cluster: Cluster): Pod[] {
  const pods = cluster.list<Pod>("pods.", metadata.namespace);
  return pods.filter(({ spec }) =>
    spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === metadata.name),
  );
}

/** Removes the protection finalizer once no unfinished, scheduled Pod uses the claim. */
async function letClaimGo(claim: Claim, cluster: Cluster): Promise<void> {
  const finalizers = claim.metadata.finalizers ?? [];
  if (!finalizers.includes(CLAIM_PROTECTION)) return;
  if (usersOf(claim, cluster).some((pod) => !isFinished(pod) && pod.spec.nodeName !== undefined)) return;
  const metadata = { ...claim.metadata, finalizers: finalizers.filter((finalizer) => finalizer !== CLAIM_PROTECTION) };
  await cluster.update(CLAIMS, { ...claim, metadata });
}

/** Sets the default StorageClass on a claim without a class. */
async function setClass(claim: Claim, cluster: Cluster): Promise<Claim> {
  if (claim.spec.storageClassName !== undefined || claim.spec.volumeName !== undefined) return claim;
  const classes = cluster.list<StorageClass>(CLASSES);
  const [byDefault] = classes.filter(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === "true");
  if (byDefault === undefined) return claim;
  return cluster.update(CLAIMS, { ...claim, spec: { ...claim.spec, storageClassName: byDefault.metadata.name } });
}

async function bind(claim: Claim, cluster: Cluster, told: Map<string, string>): Promise<void> {
  const volume = chosenVolume(claim, cluster) ?? (await provision(claim, cluster));
  if (volume === undefined) {
    recordWaiting(claim, told, cluster);
    return writePhase(claim, { phase: "Pending" }, cluster);
  }
  if (claim.spec.volumeName !== undefined && !isFor(volume, claim) && volume.spec.claimRef !== undefined) {
    return writePhase(claim, { phase: "Pending" }, cluster);
  }
  const bound = await bindVolume(claim, volume, cluster);
  const isChosen = claim.spec.volumeName === undefined;
  const annotations = {
    ...claim.metadata.annotations,
    [BOUND]: "yes",
    ...(isChosen ? { [BOUND_BY_CONTROLLER]: "yes" } : {}),
  };
  const next = await cluster.update<Claim>(CLAIMS, {
    ...claim,
    metadata: { ...claim.metadata, annotations },
    spec: { ...claim.spec, volumeName: bound.metadata.name },
  });
  await keepBound(next, cluster);
}

/** Records why a claim is pending, once per message: every new volume triggers a reconcile. */
function recordWaiting(claim: Claim, told: Map<string, string>, cluster: Cluster): void {
  const { namespace, name } = claim.metadata;
  const key = `${namespace}/${name}`;
  const detail = waitingOf(claim, cluster);
  if (detail === undefined || told.get(key) === detail.message) return;
  told.set(key, detail.message);
  cluster.record(CLAIMS, claim, detail);
}

function waitingOf({ spec }: Claim, cluster: Cluster): EventDetail | undefined {
  if (spec.volumeName !== undefined) return undefined;
  const className = spec.storageClassName ?? "";
  if (className === "") {
    const message = "no persistent volumes available for this claim and no storage class is set";
    return { reason: "FailedBinding", message };
  }
  const type = cluster.get<StorageClass>(CLASSES, className);
  if (type === undefined) {
    const message = `storageclass.storage.k8s.io "${className}" not found`;
    return { type: "Warning", reason: "ProvisioningFailed", message };
  }
  if (type.volumeBindingMode !== "WaitForFirstConsumer") return undefined;
  return { reason: "WaitForFirstConsumer", message: "waiting for first consumer to be created before binding" };
}

/** Updates the status of a bound claim from its volume. */
async function keepBound(claim: Claim, cluster: Cluster): Promise<void> {
  const volume = cluster.get<Volume>(VOLUMES, claim.spec.volumeName ?? "");
  if (volume === undefined || !isFor(volume, claim))
    return writePhase(claim, { ...claim.status, phase: "Lost" }, cluster);
  const { accessModes = [], capacity } = volume.spec;
  const storage = capacity?.storage;
  const status = { phase: "Bound", accessModes, ...(storage === undefined ? {} : { capacity: { storage } }) };
  await writePhase(claim, { ...claim.status, ...status }, cluster);
}

async function writePhase(claim: Claim, status: NonNullable<Claim["status"]>, cluster: Cluster): Promise<void> {
  if (!isSame(claim.status, status)) await cluster.update(CLAIMS, { ...claim, status }, { subresource: "status" });
}

function isFor({ spec }: Volume, { metadata }: Claim): boolean {
  const { claimRef } = spec;
  const isNamed = claimRef?.name === metadata.name && claimRef.namespace === metadata.namespace;
  return isNamed && (claimRef.uid === undefined || claimRef.uid === metadata.uid);
}

/** Returns the volume that the claim names, the one that is reserved for it, or the smallest that matches. */
function chosenVolume(claim: Claim, cluster: Cluster): Volume | undefined {
  const { spec } = claim;
  if (spec.volumeName !== undefined) return cluster.get<Volume>(VOLUMES, spec.volumeName);
  const volumes = cluster.list<Volume>(VOLUMES).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const kept = volumes.find((volume) => isFor(volume, claim));
  if (kept !== undefined) return kept;
  const size = (volume: Volume) => bytesOf(volume.spec.capacity?.storage);
  return volumes.filter((volume) => fits(volume, claim)).sort((a, b) => size(a) - size(b))[0];
}

function fits(volume: Volume, { spec }: Claim): boolean {
  const { claimRef, storageClassName = "", accessModes = [], volumeMode = "Filesystem", capacity } = volume.spec;
  return (
    claimRef === undefined &&
    storageClassName === (spec.storageClassName ?? "") &&
    volumeMode === (spec.volumeMode ?? "Filesystem") &&
    (spec.accessModes ?? []).every((mode) => accessModes.includes(mode)) &&
    bytesOf(capacity?.storage) >= bytesOf(spec.resources?.requests?.storage) &&
    (spec.selector === undefined || selects(spec.selector, volume.metadata.labels))
  );
}

/** Provisions a volume if the class has a provisioner; with WaitForFirstConsumer, not before a scheduled Pod uses the claim. */
async function provision(claim: Claim, cluster: Cluster): Promise<Volume | undefined> {
  const { metadata, spec } = claim;
  const type = cluster.get<StorageClass>(CLASSES, spec.storageClassName ?? "");
  if (type === undefined || type.provisioner === NO_PROVISIONER || spec.volumeName !== undefined) return undefined;
  const user = usersOf(claim, cluster).find((pod) => pod.spec.nodeName !== undefined);
  if (
    type.volumeBindingMode === "WaitForFirstConsumer" &&
    user === undefined &&
    metadata.annotations?.[SELECTED_NODE] === undefined
  ) {
    return undefined;
  }
  const created = await cluster.create<Volume>(VOLUMES, {
    metadata: { name: `pvc-${metadata.uid}`, annotations: { [PROVISIONED_BY]: type.provisioner } },
    spec: {
      accessModes: spec.accessModes ?? [],
      capacity: { storage: spec.resources?.requests?.storage ?? "1Gi" },
      claimRef: claimRefOf(claim),
      hostPath: { path: `/var/simulated/pvc-${metadata.uid}`, type: "" },
      persistentVolumeReclaimPolicy: type.reclaimPolicy ?? "Delete",
      storageClassName: type.metadata.name,
      volumeMode: spec.volumeMode ?? "Filesystem",
    },
  });
  const message = `Successfully provisioned volume ${created.metadata.name}`;
  cluster.record(CLAIMS, claim, { reason: "ProvisioningSucceeded", message, by: { component: type.provisioner } });
  return created;
}

function claimRefOf({ metadata: { name, namespace = "", uid, resourceVersion } }: Claim) {
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", name, namespace, uid, resourceVersion };
}

async function bindVolume(claim: Claim, volume: Volume, cluster: Cluster): Promise<Volume> {
  if (volume.spec.claimRef?.uid === claim.metadata.uid) return volume;
  const isKept = volume.spec.claimRef !== undefined;
  const annotations = { ...volume.metadata.annotations, ...(isKept ? {} : { [BOUND_BY_CONTROLLER]: "yes" }) };
  return cluster.update<Volume>(VOLUMES, {
    ...volume,
    metadata: { ...volume.metadata, annotations },
    spec: { ...volume.spec, claimRef: { ...volume.spec.claimRef, ...claimRefOf(claim) } },
  });
}

/** Creates the default StorageClass of the simulation, unless a class exists. */
export async function createDefaultClass({ cluster }: ControllerContext): Promise<void> {
  if (cluster.list(CLASSES).length > 0) return;
  await cluster.create(CLASSES, {
    metadata: { name: "standard", annotations: { [DEFAULT_CLASS]: "true" } },
    provisioner: "simulated",
    reclaimPolicy: "Delete",
    volumeBindingMode: "Immediate",
  });
}

// Maintains the phase of PersistentVolumes and deletes released ones if their reclaim policy is Delete.

const VOLUME_PROTECTION = "kubernetes.io/pv-protection";

/** Creates the controller of PersistentVolumes. */
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
      if (volume.metadata.deletionTimestamp !== undefined) return letVolumeGo(volume, phase, cluster);
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

async function letVolumeGo(volume: Volume, phase: string, cluster: Cluster): Promise<void> {
  const finalizers = volume.metadata.finalizers ?? [];
  if (phase === "Bound" || !finalizers.includes(VOLUME_PROTECTION)) return;
  const metadata = {
    ...volume.metadata,
    finalizers: finalizers.filter((finalizer) => finalizer !== VOLUME_PROTECTION),
  };
  await cluster.update(VOLUMES, { ...volume, metadata });
}

interface Claim extends KubernetesObject {
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

interface Volume extends KubernetesObject {
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

interface StorageClass extends KubernetesObject {
  provisioner: string;
  reclaimPolicy?: string;
  volumeBindingMode?: string;
}

const CLAIMS = "persistentvolumeclaims.";
const VOLUMES = "persistentvolumes.";
const CLASSES = "storageclasses.storage.k8s.io";

const UNITS: Record<string, number> = {
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 },
  ...{ k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 },
};

/** Converts a quantity to bytes. */
function bytesOf(quantity = "0"): number {
  const [, number = "0", unit = ""] = /^([\d.]+(?:e\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  return Number(number) * (UNITS[unit] ?? 1);
}
