// Deletes the contents of terminating namespaces and finalizes them, as the namespace controller of kube-controller-manager 1.36 does.
import { type ApiClient, isNotFound } from "./feed/api-client.js";
import type { ClusterFeed, ClusterListener } from "./feed/cluster-feed.js";
import { KeyedQueue } from "./feed/controller.js";
import { type KubernetesObject, type ResourceKind, pathOf } from "./feed/kubernetes-object.js";

interface Namespace extends KubernetesObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string; conditions?: Condition[] };
}

interface NamespaceDeletion extends ClusterListener {
  start(feed: ClusterFeed): void;
  close(): void;
}

const CONCURRENCY = 2;
const FINALIZER = "kubernetes";
const FINALIZER_QUERY = "?fieldManager=kube-controller-manager";
/** Retry interval for a namespace with remaining objects; a deletion in it triggers a retry immediately. */
const RETRY_MS = 1_000;
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/** Creates a namespace controller, which acts after `start`. */
export function createNamespaceDeletion(
  client: ApiClient,
  { onError, now }: { onError: (error: unknown, key: string) => void; now: () => Date },
): NamespaceDeletion {
  const terminating = new Set<string>();
  let feed: ClusterFeed | undefined;

  const work = async (name: string): Promise<void> => {
    if (feed === undefined || !terminating.has(name)) return;
    const path = `/api/v1/namespaces/${name}`;
    const namespace = await client.request<Namespace>({ method: "GET", path }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    if (namespace.spec?.finalizers?.includes(FINALIZER) !== true) return;
    const kinds = feed.kinds().filter((kind) => kind.namespaced);
    const remaining = (await Promise.all(kinds.map((kind) => emptyNamespace(kind, name)))).flat();
    const current = await writeConditions(namespace, remaining);
    if (remaining.length > 0) {
      queue.add(name, RETRY_MS);
      return;
    }
    const finalizers = namespace.spec.finalizers.filter((finalizer) => finalizer !== FINALIZER);
    const body = { ...current, spec: { ...current.spec, finalizers } };
    await client.request({ method: "PUT", path: `${path}/finalize${FINALIZER_QUERY}`, body });
  };
  const queue = new KeyedQueue({ work, concurrency: CONCURRENCY, onError });

  /** Deletes the objects of one kind; returns those that remain. */
  const emptyNamespace = async (kind: ResourceKind, namespace: string): Promise<RemainingContent[]> => {
    const before = await listOf(kind, namespace);
    if (before.length === 0) return [];
    const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" };
    if (kind.verbs.includes("deletecollection")) {
      await client.request({ method: "DELETE", path: pathOf(kind, { namespace }), body });
    } else {
      for (const { metadata } of before)
        await client.request({ method: "DELETE", path: pathOf(kind, metadata), body }).catch(ignoreNotFound);
    }
    const objects = await listOf(kind, namespace);
    return objects.length === 0 ? [] : [{ kind, objects }];
  };

  const listOf = async (kind: ResourceKind, namespace: string): Promise<KubernetesObject[]> => {
    const path = pathOf(kind, { namespace });
    try {
      // Kubernetes 1.36 encodes an empty PartialObjectMetadataList with `items: null`.
      type List = { items: KubernetesObject[] | null };
      return (await client.request<List>({ method: "GET", path, accept: METADATA_LIST })).items ?? [];
    } catch (error) {
      // The kind may have been removed with its CRD.
      ignoreNotFound(error);
      return [];
    }
  };

  const writeConditions = async (namespace: Namespace, remaining: RemainingContent[]): Promise<Namespace> => {
    const before = namespace.status?.conditions ?? [];
    const conditions = deletionConditions(before, remaining, now());
    if (JSON.stringify(before) === JSON.stringify(conditions)) return namespace;
    return client.request<Namespace>({
      method: "PUT",
      path: `/api/v1/namespaces/${namespace.metadata.name}/status${FINALIZER_QUERY}`,
      body: { ...namespace, status: { ...namespace.status, conditions } },
    });
  };

  return {
    changed({ metadata }, { group, plural }) {
      if (group !== "" || plural !== "namespaces" || metadata.deletionTimestamp === undefined) return;
      terminating.add(metadata.name);
      queue.add(metadata.name);
    },
    deleted({ metadata }, { group, plural }) {
      if (group === "" && plural === "namespaces") terminating.delete(metadata.name);
      else if (metadata.namespace !== undefined && terminating.has(metadata.namespace)) queue.add(metadata.namespace);
    },
    start(started) {
      feed = started;
      for (const name of terminating) queue.add(name);
    },
    close: () => queue.close(),
  };
}

function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** Condition of a Namespace. */
interface Condition {
  type: string;
  status: "True" | "False";
  lastTransitionTime: string;
  reason: string;
  message: string;
}

/** Objects of one kind that remain after the deletion, for example because of finalizers. */
interface RemainingContent {
  kind: ResourceKind;
  objects: KubernetesObject[];
}

/** Conditions of a terminating namespace, as in Kubernetes 1.36. */
function deletionConditions(before: Condition[], remaining: RemainingContent[], now: Date): Condition[] {
  const conditions = [
    passed("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    passed(
      "NamespaceDeletionGroupVersionParsingFailure",
      "ParsedGroupVersions",
      "All legacy kube types successfully parsed",
    ),
    passed(
      "NamespaceDeletionContentFailure",
      "ContentDeleted",
      "All content successfully deleted, may be waiting on finalization",
    ),
    contentCondition(remaining),
    finalizersCondition(remaining),
  ];
  const types = conditions.map(({ type }) => type);
  const others = before.filter(({ type }) => !types.includes(type));
  return [...others, ...conditions.map((condition) => withTime(condition, before, now))];
}

type TimelessCondition = Omit<Condition, "lastTransitionTime">;

function passed(type: string, reason: string, message: string): TimelessCondition {
  return { type, status: "False", reason, message };
}

function contentCondition(remaining: RemainingContent[]): TimelessCondition {
  const type = "NamespaceContentRemaining";
  if (remaining.length === 0) return passed(type, "ContentRemoved", "All content successfully removed");
  const counts = remaining.map(({ kind, objects }) => `${resourceOf(kind)} has ${objects.length} resource instances`);
  const message = `Some resources are remaining: ${counts.sort().join(", ")}`;
  return { type, status: "True", reason: "SomeResourcesRemain", message };
}

function finalizersCondition(remaining: RemainingContent[]): TimelessCondition {
  const type = "NamespaceFinalizersRemaining";
  const counts = new Map<string, number>();
  for (const { metadata } of remaining.flatMap(({ objects }) => objects)) {
    for (const name of metadata.finalizers ?? []) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (counts.size === 0) return passed(type, "ContentHasNoFinalizers", "All content-preserving finalizers finished");
  const parts = [...counts].map(([name, count]) => `${name} in ${count} resource instances`);
  const message = `Some content in the namespace has finalizers remaining: ${parts.sort().join(", ")}`;
  return { type, status: "True", reason: "SomeFinalizersRemain", message };
}

/** `deployments.apps`; the core group leaves a trailing dot, as in kube-controller-manager. */
function resourceOf({ plural, group }: ResourceKind): string {
  return `${plural}.${group}`;
}

function withTime(condition: TimelessCondition, before: Condition[], now: Date): Condition {
  const { type, status, reason, message } = condition;
  const old = before.find((each) => each.type === type);
  const lastTransitionTime = old?.status === status ? old.lastTransitionTime : `${now.toISOString().slice(0, 19)}Z`;
  return { type, status, lastTransitionTime, reason, message };
}
