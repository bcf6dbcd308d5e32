// Control planes that are used one after the other: to start one takes seconds of both cores, and to empty one a fraction of a second.
import { apiRequest } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";
import { startControlPlane, type ControlPlane, type StartedControlPlane } from "./control-plane.js";

/** What a borrowed control plane has beside etcd and kube-apiserver. */
export interface BorrowOptions {
  /** The controllers that run until it is given back. Where there are any, a Pod needs a ServiceAccount. */
  readonly controllerNames?: readonly string[];
}

/** A control plane that can be emptied. */
interface PooledPlane {
  readonly plane: StartedControlPlane;
  /** Whether a Pod needs a ServiceAccount, which only a restart changes. */
  readonly hasAccounts: boolean;
  /** What was stored before the first test. */
  readonly initial: ReadonlyMap<string, Stored>;
  /** The names of the groups that were served. */
  readonly groups: ReadonlySet<string>;
}

/** A value in etcd, in base64. */
interface Stored {
  readonly value: string;
  readonly revision: string;
}

// The API server keeps what it derives from these for a while after they are gone.
const REMEMBERED = /^\/registry\/(?:validating|mutating|resourcequotas)/;
// The API server writes these by itself.
const ITS_OWN = /^\/registry\/(?:masterleases|leases\/kube-system|apiregistration\.k8s\.io)\//;
const QUIET_MS = 300;
// One takes 400 MB.
const MOST_IDLE = 3;

/** Starts control planes, and keeps those that are given back for the next borrower. */
export class ControlPlanePool implements AsyncDisposable {
  readonly #idle: PooledPlane[] = [];
  #isClosed = false;

  /** Returns a control plane in the state in which `startControlPlane` returns it; `close` gives it back. Only resource versions show that it was used before. */
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
    // It creates roles, namespaces and more after it has said that it is ready.
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
/** Removes what is not as it was at first; false if the server would remember some of it. */
async function empty({ plane, initial, groups }: PooledPlane): Promise<boolean> {
  const stored = await readAll(plane);
  if ([...stored.keys()].some((key) => !initial.has(key) && REMEMBERED.test(key))) return false;
  const added = [...stored.keys()].filter((key) => !initial.has(key) && !ITS_OWN.test(key));
  const changed = [...initial].filter(
    ([key, { revision }]) => stored.get(key)?.revision !== revision && !ITS_OWN.test(key),
  );
  // Definitions last, so that no object is read without its definition.
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

/** Calls etcd through its gateway for JSON. */
async function etcd({ etcdUrl }: ControlPlane, method: string, body: object): Promise<unknown> {
  const response = await fetch(`${etcdUrl}/v3/kv/${method}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd answers ${response.status} to ${method}: ${await response.text()}`);
  return response.json();
}

const encode = (key: string) => Buffer.from(key).toString("base64");
