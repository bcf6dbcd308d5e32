// A dispatcher for Pages on an embedded API server: what it asks of the server, and what it says, is recorded.
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import type { DecodedResource, KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { ApiClient, collectionPath, objectPath, requesterOf } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { decodeResource } from "#runtime/client/object-decoder.js";
import { ResourceCache, type ResourceChange } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { PrimaryReconciler } from "#runtime/reconcile/primary-reconciler.js";
import { RunningTasks } from "#runtime/base/user-calls.js";
import type { PrimaryOutcome, ReconcileScope } from "#runtime/queue/controller.js";
import type { ErrorArguments, ReconcileArguments, Reconciler } from "#runtime/reconcile/reconciler.js";
import { ExpectationRegistry, type PrimaryDependencies } from "#runtime/reconcile/reconcile-context.js";
import { LateWrites } from "#runtime/reconcile/late-writes.js";
import type {
  DependentArguments,
  DependentDefinition,
  WorkflowDefinition,
} from "#runtime/workflow/workflow-definition.js";
import { ResourceOperations } from "#runtime/apply/resource-operations.js";
import { Sender } from "#runtime/apply/sender.js";
import { Page, pageCrd } from "../../page-operator.js";
import { noSecondarySources } from "../../../../support/runtime/no-sources.js";
import { shared } from "../../../../support/suite.js";
import { VirtualClock } from "../../../../support/runtime/virtual-clock.js";
import { eventsUntil, openWatch } from "../../../../support/api/watch-client.js";

export { Page } from "../../page-operator.js";

/** What controllers write as here. */
export const FIELD_MANAGER = "page";

/** The finalizer of the controllers here. */
export const FINALIZER = "pages.example.com/finalizer";

/** The reconcilers of these tests. */
export type PageReconciler = Reconciler<Page, object, NonNullable<Page["status"]>>;
export type PageArguments = ReconcileArguments<Page, object>;
export type PageErrorArguments = ErrorArguments<Page, object>;
export type PageInitArguments = DependentArguments<Page, object>;

/** Returns the one server of the file. */
export const sharedServer: () => Promise<ApiServer> = shared(() => startApiServer({ tls: false, crds: [pageCrd] }));

/** What a test asks for. */
export interface DispatcherOptions extends Partial<Omit<ControllerDefinition, "workflow">> {
  readonly dependents?: readonly DependentDefinition[];
  readonly workflow?: Omit<WorkflowDefinition, "primary" | "dependents">;
  readonly dependencies?: Partial<PrimaryDependencies>;
}

/** A dispatcher and what it did. */
export interface Dispatcher {
  readonly server: ApiServer;
  readonly client: ApiClient;
  readonly primary: PrimaryReconciler;
  readonly cache: ResourceView;
  /** What the watch brings to the cache. */
  readonly watched: ResourceCache;
  /** What the cache told its listeners. */
  readonly changes: ResourceChange[];
  /** Every request of the dispatcher: method, what follows the plural in its path, and status. */
  readonly requests: string[];
  /** Every line of the log: level and message. */
  readonly logs: string[];
  /** Creates a page on the server and observes it. */
  create(
    name: string,
    more?: { metadata?: object; spec?: object; status?: Page["status"] },
  ): Promise<DecodedResource<Page>>;
  /** Brings every state that the server has had since the last time into the cache, as a watch does. */
  observe(name: string): Promise<DecodedResource<Page>>;
  /** Reads a page from the server; undefined if there is none. */
  read(name: string): Promise<Page | undefined>;
  /** Changes a page behind the back of the dispatcher. */
  edit(name: string, patch: object): Promise<Page>;
  /** Runs one reconcile. */
  run(entry: DecodedResource, scope?: Partial<ReconcileScope>): Promise<PrimaryOutcome>;
}

/** Creates a dispatcher on the shared server. */
export async function createDispatcher(options: DispatcherOptions = {}): Promise<Dispatcher> {
  const { dependents = [], workflow, dependencies, ...settings } = options;
  const server = await sharedServer();
  const connection = createConnection({ url: server.url, token: server.token });
  const requests: string[] = [];
  const logs: string[] = [];
  const { definition } = Page;
  const client = new ApiClient(connection, {
    observe: ({ method, path, status }) => {
      const { pathname } = new URL(path, server.url);
      requests.push(`${method} ${pathname.replace(/^.*\/pages\//, "")} ${status}`);
    },
  });
  // What the test itself does is not recorded.
  const other = new ApiClient(connection);
  const watched = new ResourceCache();
  const cache = new ResourceView(definition, settings.indexes as never);
  cache.attach(watched);
  const changes: ResourceChange[] = [];
  cache.onChange((change) => void changes.push(change));
  const log = (level: string) => (_: object, message: string) => void logs.push(`${level} ${message}`);
  const logger = { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  const sender = new Sender({ client, fieldManager: FIELD_MANAGER });
  const primary = new PrimaryReconciler(
    {
      name: FIELD_MANAGER,
      ...settings,
      workflow: { primary: definition, dependents, ...workflow },
    },
    {
      primaries: cache,
      reconcilerOf: reconcilerOfNothing,
      sender,
      secondaries: noSecondarySources,
      resources: new ResourceOperations({
        ...{ sender, finalizer: FINALIZER, sources: noSecondarySources, logger },
        primary: { definition, cache },
      }),
      expectations: new ExpectationRegistry({ clock: new VirtualClock(), onTimeout() {} }),
      lateWrites: new LateWrites(),
      ...dependencies,
    },
  );
  const refOf = (name: string) => ({ name, namespace: "default" });
  const fetch = async (name: string) => {
    const { body } = await requesterOf(other).send({ method: "GET", path: objectPath(definition, refOf(name)) });
    return decodeResource<Page>(body, { fieldManagers: [FIELD_MANAGER] });
  };
  const versions = new Map<string, string>();
  const observe = async (name: string) => {
    const entry = await fetch(name);
    const version = entry.object.metadata.resourceVersion!;
    const since = versions.get(name);
    versions.set(name, version);
    if (since === undefined) watched.observe(entry);
    else await replay(watched, server, { name, since, version });
    return entry;
  };
  return {
    server,
    client: other,
    primary,
    cache,
    watched,
    changes,
    requests,
    logs,
    observe,
    async create(name, { metadata, spec = { text: "first" }, status } = {}) {
      await other.create(Page, { metadata: { ...refOf(name), ...metadata }, spec: spec as Page["spec"] });
      if (status !== undefined) await other.mergePatch(Page, { ...refOf(name), subresource: "status" }, { status });
      const entry = await observe(name);
      changes.length = 0;
      return entry;
    },
    read: (name) => other.get(Page, refOf(name)),
    edit: (name, patch) => other.mergePatch(Page, refOf(name), patch),
    run: (entry, scope = {}) =>
      primary.run({
        key: `default/${entry.object.metadata.name}`,
        entry,
        queuedMs: 0,
        wasPaused: false,
        retry: { attempt: 0, isLastAttempt: false },
        isPrimaryDeleted: false,
        isFinalStateUnknown: false,
        reasons: [],
        onStep: () => {},
        isNextReconcileImminent: () => false,
        signal: new AbortController().signal,
        logger,
        tasks: new RunningTasks({ logger, clock: new VirtualClock() }),
        ...scope,
      }),
  };
}

async function replay(
  watched: ResourceCache,
  server: ApiServer,
  { name, since, version }: { name: string; since: string; version: string },
): Promise<void> {
  if (since === version) return;
  const query = `watch=true&fieldSelector=metadata.name%3D${name}&resourceVersion=${since}`;
  const path = `${collectionPath(Page.definition, "default")}?${query}`;
  using watch = await openWatch(server, path);
  const events = await eventsUntil(watch, ({ object }) => object.metadata.resourceVersion === version);
  for (const { type, object } of events) {
    const entry = decodeResource(Buffer.from(JSON.stringify(object)), { fieldManagers: [FIELD_MANAGER] });
    if (type === "DELETED") watched.observeDeletion(entry.object);
    else watched.observe(entry);
  }
}

/** A way of writing primaries. */
export interface WritingWay {
  readonly serverSideApply: boolean;
  /** Returns a name for a page that no other test and no other way uses. */
  nameOf(name: string): string;
}

/** Runs a test for server-side apply and for JSON patches. */
export async function inBothWays(body: (way: WritingWay) => Promise<void>): Promise<void> {
  for (const serverSideApply of [true, false]) {
    const way = serverSideApply ? "apply" : "patch";
    try {
      await body({ serverSideApply, nameOf: (name) => `${name}-${way}` });
    } catch (error) {
      if (error instanceof Error) error.message = `with ${way}: ${error.message}`;
      throw error;
    }
  }
}

/** Marks a page for deletion, which its finalizers hold. */
export async function markForDeletion({ client, observe }: Dispatcher, name: string): Promise<DecodedResource<Page>> {
  await client.delete(Page, { name, namespace: "default" });
  return observe(name);
}

/** Returns the names of the managers of a page, with their operation and subresource. */
export async function managersOf({ client }: Dispatcher, name: string): Promise<string[]> {
  const { body } = await requesterOf(client).send({
    method: "GET",
    path: objectPath(Page.definition, { name, namespace: "default" }),
  });
  const { metadata } = JSON.parse(body.toString("utf8")) as {
    metadata: KubernetesObject["metadata"] & {
      managedFields: { manager: string; operation: string; subresource?: string }[];
    };
  };
  return metadata.managedFields.map(({ manager, operation, subresource }) =>
    [manager, operation, subresource].filter(Boolean).join(" "),
  );
}

function reconcilerOfNothing(): never {
  throw new Error("this test has no dependents to write");
}
