// What holds however events, reconciles and time interleave.
import fc from "../../../../support/fast-check.js";
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import { TerminalError } from "#runtime/base/errors.js";
import type { PrimaryOutcome, ReconcileScope } from "#runtime/queue/controller.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";
import { createBed, failureOf, SUCCESS, type BedOptions } from "../controller-bed.js";

// Hundreds of turns of the event loop for each of hundreds of runs.
const LONG = { timeoutMs: 120_000 };

type World = ReturnType<typeof createWorld>;

/** A controller of a few primaries, with a record of what each of them has been told and has seen. */
function createWorld(definition: BedOptions) {
  const bed = createBed(definition);
  const running = new Map<ObjectKey, { scope: ReconcileScope; end: (outcome: PrimaryOutcome) => void }>();
  /** When something last happened to a primary, and when a reconcile of it last started, in one sequence. */
  const toldAt = new Map<ObjectKey, number>();
  const startedAt = new Map<ObjectKey, number>();
  const lastRun = new Map<ObjectKey, ReconcileScope>();
  /** Objects that need no reconcile any more. */
  const finished = new Set<string | undefined>();
  let sequence = 0;
  let uids = 0;
  const violations: string[] = [];
  bed.respond(
    (scope) =>
      new Promise((resolve) => {
        if (running.has(scope.key)) violations.push(`${scope.key} is reconciled twice at once`);
        if (running.size >= (definition.maxConcurrentReconciles ?? 50)) violations.push("too many run at once");
        startedAt.set(scope.key, ++sequence);
        lastRun.set(scope.key, scope);
        running.set(scope.key, { scope, end: resolve });
      }),
  );
  return {
    ...bed,
    running,
    violations,
    toldAt,
    startedAt,
    lastRun,
    finished,
    tell: (key: ObjectKey) => void toldAt.set(key, ++sequence),
    nextUid: () => `u${++uids}`,
  };
}

type Step = (world: World) => void;

const name = fc.constantFrom("one", "two", "three");
const keyOf = (primary: string) => `home/${primary}`;

const outcome: fc.Arbitrary<(scope: ReconcileScope) => PrimaryOutcome> = fc.oneof(
  fc.constant(() => SUCCESS),
  fc.constant(() => failureOf()),
  fc.constant(() => failureOf(new TerminalError("never"))),
  fc.constantFrom(0, 10, 5000).map((rescheduleAfterMs) => () => ({ ...SUCCESS, rescheduleAfterMs })),
  fc.constant(({ entry, isPrimaryDeleted }: ReconcileScope) => {
    const isFinalizerRemoved = entry.object.metadata.deletionTimestamp !== undefined && !isPrimaryDeleted;
    return { ...SUCCESS, isFinalizerRemoved };
  }),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: name.map(
      (primary): Step =>
        (world) =>
          change(world, primary),
    ),
  },
  {
    weight: 2,
    arbitrary: name.map(
      (primary): Step =>
        (world) =>
          change(world, primary, { isDeleting: true }),
    ),
  },
  {
    weight: 1,
    arbitrary: name.map(
      (primary): Step =>
        (world) =>
          change(world, primary, { isAnew: true }),
    ),
  },
  {
    weight: 3,
    arbitrary: name.map((primary): Step => {
      return (world) => {
        const key = keyOf(primary);
        if (!world.cache.has(key)) return world.observeSecondary(key);
        world.tell(key);
        world.observeSecondary(key);
      };
    }),
  },
  {
    weight: 2,
    arbitrary: name.map((primary): Step => {
      return (world) => {
        const key = keyOf(primary);
        if (!world.cache.has(key)) return;
        world.tell(key);
        world.observeDeletion(key);
      };
    }),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(fc.nat(), outcome).map(([index, outcomeOf]): Step => {
      return ({ running, finished }) => {
        const key = [...running.keys()][index % Math.max(1, running.size)];
        const run = key === undefined ? undefined : running.get(key);
        if (key === undefined || run === undefined) return;
        running.delete(key);
        const ended = outcomeOf(run.scope);
        if (ended.isFinalizerRemoved) finished.add(run.scope.entry.object.metadata.uid);
        run.end(ended);
      };
    }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(1, 60, 3000).map(
      (ms): Step =>
        ({ clock }) =>
          clock.advance(ms),
    ),
  },
  { weight: 1, arbitrary: fc.constant<Step>(({ controller }) => controller.pause()) },
  { weight: 1, arbitrary: fc.constant<Step>(({ controller }) => controller.resume()) },
);

/** Each with whether the next one falls into the same turn of the event loop. */
const steps = fc.array(fc.tuple(step, fc.boolean()), { maxLength: 60, size: "+1" });

function change(world: World, primary: string, { isDeleting = false, isAnew = false } = {}): void {
  const key = keyOf(primary);
  const before = world.cache.get(key)?.object.metadata;
  const uid = before === undefined || isAnew ? world.nextUid() : before.uid;
  const deletionTimestamp = isDeleting || before?.deletionTimestamp ? "2026-11-21T00:00:00Z" : undefined;
  world.tell(key);
  world.observe({ name: primary, uid, ...(deletionTimestamp && !isAnew ? { deletionTimestamp } : {}) });
}

const definition: fc.Arbitrary<BedOptions> = fc.record({
  onAllEvents: fc.boolean(),
  maxConcurrentReconciles: fc.integer({ min: 1, max: 3 }),
  ...{ rateLimit: fc.constantFrom({ maxReconciliations: 0, withinMs: 0 }, { maxReconciliations: 2, withinMs: 100 }) },
});

/** Lets every reconcile succeed until nothing but the longest interval is waited for. */
async function comeToRest(world: World): Promise<void> {
  world.controller.resume();
  for (let round = 0; round < 8; round++) {
    await world.settle();
    for (const [key, { end }] of [...world.running]) {
      world.running.delete(key);
      end(SUCCESS);
    }
    await world.settle();
    // Past the longest interval at last, for what is not retried any more.
    world.clock.advance(round < 4 ? 1000 : 60_000);
  }
  await world.settle();
  for (const { end } of world.running.values()) end(SUCCESS);
  world.running.clear();
  await world.settle();
}

suite("processor invariants", (test) => {
  test(
    "reconciles the latest state after the last event of each primary, never two at once",
    async () => {
      await fc.assert(
        fc.asyncProperty(definition, steps, async (options, given) => {
          // Nothing but the event makes it run.
          const world = createWorld({ ...options, maxReconciliationIntervalMs: 0 });
          for (const [apply, isInOneTurn] of given) {
            apply(world);
            if (!isInOneTurn) await world.settle();
          }
          await comeToRest(world);
          assert.equal(world.violations, []);
          for (const [key, toldAt] of world.toldAt) {
            const object = world.cache.get(key)?.object;
            const run = world.lastRun.get(key);
            if (object !== undefined && world.finished.has(object.metadata.uid)) continue;
            if (object === undefined && options.onAllEvents !== true) continue;
            assert.ok((world.startedAt.get(key) ?? 0) > toldAt, `the last event of ${key} is lost`);
            assert.is(run?.isPrimaryDeleted, object === undefined, `${key} is reconciled as what it is`);
            if (object !== undefined)
              assert.is(run?.entry.object, object, `the last reconcile of ${key} sees its state`);
          }
        }),
        { numRuns: runs(120) },
      );
    },
    LONG,
  );

  test(
    "keeps no state of deleted primaries after any sequence of events",
    async () => {
      await fc.assert(
        fc.asyncProperty(definition, steps, async (options, given) => {
          const world = createWorld({ ...options, maxReconciliationIntervalMs: 60_000 });
          for (const [apply, isInOneTurn] of given) {
            apply(world);
            if (!isInOneTurn) await world.settle();
          }
          for (const key of [...world.cache.keys()]) world.observeDeletion(key);
          await comeToRest(world);
          assert.equal(world.controller.counts(), { states: 0, timers: 0, queued: 0, running: 0 });
          assert.is(world.clock.nextDueAt, undefined);
        }),
        { numRuns: runs(60) },
      );
    },
    LONG,
  );

  test(
    "keeps no state after thousands of primaries were created, reconciled and deleted",
    async () => {
      for (const onAllEvents of [false, true]) {
        const { observe, observeDeletion, settle, respond, controller, clock, started, lines } = createBed({
          onAllEvents,
          rateLimit: { maxReconciliations: 5, withinMs: 1000 },
        });
        let count = 0;
        respond(({ isPrimaryDeleted }) => (!isPrimaryDeleted && ++count % 3 === 0 ? failureOf() : SUCCESS));
        const batches = runs(50);
        for (let batch = 0; batch < batches; batch++) {
          const names = Array.from({ length: 1000 }, (_, index) => `p${batch}-${index}`);
          for (const each of names) observe({ name: each, uid: each });
          while (controller.counts().queued > 0) await settle();
          for (const each of names) observeDeletion(`home/${each}`);
          while (controller.counts().queued > 0) await settle();
          await settle();
          assert.equal(controller.counts(), { states: 0, timers: 0, queued: 0, running: 0 });
          started.length = lines.length = 0;
        }
        assert.is(count, batches * 1000);
        assert.is(clock.nextDueAt, undefined);
      }
    },
    LONG,
  );
});
