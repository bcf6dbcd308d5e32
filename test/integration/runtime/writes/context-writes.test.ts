// What reconcilers write through their context and how often they are called because of that, after JOSDK's integration tests. Every
// change counts as an event here, so that nothing but the filter of own events keeps a write from causing a reconcile.
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { noUpdate } from "#runtime/reconcile/reconciler.js";
import type { Context } from "#runtime/workflow/context.js";
import type { KindOperations, ResourceOperations } from "#runtime/apply/resource-operations.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Sample, sampleController, type DataObject, type SampleReconciler } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
/** When the change of somebody else is made: it ends before the own write begins, they overlap, or it begins afterwards. */
const MOMENTS = ["before", "during", "after"] as const;

type Samples = KindOperations<Sample>;
type ConfigMaps = KindOperations<DataObject>;

const refTo = ({ metadata: { name, namespace } }: Sample | DataObject) => ({ name, namespace: namespace! });
const configOf = (primary: Sample) => ({ ...refTo(primary), annotations: { sample: primary.metadata.name } });

/** Starts a controller for which every change counts, also of the ConfigMaps that name their primary. */
function startCounting(space: Space, reconciler: SampleReconciler) {
  const mapper = byAnnotation(Sample, { name: "sample" });
  const eventSources = () => [informerSource({ name: "configs", resource: ConfigMap, mapper })];
  return space.start([sampleController(reconciler, { generationAware: false, eventSources })]);
}

/** Reconciles one Sample until nothing happens any more; returns how often, and fails if an attempt did. */
async function countReconciles(space: Space, reconcile: SampleReconciler["reconcile"]): Promise<number> {
  await using running = await startCounting(space, { reconcile });
  await space.create(Sample, { metadata: { name: "one" }, spec: { value: "theirs" } });
  await waitFor("it is reconciled", () => running.events.length > 0);
  await running.quiet();
  const errors = running.events.flatMap(({ error }) => error ?? []);
  assert.equal(errors, []);
  return running.events.length;
}

suite("writes of the primary", (test) => {
  const specs: [string, (samples: Samples, primary: Sample) => Promise<unknown>][] = [
    ["apply", (samples, primary) => samples.apply({ metadata: refTo(primary), spec: { other: "own" } })],
    ["update", (samples, primary) => samples.update({ ...primary, spec: { ...primary.spec, other: "own" } })],
    ["jsonPatch", (samples, primary) => samples.jsonPatch(primary, ({ spec }) => void (spec.other = "own"))],
    ["mergePatch", (samples, primary) => samples.mergePatch({ metadata: refTo(primary), spec: { other: "own" } })],
  ];
  for (const [verb, write] of specs)
    test(`${verb} stores the change, keeps fields of other managers, and triggers no reconcile`, async () => {
      await using space = await openSpace();
      const reconciles = await countReconciles(space, async ({ primary, context }) => {
        await write(context.resources.of(Sample), primary);
      });
      const stored = await space.get(Sample, "one");
      assert.equal(stored?.spec, { value: "theirs", other: "own" });
      assert.is(reconciles, 1);
    });

  const statuses: [string, (samples: Samples, primary: Sample) => Promise<unknown>][] = [
    ["applyStatus", (samples, primary) => samples.applyStatus({ metadata: refTo(primary), status: { value: "own" } })],
    ["updateStatus", (samples, primary) => samples.updateStatus({ ...primary, status: { value: "own" } })],
    [
      "jsonPatchStatus",
      (samples, primary) => samples.jsonPatchStatus(primary, (draft) => void (draft.status = { value: "own" })),
    ],
    [
      "mergePatchStatus",
      (samples, primary) => samples.mergePatchStatus({ metadata: refTo(primary), status: { value: "own" } }),
    ],
  ];
  for (const [verb, write] of statuses)
    test(`${verb} stores the status, and triggers no reconcile`, async () => {
      await using space = await openSpace();
      const reconciles = await countReconciles(space, async ({ primary, context }) => {
        await write(context.resources.of(Sample), primary);
      });
      const stored = await space.get(Sample, "one");
      assert.equal(stored?.status, { value: "own" });
      assert.is(reconciles, 1);
    });

  test("are filtered, but a reconcile rescheduled with rescheduleAfterMs still runs", async () => {
    await using space = await openSpace();
    let calls = 0;
    const reconciles = await countReconciles(space, async ({ primary, context }) => {
      const samples = context.resources.of(Sample);
      await samples.mergePatchStatus({ metadata: refTo(primary), status: { count: ++calls } });
      return calls === 1 ? noUpdate({ rescheduleAfterMs: 10 }) : undefined;
    });
    assert.is(reconciles, 2);
    assert.is((await space.get(Sample, "one"))?.status?.count, 2);
  });

  for (const moment of MOMENTS)
    test(`do not hide a change that another client makes ${moment} the write`, async () => {
      await using space = await openSpace();
      const seen = await labelsSeen(space, moment, {
        theirs: () => space.patch(Sample, "one", { metadata: { labels: { theirs: "label" } } }),
        own: ({ resources }, primary) =>
          resources.of(Sample).applyStatus({ metadata: refTo(primary), status: { value: "own" } }),
        read: (_, primary) => primary,
      });
      assert.is(seen.at(-1), "label");
      assert.ok(seen.length <= 3, `${seen.length} reconciles`);
    });
});

suite("writes of a secondary", (test) => {
  const writes: [string, (configs: ConfigMaps, live: DataObject) => Promise<unknown>][] = [
    ["apply", (configs, live) => configs.apply({ metadata: refTo(live), data: { own: "value" } })],
    ["update", (configs, live) => configs.update({ ...live, data: { ...live.data, own: "value" } })],
    ["jsonPatch", (configs, live) => configs.jsonPatch(live, ({ data }) => void (data!["own"] = "value"))],
    ["mergePatch", (configs, live) => configs.mergePatch({ metadata: refTo(live), data: { own: "value" } })],
  ];
  for (const [verb, write] of writes)
    test(`create followed by ${verb} are visible in the same reconcile, and trigger no other`, async () => {
      await using space = await openSpace();
      const read: unknown[] = [];
      const reconciles = await countReconciles(space, async ({ primary, context }) => {
        const configs = context.resources.of(ConfigMap);
        const data = { first: "value" };
        const created = await configs.create({ metadata: configOf(primary), data });
        // An apply that leaves out the annotation does not take away what a create has put there.
        await write(configs, created.object);
        read.push(context.secondary(ConfigMap)?.data);
      });
      const stored = await space.get(ConfigMap, "one");
      assert.equal(stored?.data, { first: "value", own: "value" });
      assert.equal(read, [stored?.data]);
      assert.is(reconciles, 1);
    });

  test("apply 5 times in one reconcile without triggering another", async () => {
    await using space = await openSpace();
    const reconciles = await countReconciles(space, async ({ primary, context }) => {
      const configs = context.resources.of(ConfigMap);
      for (const value of ["1", "2", "3", "4", "5"])
        await configs.apply({ metadata: configOf(primary), data: { value } });
    });
    assert.equal((await space.get(ConfigMap, "one"))?.data, { value: "5" });
    assert.is(reconciles, 1);
  });

  for (const moment of MOMENTS)
    test(`do not hide a change that another client makes ${moment} the apply`, async () => {
      await using space = await openSpace();
      const metadata = { name: "one", annotations: { sample: "one" } };
      await space.create(ConfigMap, { metadata, data: { value: "theirs" } });
      const seen = await labelsSeen(space, moment, {
        theirs: () => space.patch(ConfigMap, "one", { metadata: { labels: { theirs: "label" } } }),
        own: ({ resources }, primary) =>
          resources.of(ConfigMap).apply({ metadata: configOf(primary), data: { own: "value" } }),
        read: (context) => context.secondary(ConfigMap),
      });
      assert.is(seen.at(-1), "label");
      assert.ok(seen.length <= 3, `${seen.length} reconciles`);
      assert.equal((await space.get(ConfigMap, "one"))?.data, { value: "theirs", own: "value" });
    });
});

interface Writers {
  theirs(): Promise<unknown>;
  own(context: { readonly resources: ResourceOperations }, primary: Sample): Promise<unknown>;
  /** The object that both write, as the reconcile reads it. */
  read(context: Context<Sample>, primary: Sample): Sample | DataObject | undefined;
}

/** Returns the label of somebody else that each reconcile began with, when it is written around the own write of the first one. */
async function labelsSeen(space: Space, moment: (typeof MOMENTS)[number], writers: Writers) {
  const seen: (string | undefined)[] = [];
  await countReconciles(space, async ({ primary, context }) => {
    seen.push(writers.read(context, primary)?.metadata.labels?.["theirs"]);
    const theirs = () => (seen.length === 1 ? writers.theirs() : undefined);
    if (moment === "before") await theirs();
    const own = writers.own(context, primary);
    if (moment === "during") await theirs();
    await own;
    if (moment === "after") await theirs();
  });
  return seen;
}
