// A pool of control planes that tests reuse: starting one takes seconds on two cores, and resetting one takes a fraction of a second.
import { apiRequest } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";
import { startControlPlane, type ControlPlane, type StartedControlPlane } from "./control-plane.js";

/** The additional programs of a borrowed control plane. */
export interface BorrowOptions {
  /** The controllers to run until the control plane is returned. If there are any, Pods need a ServiceAccount. */
  readonly controllerNames?: readonly string[];
}

/** A control plane that can be reset. */
interface PooledPlane {
  readonly plane: StartedControlPlane;
  /** Whether Pods need a ServiceAccount, which only a restart can change. */
  readonly hasAccounts: boolean;
  /** The keys and values of etcd before the first test. */
  readonly initial: ReadonlyMap<string, Stored>;
  /** The API groups that were served before the first test. */
  readonly groups: ReadonlySet<string>;
}

/** A value in etcd, in base64. */
interface Stored {
  readonly value: string;
  readonly revision: string;
}

// The API server caches data that is derived from these objects for a while after their deletion.
const REMEMBERED = /^\/registry\/(?:validating|mutating|resourcequotas)/;
// Objects that the API server writes by itself.
const ITS_OWN = /^\/registry\/(?:masterleases|leases\/kube-system|apiregistration\.k8s\.io)\//;
const QUIET_MS = 300;
// A control plane takes 400 MB.
const MOST_IDLE = 3;

/** Starts control planes, and keeps returned ones for reuse. */
export class ControlPlanePool implements AsyncDisposable {
  readonly #idle: PooledPlane[] = [];
  #isClosed = false;

  /**
   * Returns a control plane in the same state as one of `startControlPlane`; `close` returns it to the pool. Only resourceVersions reveal that it has
   * been used before.
   */
  async borrow({ controllerNames = [] }: BorrowOptions = {}): Promise<ControlPlane> {
    const pooled = await this.#take(controllerNames.length > 0);
    const controllers = controllerNames.length > 0 ? pooled.plane.startControllers(controllerNames) : undefined;
    const giveBack = async () => {
      await controllers?.stop();
      await this.#giveBack(pooled);
    };
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= giveBack());
    return { ...pooled.plane, close, [Symbol.asyncDispose]: close };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map(({ plane }) => plane.close()));
  }

  async #take(hasAccounts: boolean): Promise<PooledPlane> {
    const index = this.#idle.findLastIndex((pooled) => pooled.hasAccounts === hasAccounts);
    const [pooled] = index < 0 ? [] : this.#idle.splice(index, 1);
    if (pooled !== undefined) return pooled;
    return startPooled(hasAccounts);
  }

  async #giveBack(pooled: PooledPlane): Promise<void> {
    const isEmpty = !this.#isClosed && (await empty(pooled).catch(() => false));
    if (isEmpty && !this.#isClosed) this.#idle.push(pooled);
    else await pooled.plane.close();
    if (this.#idle.length > MOST_IDLE) await this.#idle.shift()?.plane.close();
  }
}

async function startPooled(hasAccounts: boolean): Promise<PooledPlane> {
  const plane = await startControlPlane({ serviceAccountAdmission: hasAccounts });
  try {
    // The API server creates roles, namespaces, and other objects after it reports to be ready.
    let last = { size: -1, at: 0 };
    let initial = new Map<string, Stored>();
    await waitFor("the API server creates nothing more", async () => {
      initial = await readAll(plane);
      if (initial.size !== last.size) last = { size: initial.size, at: performance.now() };
      return performance.now() - last.at > QUIET_MS;
    });
    return { plane, hasAccounts, initial, groups: new Set(await servedGroups(plane)) };
  } catch (error) {
    await plane.close();
    throw error;
  }
}
/** Resets etcd to its initial state; returns false if the API server may still have cached data of deleted objects. */
async function empty({ plane, initial, groups }: PooledPlane): Promise<boolean> {
  const stored = await readAll(plane);
  if ([...stored.keys()].some((key) => !initial.has(key) && REMEMBERED.test(key))) return false;
  const added = [...stored.keys()].filter((key) => !initial.has(key) && !ITS_OWN.test(key));
  const changed = [...initial].filter(
    ([key, { revision }]) => stored.get(key)?.revision !== revision && !ITS_OWN.test(key),
  );
  // Delete CRDs last, so that no object is read without its CRD.
  const definitions = added.filter((key) => key.includes("/customresourcedefinitions/"));
  const objects = added.filter((key) => !definitions.includes(key));
  for (const key of [...objects, ...definitions]) await etcd(plane, "deleterange", { key: encode(key) });
  for (const [key, { value }] of changed) await etcd(plane, "put", { key: encode(key), value });
  await waitFor("the groups of definitions are gone", async () =>
    (await servedGroups(plane)).every((group) => groups.has(group)),
  );
  return true;
}

async function servedGroups(plane: ControlPlane): Promise<readonly string[]> {
  const { body } = await apiRequest(plane, "GET /apis");
  return (body as unknown as { groups: readonly { name: string }[] }).groups.map(({ name }) => name);
}

async function readAll(plane: ControlPlane): Promise<Map<string, Stored>> {
  const answer = await etcd(plane, "range", { key: encode("/registry/"), range_end: encode("/registry0") });
  const { kvs = [] } = answer as { kvs?: readonly { key: string; value: string; mod_revision: string }[] };
  return new Map(
    kvs.map(({ key, value, mod_revision: revision }) => [Buffer.from(key, "base64").toString(), { value, revision }]),
  );
}

/** Calls etcd through its JSON gateway. */
async function etcd({ etcdUrl }: ControlPlane, method: string, body: object): Promise<unknown> {
  const response = await fetch(`${etcdUrl}/v3/kv/${method}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd answers ${response.status} to ${method}: ${await response.text()}`);
  return response.json();
}

const encode = (key: string) => Buffer.from(key).toString("base64");
