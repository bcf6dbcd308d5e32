// Lets workloads become ready. Nothing runs: Deployments create no ReplicaSets and no Pods, the status alone is written, first as
// after the start of the pods, then, after a delay, as when they are ready.
import { type ApiClient, isNotFound } from "../feed/api-client.js";
import { startFeed } from "../feed/feed.js";
import { KeyedQueue } from "../feed/keyed-queue.js";
import { type ResourceKind, pathOf } from "../feed/kubernetes-object.js";
import { keyOf, readKinds } from "../feed/resource-kinds.js";
import { workloadKinds } from "./workload-status.js";
import type { Workload } from "./workload.js";

/** How workloads become ready. */
export interface WorkloadsOptions {
  /** The time from a change of the spec until the pods are ready. */
  delayMs: number;
  signal: AbortSignal;
  onError: (error: unknown, key: string) => void;
}

interface Known {
  kind: ResourceKind;
  workload: Workload;
  /** When we first saw this generation. */
  seenAt: number;
}

const CONCURRENCY = 8;

/** Starts to write the status of workloads; resolves once those that existed have been seen. */
export async function startWorkloads(client: ApiClient, { delayMs, signal, onError }: WorkloadsOptions): Promise<void> {
  const known = new Map<string, Known>();

  const work = async (uid: string): Promise<void> => {
    const entry = known.get(uid);
    if (entry === undefined) return;
    const { kind, workload, seenAt } = entry;
    const waitMs = seenAt + delayMs - Date.now();
    if (workload.metadata.deletionTimestamp !== undefined) {
      if (kind.plural === "pods") await removePod(client, kind, workload);
      return;
    }
    const definition = workloadKinds[keyOf(kind)];
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    const update = definition?.computeUpdate(workload, { stage: waitMs > 0 ? "started" : "ready", now });
    if (definition === undefined || update === undefined) return;
    if (waitMs > 0) queue.add(uid, waitMs);
    await writeUpdate(client, entry, { update, manager: definition.manager });
  };
  const queue = new KeyedQueue({ work, concurrency: CONCURRENCY, onError });
  signal.addEventListener("abort", () => queue.close());

  const kinds = (await readKinds(client)).filter((kind) => keyOf(kind) in workloadKinds);
  const follow = (kind: ResourceKind) =>
    startFeed<Workload>(client, {
      kind,
      metadataOnly: false,
      onError,
      signal,
      listener: {
        changed(workload) {
          const { uid, generation } = workload.metadata;
          const before = known.get(uid);
          const isSameGeneration = before !== undefined && before.workload.metadata.generation === generation;
          known.set(uid, { kind, workload, seenAt: isSameGeneration ? before.seenAt : Date.now() });
          queue.add(uid);
        },
        deleted: ({ metadata }) => void known.delete(metadata.uid),
      },
    });
  await Promise.all(kinds.map(follow));
}

async function writeUpdate(
  client: ApiClient,
  { kind, workload }: Known,
  { update, manager }: { update: { status: object; annotations?: Record<string, string> }; manager: string },
): Promise<void> {
  const { status, annotations = workload.metadata.annotations } = update;
  if (isSame(workload.status, status) && isSame(workload.metadata.annotations, annotations)) return;
  const metadata = { ...workload.metadata, ...(annotations === undefined ? {} : { annotations }) };
  const path = `${pathOf(kind, workload.metadata)}/status?fieldManager=${manager}`;
  const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
  const body = { ...workload, apiVersion, kind: kind.kind, metadata, status };
  try {
    await client.request({ method: "PUT", path, body });
  } catch (error) {
    // A newer state is under way to us (409), or the end (404).
    if (!isNotFound(error)) throw error;
  }
}

/** What the kubelet does once the containers of a pod that is being deleted have stopped. */
async function removePod(client: ApiClient, kind: ResourceKind, { metadata }: Workload): Promise<void> {
  const body = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    gracePeriodSeconds: 0,
    preconditions: { uid: metadata.uid },
  };
  await client.request({ method: "DELETE", path: pathOf(kind, metadata), body }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

/** Compares JSON whatever the order of its keys. */
function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, child]) => [key, sorted(child)]),
  );
}
