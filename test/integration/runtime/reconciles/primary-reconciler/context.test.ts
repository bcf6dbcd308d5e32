// What the context of a reconcile offers besides its secondary resources, and reconciles on all events.
import type { EventSource } from "#runtime/sources/event-source.js";
import type { SecondarySources } from "#runtime/sources/controller-sources.js";
import { noUpdate, patchResourceAndStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../../support/suite.js";
import {
  createDispatcher,
  FINALIZER,
  markForDeletion,
  Page,
  type PageArguments,
  type PageErrorArguments,
  type PageReconciler,
  type PageInitArguments,
} from "./page-dispatcher.js";

const pods: EventSource = {
  name: "pods",
  type: "Pod",
  health: { status: "healthy" },
  start: async () => {},
  stop: async () => {},
  secondariesOf: ({ metadata }) => [`pod of ${metadata.name}`],
};

/** A registry whose sources may change. */
function createRegistry(steps: string[] = []): SecondarySources {
  const sources = new Map([["pods", pods]]);
  return {
    find: (type, name) => [...sources.values()].filter((each) => each.type === type && name !== "other"),
    get: (name) => sources.get(name),
    register: async (source) => sources.get(source.name) ?? (sources.set(source.name, source), source),
    deregister: async (name) => void sources.delete(name),
    names: () => [...sources.keys()],
    activate: () => Promise.resolve(),
    load: async ({ metadata }) => void steps.push(`load ${metadata.name}`),
  };
}

suite("reconcile context", (test) => {
  test("provides the resources of custom event sources as lists beside the dependents", async () => {
    const seen: unknown[] = [];
    const dispatcher = await createDispatcher({
      dependencies: { secondaries: createRegistry() },
      reconciler: {
        reconcile({ secondary, context }: PageArguments) {
          seen.push({ ...secondary }, context.secondary("Pod"), context.secondaries("Pod", { source: "pods" }));
        },
      },
    });
    await dispatcher.run(await dispatcher.create("lists"));
    assert.equal(seen, [{ pods: ["pod of lists"] }, "pod of lists", ["pod of lists"]]);
  });

  test("loads event sources before any call, and passes a load failure to updateErrorStatus", async () => {
    const steps: string[] = [];
    const secondaries = createRegistry(steps);
    const reconciler = {
      initContext: () => void steps.push("initContext"),
      reconcile: () => void steps.push("reconcile"),
      updateErrorStatus: ({ error }: { error: unknown }) => void steps.push((error as Error).message),
    };
    const dispatcher = await createDispatcher({ reconciler, dependencies: { secondaries } });
    const entry = await dispatcher.create("loads");
    await dispatcher.run(entry);
    const load = () => Promise.reject(new Error("cannot load"));
    const broken = await createDispatcher({ reconciler, dependencies: { secondaries: { ...secondaries, load } } });
    assert.is(((await broken.run(entry)).failure?.error as Error).message, "cannot load");
    assert.equal(steps, ["load loads", "initContext", "reconcile", "cannot load"]);
  });

  test("registers an event source once per name and deregisters it", async () => {
    const seen: unknown[] = [];
    const dispatcher = await createDispatcher({
      dependencies: { secondaries: createRegistry() },
      reconciler: {
        async reconcile({ context: { eventSources } }: PageArguments) {
          const source = { ...pods, name: "more" };
          seen.push((await eventSources.register(source)) === source, eventSources.get("more") === source);
          seen.push((await eventSources.register({ ...source })) === source);
          await eventSources.deregister("more");
          seen.push(eventSources.get("more"));
        },
      },
    });
    await dispatcher.run(await dispatcher.create("registers"));
    assert.equal(seen, [true, true, true, undefined]);
  });

  test("reads primaries from the cache by reference, namespace and index, and rejects an unknown index", async () => {
    const byText = ({ spec }: Page) => [spec.text];
    const seen: unknown[] = [];
    const namesOf = (pages: readonly Page[]) => pages.map(({ metadata }) => metadata.name);
    const dispatcher = await createDispatcher({
      indexes: { byText },
      reconciler: {
        reconcile({ primary, context }: PageArguments) {
          const all = context.primaries;
          seen.push(all.get(primary.metadata) === primary, all.get({ name: "none" }));
          seen.push(namesOf(all.list()), namesOf(all.list({ namespace: "elsewhere" })));
          seen.push(namesOf(all.byIndex("byText", "second")));
          all.byIndex("bySize", "1");
        },
      },
    });
    const entry = await dispatcher.create("indexed");
    await dispatcher.create("indexed-too", { spec: { text: "second" } });
    const { failure } = await dispatcher.run(entry);
    assert.equal(seen, [true, undefined, ["indexed", "indexed-too"], [], ["indexed-too"]]);
    assert.match((failure?.error as Error).message, 'there is no index "bySize" of pages; add it to indexes');
  });

  test("provides operations bound to the primary and the signal of the reconcile", async () => {
    const causes: { readonly primary?: unknown; readonly signal?: AbortSignal }[] = [];
    const resources = { within: (cause: object) => (causes.push(cause), "operations") } as never;
    const seen: unknown[] = [];
    const dispatcher = await createDispatcher({
      reconciler: { reconcile: ({ context }: PageArguments) => void seen.push(context.resources, context.signal) },
      dependencies: { resources },
    });
    const entry = await dispatcher.create("resources");
    await dispatcher.run(entry);
    assert.equal([seen[0], causes.map(({ primary }) => primary)], ["operations", [entry.object]]);
    assert.is(causes[0]?.signal, seen[1]);
  });
});

suite("onAllEvents", (test) => {
  const onAllEvents = async (reconcile: PageReconciler["reconcile"]) =>
    createDispatcher({ onAllEvents: true, reconciler: { reconcile } });

  test("reconciles a terminating primary without adding or removing finalizers", async () => {
    const seen: boolean[] = [];
    const dispatcher = await onAllEvents(({ context }) => void seen.push(context.isPrimaryDeleted));
    await dispatcher.run(await dispatcher.create("all", { metadata: { finalizers: [FINALIZER] } }));
    const outcome = await dispatcher.run(await markForDeletion(dispatcher, "all"));
    assert.equal(seen, [false, false]);
    assert.is(outcome.kind, "reconcile");
    assert.equal(dispatcher.requests, []);
    assert.is(dispatcher.primary.isUndone(await dispatcher.create("all-new")), false);
  });

  test("reconciles a deleted primary in its last state and writes nothing to it", async () => {
    const seen: unknown[] = [];
    const dispatcher = await onAllEvents(({ primary, context }) => {
      seen.push(primary.spec.text, context.isPrimaryDeleted, context.isPrimaryFinalStateUnknown);
      return patchResourceAndStatus({ spec: { text: "x" } }, { text: "x" }, { rescheduleAfterMs: 5 });
    });
    const entry = await dispatcher.create("deleted");
    await dispatcher.client.delete(Page, entry.object.metadata);
    dispatcher.watched.observeDeletion({
      ...entry.object,
      metadata: { ...entry.object.metadata, resourceVersion: "999999" },
    });
    const outcome = await dispatcher.run(entry, { isPrimaryDeleted: true, isFinalStateUnknown: true });
    assert.equal(seen, ["first", true, true]);
    assert.is(outcome.failure, undefined);
    assert.equal(dispatcher.requests, []);
  });

  test("rejects a deleted primary in a controller without onAllEvents", async () => {
    let calls = 0;
    const dispatcher = await createDispatcher({
      reconciler: { initContext: (_: PageInitArguments) => void calls++, reconcile: () => void calls++ },
    });
    const { failure } = await dispatcher.run(await dispatcher.create("illegal"), { isPrimaryDeleted: true });
    assert.match((failure?.error as Error).message, "default/illegal was deleted; only controllers with onAllEvents");
    assert.is(calls, 0);
  });

  test("calls updateErrorStatus for an error of a deleted primary", async () => {
    const seen: unknown[] = [];
    const dispatcher = await createDispatcher({
      onAllEvents: true,
      reconciler: {
        reconcile() {
          throw new Error("no");
        },
        updateErrorStatus: ({ primary, error, context }: PageErrorArguments) => {
          seen.push(primary.metadata.name, (error as Error).message, context.isPrimaryDeleted);
          return noUpdate({ rescheduleAfterMs: 5 });
        },
      },
    });
    const outcome = await dispatcher.run(await dispatcher.create("deleted-fails"), { isPrimaryDeleted: true });
    assert.equal(seen, ["deleted-fails", "no", true]);
    assert.equal([outcome.failure, outcome.rescheduleAfterMs], [undefined, 5], "its control decides");
    assert.equal(dispatcher.requests, []);
  });
});
