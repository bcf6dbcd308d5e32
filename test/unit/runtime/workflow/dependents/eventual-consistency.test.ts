// Absence must be confirmed: an operator in miniature over a service whose lists are late, miss things, and over restarts and crashes.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { StartGraces } from "#runtime/api/external-dependents.js";
import { isolated } from "#runtime/sources/dependent-sources.js";
import { perPrimaryPollingSource } from "#runtime/sources/polling-sources.js";
import type { DependentRun, Live } from "#runtime/workflow/dependent-reconciler.js";
import { ExternalReconciler } from "#runtime/dependents/external-reconciler.js";
import { NO_STATES, RememberedState } from "#runtime/dependents/external-state.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import {
  EventualService,
  type EventualDraft,
  type EventualResource,
} from "../../../../support/runtime/eventual-service.js";
import fc from "../../../../support/fast-check.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";
import { createSourceContext } from "../../sources/source-context.js";
import { createState, primary as stored } from "./object-states.js";

const POLL_MS = 2_000;
const GRACE_MS = 30_000;
const FINALIZER = "example.com/pages";

/** How ids are known: listed by their owner, or by kept ids alone, with tokens for what was not kept. */
type Form = "single" | "singleWithState" | "bulkWithState";

/** What is wanted, and what the cluster keeps over restarts. */
class World {
  readonly context = createSourceContext();
  readonly service: EventualService;
  readonly objects = new Map<ObjectKey, KubernetesObject>();
  readonly wanted = new Map<string, string>();
  primary: KubernetesObject = stored;
  isGone = false;
  readonly form: Form;

  constructor(form: Form, lagMs: number, random: () => number) {
    this.form = form;
    this.service = new EventualService({ clock: this.context.clock, lagMs, random });
  }

  edit(metadata: Partial<KubernetesObject["metadata"]>): void {
    this.primary = { ...this.primary, metadata: { ...this.primary.metadata, ...metadata } };
    this.context.addPrimary(this.primary);
  }
}

/** One process of the operator; it reconciles when it is asked to, when a poll brings news, and when a time is over. */
class Process {
  readonly #world: World;
  readonly #source;
  readonly #state: RememberedState | undefined;
  readonly #reconciler: ExternalReconciler;
  readonly #graces: StartGraces;
  readonly #abort = new AbortController();
  readonly #timers: (() => void)[] = [];
  #isDue = true;
  isCrashed = false;

  constructor(world: World, graceMs = GRACE_MS) {
    const { form, service } = world;
    const isBulk = form === "bulkWithState";
    this.#world = world;
    this.#state =
      form === "single"
        ? undefined
        : new RememberedState(createState("rows", { kind: "configMap" }, { isBulk, objects: world.objects }).state);
    const definition = {
      ...{ name: "rows", dependsOn: [], source: { kind: "eventSource", name: "rows" } },
      ...(isBulk && { bulk: {} }),
      idOf: ({ id }: EventualResource) => id ?? "",
      create: (draft: EventualDraft, { token }: { token: string }) => {
        const created = service.create(draft, token);
        if (this.isCrashed) throw new Error("the process ended");
        return created;
      },
      update: (draft: EventualDraft, { id }: EventualResource) => service.update(id, draft),
      delete: ({ id }: EventualResource) => service.delete(id),
      matches: (draft: EventualDraft, { value }: EventualResource) => draft.value === value,
    } as unknown as ExternalDependent;
    const source = isolated(
      perPrimaryPollingSource<EventualResource>({
        ...{ name: "rows", idOf: ({ id }) => id, intervalMs: POLL_MS, creationGraceMs: graceMs },
        fetch: (primary) => {
          const ids = [...(this.#state?.read(primary) ?? NO_STATES).values()];
          if (ids.length === 0 && !isBulk) return service.list(keyOf(primary.metadata));
          return ids.flatMap((id) => service.get(id as string) ?? []);
        },
      }),
    );
    this.#source = source;
    this.#graces = new StartGraces(() => void (this.#isDue = true), world.context.clock);
    this.#reconciler = new ExternalReconciler({
      definition,
      source: {
        isShared: false,
        secondariesOf: (primary) => source.secondariesOf(primary),
        load: async (primary, signal) => source.load?.(primary, signal),
        recordCreated: (key, resource) => source.recordCreated(key, resource as EventualResource),
        recordUpdated: (key, resource, before) =>
          source.recordUpdated(key, resource as EventualResource, before as EventualResource),
        recordDeleted: (key, resource) => source.recordDeleted(key, resource as EventualResource),
        invalidate: (key) => source.invalidate(key),
        activate: async () => {},
        deactivate: async () => {},
      },
      state: this.#state,
      grace: this.#graces.of("rows", graceMs),
    });
  }

  async start(): Promise<this> {
    const { context, primary } = this.#world;
    const { context: started } = context;
    await this.#source.start({ ...started, notify: () => void (this.#isDue = true) });
    if (primary.metadata.finalizers?.includes(FINALIZER) === true) this.#graces.begin(primary);
    this.#source.onPrimaryChange?.({ kind: "added", key: keyOf(primary.metadata), object: primary } as never);
    return this;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#graces.close();
    for (const cancel of this.#timers) cancel();
    await this.#source.stop();
  }

  ask(): void {
    this.#isDue = true;
  }

  /** Reconciles as long as there is something to do. */
  async work(): Promise<void> {
    for (let round = 0; round < 20 && this.#isDue && !this.isCrashed && !this.#world.isGone; round++) {
      this.#isDue = false;
      try {
        await this.#reconcile();
      } catch (error) {
        const { retryAfterMs = 500 } = error as { retryAfterMs?: number };
        this.#timers.push(this.#world.context.clock.schedule(retryAfterMs, () => void (this.#isDue = true)));
      }
    }
  }

  async #reconcile(): Promise<void> {
    const world = this.#world;
    const { metadata } = world.primary;
    if (metadata.deletionTimestamp === undefined && metadata.finalizers === undefined)
      world.edit({ finalizers: [FINALIZER] });
    const { primary } = world;
    const { signal } = this.#abort;
    await this.#source.load?.(primary, signal);
    const context = { signal, logger: world.context.context.logger, events: { record() {} } };
    const run = { primary, secondary: {}, context, reconcile: {} } as unknown as DependentRun;
    const isDeleted = primary.metadata.deletionTimestamp !== undefined;
    const failures: unknown[] = [];
    const attempt = async (step: () => Promise<unknown>) => {
      if (!this.isCrashed) await step().catch((error: unknown) => failures.push(error));
    };
    const reconciler = this.#reconciler;
    if (world.form !== "bulkWithState") {
      await attempt(async () => {
        if (!isDeleted) await this.#write(run, world.wanted.get("") ?? "none");
        else {
          const live = reconciler.find(run);
          if (live !== undefined) await reconciler.remove(run, live);
        }
      });
    } else {
      const items = reconciler.findItems(run);
      const wanted = isDeleted ? new Map<string, string>() : world.wanted;
      for (const [key, live] of items) if (!wanted.has(key)) await attempt(() => reconciler.remove(run, live));
      for (const [key, value] of wanted) await attempt(() => this.#write(run, value, { key, live: items.get(key) }));
    }
    if (failures.length > 0) throw failures[0];
    if (this.isCrashed) return;
    await reconciler.finishRemovals({ primary, context: run.context });
    if (isDeleted) world.isGone = true;
  }

  async #write(run: DependentRun, value: string, item?: { key: string; live: Live | undefined }): Promise<void> {
    const draft = { owner: keyOf(run.primary.metadata), item: item?.key ?? "", value };
    const wanted = this.#reconciler.complete(run, draft, item?.key);
    await this.#reconciler.write(run, wanted, item === undefined ? this.#reconciler.find(run, wanted) : item.live);
  }
}

/** A world with a process that runs in it. */
async function startWorld(form: Form, { lagMs = 0, random = () => 1 }: { lagMs?: number; random?: () => number } = {}) {
  const world = new World(form, lagMs, random);
  world.context.addPrimary(world.primary);
  let process = await new Process(world).start();
  const { settle, clock } = world.context;
  const advance = async (ms: number) => {
    const end = clock.now() + ms;
    for (;;) {
      await settle();
      await process.work();
      await settle();
      const next = clock.nextDueAt ?? Infinity;
      if (next > end) break;
      clock.advance(next - clock.now());
    }
    clock.advance(end - clock.now());
    await settle();
    await process.work();
  };
  return {
    ...{ world, service: world.service, advance },
    want(value: string, item = "") {
      world.wanted.set(item, value);
      process.ask();
    },
    unwant(item: string) {
      world.wanted.delete(item);
      process.ask();
    },
    delete() {
      world.edit({ deletionTimestamp: "2026-01-01T00:00:00Z" });
      process.ask();
    },
    /** The process ends right after the service did the next creation, and before it knows that. */
    crashAtCreation() {
      const ending = process;
      world.service.onCreated = () => {
        world.service.onCreated = () => {};
        ending.isCrashed = true;
      };
    },
    async restart() {
      world.service.onCreated = () => {};
      await process.stop();
      process = await new Process(world).start();
    },
    isCrashed: () => process.isCrashed,
    stop: () => process.stop(),
  };
}

const valuesOf = ({ resources }: EventualService) =>
  [...resources.values()].map(({ item, value }) => `${item}=${value}`).sort();

suite("external resource with eventually consistent lists", (test) => {
  for (const form of ["single", "singleWithState", "bulkWithState"] as const) {
    const item = form === "bulkWithState" ? "a" : "";

    test(`is created once and updated once per edit: ${form}`, async () => {
      const { service, advance, want, stop } = await startWorld(form, { lagMs: 1_500 });
      want("1", item);
      await advance(5_000);
      assert.equal(service.counts, { creates: 1, updates: 0, deletes: 0 });
      want("2", item);
      await advance(10_000);
      assert.equal(service.counts, { creates: 1, updates: 1, deletes: 0 });
      assert.equal(valuesOf(service), [`${item}=2`]);
      await stop();
    });

    test(`is deleted with its primary before any list contained it: ${form}`, async () => {
      const { service, world, advance, want, delete: remove, stop } = await startWorld(form, { lagMs: 20_000 });
      want("1", item);
      await advance(100);
      remove();
      await advance(1_000);
      assert.ok(world.isGone);
      assert.equal([service.resources.size, service.counts.creates], [0, 1]);
      await stop();
    });

    test(`is not recreated after one empty list, but after its deletion: ${form}`, async () => {
      const { service, advance, want, stop } = await startWorld(form);
      want("1", item);
      await advance(10_000);
      for (let time = 0; time < 3; time++) {
        service.misses = 1;
        await advance(3 * POLL_MS);
      }
      assert.is(service.counts.creates, 1);
      const [[id]] = [...service.resources] as [[string, EventualResource]];
      service.delete(id);
      await advance(2 * POLL_MS);
      assert.equal([service.counts.creates, valuesOf(service)], [2, [`${item}=1`]]);
      await stop();
    });

    test(`is found and not recreated after a crash right after its creation: ${form}`, async () => {
      const { service, advance, want, crashAtCreation, isCrashed, restart, stop } = await startWorld(form, {
        lagMs: 10_000,
      });
      crashAtCreation();
      want("1", item);
      await advance(100);
      assert.ok(isCrashed());
      await restart();
      await advance(5_000);
      assert.is(service.counts.creates, 1);
      await advance(60_000);
      assert.equal([service.counts.creates, valuesOf(service)], [1, [`${item}=1`]]);
      await stop();
    });

    test(`is deleted with its primary after a restart right after its creation: ${form}`, async () => {
      const started = await startWorld(form, { lagMs: 10_000 });
      const { service, world, advance, want, restart, delete: remove, stop } = started;
      want("1", item);
      await advance(100);
      await restart();
      remove();
      await advance(1_000);
      assert.not.ok(world.isGone);
      await advance(60_000);
      assert.equal([world.isGone, service.resources.size], [true, 0]);
      await stop();
    });
  }

  test("is created immediately for a new primary, even right after a restart", async () => {
    const { service, advance, want, restart, stop } = await startWorld("single");
    await restart();
    want("1");
    await advance(0);
    assert.is(service.counts.creates, 1);
    await stop();
  });

  test("is created with the same token in each attempt, and with another one when it is recreated", async () => {
    const tokens: (string | undefined)[] = [];
    const { world, service, advance, want, stop } = await startWorld("singleWithState");
    const { create } = service;
    service.create = (draft, token) => {
      tokens.push(token);
      if (tokens.length < 3) throw new Error("out of order");
      return create.call(service, draft, token);
    };
    want("1");
    await advance(5_000);
    service.delete([...service.resources.keys()][0]!);
    await advance(10_000);
    assert.is(tokens.length, 4);
    assert.is(new Set(tokens.slice(0, 3)).size, 1);
    assert.is.not(tokens[3], tokens[2]);
    for (const token of tokens)
      assert.match(token ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(world.primary);
    await stop();
  });

  type Step =
    | { readonly kind: "advance"; readonly ms: number }
    | { readonly kind: "want" | "unwant"; readonly item: string; readonly value: string }
    | { readonly kind: "miss" | "restart" | "crash" };
  const items = ["a", "b"];
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.nat(8_000) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom("want" as const, "unwant" as const),
        item: fc.constantFrom(...items),
        value: fc.constantFrom("1", "2"),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom("miss" as const, "restart" as const, "crash" as const) }),
    },
  );

  for (const form of ["single", "singleWithState", "bulkWithState"] as const)
    test(
      `exists exactly once, and is deleted with its primary, after any crashes and stale lists: ${form}`,
      async () => {
        const play = fc.asyncProperty(
          fc.array(step, { maxLength: 25 }),
          fc.nat(8_000),
          fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 9 }),
          async (steps, lagMs, draws) => {
            let drawn = 0;
            const random = () => draws[drawn++ % draws.length]!;
            const started = await startWorld(form, { lagMs, random });
            const { world, service, advance, want, unwant } = started;
            const itemOf = (item: string) => (form === "bulkWithState" ? item : "");
            want("0", itemOf("a"));
            for (const each of steps) {
              if (each.kind === "advance") await advance(each.ms);
              else if (each.kind === "want") want(each.value, itemOf(each.item));
              else if (each.kind === "unwant") {
                if (form === "bulkWithState") unwant(each.item);
              } else if (each.kind === "miss") service.misses = 1;
              else if (each.kind === "crash") started.crashAtCreation();
              else await started.restart();
              if (!started.isCrashed()) continue;
              await started.restart();
              // Where nothing but the token leads to a resource, it is found as long as it is wanted.
              if (form === "bulkWithState") await advance(2 * GRACE_MS);
            }
            await advance(3 * GRACE_MS);
            if (started.isCrashed()) await started.restart();
            await advance(3 * GRACE_MS);
            const expected = [...world.wanted].map(([item, value]) => `${item}=${value}`).sort();
            assert.equal(valuesOf(service), expected);
            assert.equal(service.duplicates, []);
            started.delete();
            await advance(3 * GRACE_MS);
            assert.ok(world.isGone);
            assert.equal(valuesOf(service), []);
            await started.stop();
          },
        );
        await fc.assert(play, { numRuns: runs(300) });
      },
      { timeoutMs: 120_000 },
    );
});
