// Informers without a server: real caches that the test fills as a list-watch would.
import {
  keyOf,
  refOfKey,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
} from "#runtime/base/kubernetes-object.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import type { InformerRequest, SharedInformers } from "#runtime/watch/shared-informers.js";
import type { SourceHealth } from "#runtime/base/activity.js";
import { listInto } from "../../../support/runtime/resource-view.js";

/** An object of the kind that the tests of event sources watch. */
export function objectOf(key: ObjectKey, metadata: Partial<ObjectMeta> = {}): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { ...refOfKey(key), uid: key, resourceVersion: "1", ...metadata },
  };
}

/** Metadata of an object that these primaries of the kind Page own, which are in the namespace "home". */
export function ownedBy(...names: readonly string[]): Partial<ObjectMeta> {
  const owner = { apiVersion: "example.com/v1", kind: "Page" };
  return { ownerReferences: names.map((name) => ({ ...owner, name, uid: `home/${name}` })) };
}

/** One informer, which the test drives. */
export class SimulatedInformer {
  readonly request: InformerRequest;
  readonly cache: ResourceCache;
  users = 0;
  health: SourceHealth = { status: "unknown" };
  readonly #synced: Promise<void>;
  #announce = () => {};
  #failure: Error | undefined;
  isSynced = false;
  isUnserved = false;
  readonly #knownListeners = new Set<() => void>();

  constructor(request: InformerRequest) {
    this.request = request;
    this.cache = new ResourceCache({ comparesVersions: request.comparesVersions ?? true });
    this.#synced = new Promise((resolve) => (this.#announce = resolve));
  }

  get isKnown(): boolean {
    return this.isSynced || this.isUnserved;
  }

  onKnown(listener: () => void): () => void {
    this.#knownListeners.add(listener);
    return () => void this.#knownListeners.delete(listener);
  }

  start(): Promise<void> {
    return this.#synced;
  }

  async startOrThrow(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    await this.#synced;
  }

  /** Lists these objects as of `version`. */
  sync(version: string, ...objects: readonly KubernetesObject[]): void {
    this.#failure = undefined;
    this.health = { status: "healthy" };
    listInto(
      this.cache,
      objects.map((object) => ({ object })),
      version,
    );
    this.#announce();
    const wasKnown = this.isKnown;
    this.isSynced = true;
    if (!wasKnown) for (const listener of this.#knownListeners) listener();
  }

  /** Makes every attempt fail from now on. */
  fail(reason: string): void {
    this.#failure = new Error(reason);
    this.health = { status: "unhealthy", reason };
  }

  /** Brings a state. */
  observe(object: KubernetesObject): void {
    this.cache.observe({ object });
  }

  /** Brings a deletion. */
  delete(object: KubernetesObject): void {
    this.cache.observeDeletion(object);
  }
}

/** Hands out informers, one for each kind and namespace, and keeps those that are in use. */
export class SimulatedInformers implements SharedInformers {
  readonly all: SimulatedInformer[] = [];
  /** Called with each new informer. */
  onCreate: (informer: SimulatedInformer) => void = () => {};

  acquire(request: InformerRequest) {
    let informer = this.all.find((each) => isSame(each.request, request));
    if (informer === undefined) {
      informer = new SimulatedInformer(request);
      this.all.push(informer);
      this.onCreate(informer);
    }
    informer.users++;
    const acquired = informer;
    let isReleased = false;
    const release = async () => {
      if (isReleased) return;
      isReleased = true;
      if (--acquired.users === 0) this.all.splice(this.all.indexOf(acquired), 1);
    };
    return { informer: acquired, release };
  }

  /** The informer of a kind, in a namespace if one is given; throws unless it is in use. */
  of(kind: string, namespace?: string): SimulatedInformer {
    const found = this.all.find(({ request }) => request.definition.kind === kind && request.namespace === namespace);
    if (found === undefined) throw new Error(`${kind} is not watched in ${namespace ?? "all namespaces"}`);
    return found;
  }

  /** The namespaces in which a kind is watched. */
  namespacesOf(kind: string): (string | undefined)[] {
    return this.all.flatMap(({ request }) => (request.definition.kind === kind ? [request.namespace] : []));
  }
}

function isSame(a: InformerRequest, b: InformerRequest): boolean {
  const keyOfRequest = ({ definition, connection: _, ...rest }: InformerRequest) =>
    JSON.stringify([definition.kind, Object.entries(rest).sort()]);
  return a.connection === b.connection && keyOfRequest(a) === keyOfRequest(b);
}

/** The keys of objects, sorted. */
export function keysOf(objects: readonly KubernetesObject[]): ObjectKey[] {
  return objects.map(({ metadata }) => keyOf(metadata)).sort();
}
