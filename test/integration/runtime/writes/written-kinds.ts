// A controller's way to write: its operations on Pages and ConfigMaps, with the watches that keep what it knows up to date, and somebody
// else who writes the same objects.
import type { ApiServer } from "#apiserver/index.js";
import { type Defined, type KubernetesObject, type ObjectKey, hasType } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import type { ResourceChange } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { type SecondarySources } from "#runtime/sources/controller-sources.js";
import { type InformerHandle, InformerPool } from "#runtime/watch/shared-informers.js";
import { ResourceOperations } from "#runtime/apply/resource-operations.js";
import { Sender } from "#runtime/apply/sender.js";
import { ConfigMap, Page, Secret } from "../page-operator.js";
import { noSecondarySources } from "../../../support/runtime/no-sources.js";

export const FIELD_MANAGER = "page";
export const FINALIZER = "pages.example.com/finalizer";

let sentinels = 0;

/** A kind as the controller sees it. */
export interface WatchedKind {
  readonly view: ResourceView;
  /** Every change that the controller was told. */
  readonly changes: ResourceChange[];
}

/** An event source, as far as it is written through. */
export type WrittenSource = Pick<EventSource, "name" | "type"> & { readonly view?: ResourceView };

/** What a test writes with. */
export interface WrittenKinds extends AsyncDisposable {
  readonly operations: ResourceOperations;
  readonly pages: WatchedKind;
  readonly configMaps: WatchedKind;
  /** The client of the controller, whose requests are counted. */
  readonly client: ApiClient;
  /** Somebody else. */
  readonly foreign: ApiClient;
  /** Every write of the controller: method and status. */
  readonly writes: string[];
  readonly warnings: string[];
  /** Resolves when the controller has seen all that was written before. */
  settle(): Promise<void>;
  /** Forgets the changes and writes so far. */
  forget(): Promise<void>;
}

/** Starts the watches of a controller. */
export async function startWrittenKinds(server: ApiServer, more: readonly WrittenSource[] = []): Promise<WrittenKinds> {
  const connection = () => createConnection({ url: server.url, token: server.token, ca: server.ca });
  const writes: string[] = [];
  const warnings: string[] = [];
  const client = new ApiClient(connection(), {
    observe: ({ method, status }) => {
      if (method !== "GET") writes.push(`${method} ${status ?? "lost"}`);
    },
  });
  const foreign = new ApiClient(connection());
  const ignore = () => {};
  const logger = {
    debug: ignore,
    info: ignore,
    warn: (_: object, message: string) => void warnings.push(message),
    error: ignore,
  };
  const pool = new InformerPool({ client, logger, fieldManagers: [FIELD_MANAGER] });
  const leases: InformerHandle[] = [];
  const watch = async ({ definition }: Defined<KubernetesObject>): Promise<WatchedKind> => {
    const lease = pool.acquire({ definition });
    leases.push(lease);
    const changes: ResourceChange[] = [];
    const view = new ResourceView(definition);
    view.attach(lease.informer.cache);
    view.onChange((change) => void changes.push(change));
    await lease.informer.start();
    return { view, changes };
  };
  const pages = await watch(Page);
  const configMaps = await watch(ConfigMap);
  const operations = new ResourceOperations({
    sender: new Sender({ client, fieldManager: FIELD_MANAGER }),
    finalizer: FINALIZER,
    primary: { definition: Page.definition, cache: pages.view },
    sources: sourcesOf([
      { name: "config-maps", type: ConfigMap.definition, view: configMaps.view },
      ...more,
      { name: "secrets of a vault", type: Secret.definition },
    ]),
    logger,
  });
  // A watch brings changes in order: when it brings this one, it has brought all before.
  const settle = async () => {
    const name = `sentinel-${++sentinels}`;
    const metadata = { name, namespace: "kube-public" };
    await foreign.create(ConfigMap, { metadata });
    await foreign.create(Page, { metadata, spec: { text: "" } });
    await waitFor("the watches catch up", () =>
      [pages, configMaps].every(({ view }) => view.has(`kube-public/${name}`)),
    );
    for (const { changes } of [pages, configMaps]) {
      const told = changes.filter(({ object }) => object.metadata.namespace !== "kube-public");
      changes.splice(0, changes.length, ...told);
    }
  };
  const forget = async () => {
    await settle();
    for (const list of [pages.changes, configMaps.changes, writes]) list.length = 0;
  };
  return {
    operations,
    pages,
    configMaps,
    client,
    foreign,
    writes,
    warnings,
    settle,
    forget,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(leases.map((lease) => lease.release()));
      await Promise.all([client.close(), foreign.close()]);
    },
  };
}

function sourcesOf(sources: readonly WrittenSource[]): SecondarySources {
  return {
    ...noSecondarySources,
    find: (type) => sources.filter((source) => hasType(source, type)) as EventSource[],
    get: (name) => sources.find((source) => source.name === name) as EventSource | undefined,
    names: () => sources.map(({ name }) => name),
  };
}

/** Returns what the controller knows of an object. */
export function knownIn<Resource extends KubernetesObject>({ view }: WatchedKind, key: ObjectKey): Resource {
  const entry = view.get(key);
  if (entry === undefined) throw new Error(`${key} is not known`);
  return entry.object as Resource;
}
