// mode: once. An object is created once for each primary, also when it is gone, and again when the primary asks for it.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { ready } from "#runtime/workflow/conditions.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { COLLECTING, configOf, dependentController, outcomeOf, writesOf } from "./sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

type AnyJob = KubernetesObject & { readonly spec?: any; readonly status?: any };
const Job = classOf<AnyJob>(builtinDefinition("batch/v1", "Job"));
const openSpace = spacesOf({ simulate: true });
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value, number: 1 } });
const again = (({ primary }: { primary: Sample }) => primary.spec.value) as never;
const FAILING = { "simulate/outcome": "fail" };

const jobOf = (
  rest: object = {},
  { spec = {}, image = "a", annotations }: { spec?: object; image?: string; annotations?: object } = {},
): KubernetesDependent =>
  configOf("job", {
    resource: Job.definition,
    mode: "once",
    readyPostcondition: ready as never,
    desired: ({ primary }) => ({
      metadata: { name: `${primary.metadata.name}-job` },
      spec: {
        backoffLimit: 0,
        template: {
          metadata: { annotations },
          spec: {
            restartPolicy: "Never",
            containers: [{ name: "main", image: `${image}:${(primary as Sample).spec.number}` }],
          },
        },
        ...spec,
      },
    }),
    ...rest,
  });

const start = (space: Space, dependents: readonly KubernetesDependent[], options: object = {}) =>
  space.start([dependentController(dependents, { retry: { initialIntervalMs: 50 }, ...options } as never)]);

const createdIn = (running: TestOperator) => running.logs.filter((line) => /^info created Job/.test(line)).length;
const done = (space: Space) =>
  space.until(Job, "one-job", ({ status }) => status?.conditions?.some((each: any) => each.type === "Complete"));
const isReady = (running: TestOperator) => {
  const outcome = outcomeOf(running, "job") as { kind?: string; isReady?: boolean } | undefined;
  return outcome?.isReady === true;
};
const recordOf = async (space: Space) =>
  (await space.list(ConfigMap)).find(({ metadata }) => metadata.name.endsWith("-state"));
const untilRecorded = (space: Space, result: string) =>
  waitFor(
    "the result is recorded",
    async () => JSON.stringify((await recordOf(space))?.data ?? {}).includes(result),
    COLLECTING,
  );
async function deleteJob(space: Space): Promise<void> {
  await space.client.delete(Job, { name: "one-job", namespace: space.namespace }, { propagationPolicy: "Background" });
  await space.untilGone(Job, "one-job", COLLECTING);
}
/** Reconciles the primary once more. */
async function touch(space: Space, running: TestOperator, number = 2): Promise<void> {
  const seen = running.events.length;
  await space.patch(Sample, "one", { spec: { number } });
  await waitFor("it is reconciled", () => running.events.length > seen);
  await running.quiet();
}

suite("mode once", (test) => {
  test(
    "runs a Job once, and stays ready after it is deleted",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf()]);
      await space.create(Sample, sample());
      await done(space);
      await untilRecorded(space, "ready");
      await running.quiet();
      const writes = writesOf(running).length;
      await deleteJob(space);
      await touch(space, running);
      assert.is(await space.get(Job, "one-job"), undefined);
      assert.ok(isReady(running));
      assert.is(createdIn(running), 1);
      assert.is(writesOf(running).length, writes);
    },
    COLLECTING,
  );

  test(
    "runs a Job once across a restart, a changed template and a rename of the dependent",
    async () => {
      await using space = await openSpace();
      const first = await start(space, [jobOf()]);
      await space.create(Sample, sample());
      await untilRecorded(space, "ready");
      await first.quiet();
      await first.operator.stop();
      await deleteJob(space);
      const moved = { ...jobOf({}, { image: "other" }), name: "migration", movedFrom: ["job"] };
      await using second = await start(space, [moved]);
      await waitFor("it is reconciled", () => second.events.length > 0);
      await second.quiet();
      assert.is(await space.get(Job, "one-job"), undefined);
      assert.is(createdIn(second), 0);
      assert.is(second.events.at(-1)?.workflow?.isReady, true);
    },
    COLLECTING,
  );

  test(
    "runs a Job once with ttlSecondsAfterFinished: 0, and does not block its dependents",
    async () => {
      await using space = await openSpace();
      const config = configOf("after", { dependsOn: ["job"] });
      await using running = await start(space, [jobOf({}, { spec: { ttlSecondsAfterFinished: 0 } }), config]);
      await space.create(Sample, sample());
      await space.untilGone(Job, "one-job", COLLECTING).catch(() => {});
      await untilRecorded(space, "ready");
      await space.until(ConfigMap, "one-after", () => true);
      await waitFor("the Job is gone", async () => (await space.get(Job, "one-job")) === undefined, COLLECTING);
      await touch(space, running);
      await space.until(ConfigMap, "one-after", () => true);
      assert.is(createdIn(running), 1);
    },
    COLLECTING,
  );

  for (const [name, annotations, isReadyAtEnd] of [
    ["ready", {}, true],
    ["failed", FAILING, false],
  ] as const)
    test(
      `stays ${name} while the finished Job is terminating, also after a restart`,
      async () => {
        await using space = await openSpace();
        const config = configOf("after", { dependsOn: ["job"] });
        const dependents = [jobOf({}, { annotations }), config];
        const first = await start(space, dependents);
        await space.create(Sample, sample());
        const { metadata } = await space.until(Job, "one-job", () => true);
        await untilRecorded(space, name);
        await space.patch(Job, "one-job", { metadata: { finalizers: ["example.com/held"] } });
        await first.quiet();
        await space.client.delete(Job, { name: "one-job", namespace: space.namespace });
        await space.until(Job, "one-job", ({ metadata }) => metadata.deletionTimestamp !== undefined);
        const assertEnd = async (running: TestOperator, number: number) => {
          await touch(space, running, number);
          const outcome = outcomeOf(running, "job");
          assert.is((await space.get(Job, "one-job"))?.metadata.uid, metadata.uid);
          assert.is(isReady(running), isReadyAtEnd);
          const { detail } = outcome?.conditions?.readyPostcondition ?? {};
          assert.match(String(detail), isReadyAtEnd ? /^undefined$/ : /^Job .* failed/);
          assert.is(running.events.at(-1)?.workflow?.isReady, isReadyAtEnd);
        };
        await assertEnd(first, 2);
        await first.operator.stop();
        await using second = await start(space, dependents);
        await waitFor("it is reconciled", () => second.events.length > 0);
        await assertEnd(second, 3);
        await space.patch(Job, "one-job", { metadata: { finalizers: null } });
        await space.untilGone(Job, "one-job", COLLECTING);
        await touch(space, second, 4);
        assert.is(isReady(second), isReadyAtEnd);
      },
      COLLECTING,
    );

  test(
    "stays failed after a failed Job is deleted",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf({}, { annotations: FAILING })]);
      await space.create(Sample, sample());
      await space.until(Job, "one-job", () => true);
      await untilRecorded(space, "failed");
      await deleteJob(space);
      await touch(space, running);
      assert.not(isReady(running));
      const detail = outcomeOf(running, "job")?.conditions?.readyPostcondition?.detail;
      assert.match(String(detail), "Job space");
      assert.is(createdIn(running), 1);
    },
    COLLECTING,
  );

  test(
    "is not ready and does not run again if the Job is deleted before it finishes",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf({}, { spec: { suspend: true } })]);
      await space.create(Sample, sample());
      await space.until(Job, "one-job", () => true);
      await waitFor("it is recorded", () => recordOf(space));
      await running.quiet();
      await deleteJob(space);
      await touch(space, running);
      assert.not(isReady(running));
      assert.is(createdIn(running), 1);
    },
    COLLECTING,
  );

  test(
    "runs the Job again when the value of again changes",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf({ again })]);
      await space.create(Sample, sample());
      const { metadata } = await done(space);
      await untilRecorded(space, "ready");
      await running.quiet();
      await touch(space, running);
      assert.is(createdIn(running), 1);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await waitFor(
        "another Job has run",
        async () => {
          const now = await space.get(Job, "one-job");
          return now !== undefined && now.metadata.uid !== metadata.uid && now.status?.succeeded === 1;
        },
        COLLECTING,
      );
      await untilRecorded(space, "second");
      await deleteJob(space);
      await touch(space, running, 3);
      assert.is(createdIn(running), 2);
    },
    COLLECTING,
  );

  test(
    "waits for an unfinished Job before it runs again for a new value of again",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf({ again }, { spec: { suspend: true } })]);
      await space.create(Sample, sample());
      const { metadata } = await space.until(Job, "one-job", () => true);
      await waitFor("it is recorded", () => recordOf(space));
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await waitFor("it waits", () => outcomeOf(running, "job")?.kind === "waiting");
      await running.quiet();
      assert.is((await space.get(Job, "one-job"))?.metadata.uid, metadata.uid);
      await space.patch(Job, "one-job", { spec: { suspend: false } });
      await waitFor(
        "another Job is there",
        async () => ((await space.get(Job, "one-job"))?.metadata.uid ?? metadata.uid) !== metadata.uid,
        COLLECTING,
      );
      await untilRecorded(space, "second");
    },
    COLLECTING,
  );

  test(
    "recreates an object of another kind for a new value of again once it was ready",
    async () => {
      await using space = await openSpace();
      const isDone = (({ live }: { live: { data?: { done?: string } } }) => live.data?.done === "yes") as never;
      const once = configOf("setup", { mode: "once", again, readyPostcondition: isDone });
      await using running = await start(space, [once]);
      await space.create(Sample, sample());
      const { metadata } = await space.until(ConfigMap, "one-setup", () => true);
      await waitFor("it is recorded", () => recordOf(space));
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await waitFor("it waits", () => outcomeOf(running, "setup")?.kind === "waiting");
      await space.patch(ConfigMap, "one-setup", { data: { done: "yes" } });
      await waitFor(
        "another ConfigMap is there",
        async () => ((await space.get(ConfigMap, "one-setup"))?.metadata.uid ?? metadata.uid) !== metadata.uid,
        COLLECTING,
      );
    },
    COLLECTING,
  );

  test(
    "runs the Job again for a recreated primary of the same name",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf()]);
      await space.create(Sample, sample());
      const before = await done(space);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      await space.untilGone(Job, "one-job", COLLECTING);
      await space.create(Sample, sample());
      const after = await space.until(Job, "one-job", () => true);
      assert.is.not(after.metadata.uid, before.metadata.uid);
      await running.quiet();
    },
    COLLECTING,
  );

  test(
    "rejects a record changed by another client, and runs again once it is deleted",
    async () => {
      await using space = await openSpace();
      const first = await start(space, [jobOf()]);
      await space.create(Sample, sample());
      await untilRecorded(space, "ready");
      await first.operator.stop();
      await deleteJob(space);
      const { metadata, data = {} } = (await recordOf(space))!;
      const forged = Object.fromEntries(
        Object.entries(data).map(([name, text]) => [name, text.replace("ready", "reads")]),
      );
      await space.patch(ConfigMap, metadata.name, { data: forged });
      await using second = await start(space, [jobOf()]);
      const failure = await waitFor("it fails", () => failuresOf(second.events)[0]);
      assert.match(failure, "was not written by this operator");
      assert.is(await space.get(Job, "one-job"), undefined);
      // The way out that the error names.
      await space.client.delete(ConfigMap, { name: metadata.name, namespace: space.namespace });
      await space.until(Job, "one-job", () => true);
    },
    COLLECTING,
  );

  test(
    "restores a record that another client deletes, without another run",
    async () => {
      await using space = await openSpace();
      await using running = await start(space, [jobOf()]);
      await space.create(Sample, sample());
      await untilRecorded(space, "ready");
      await running.quiet();
      await deleteJob(space);
      const { metadata } = (await recordOf(space))!;
      await space.client.delete(ConfigMap, { name: metadata.name, namespace: space.namespace });
      await touch(space, running);
      await untilRecorded(space, "ready");
      assert.is(createdIn(running), 1);
    },
    COLLECTING,
  );

  test(
    "runs one Job for each item of a bulk dependent",
    async () => {
      await using space = await openSpace();
      const item = (name: string) => ({
        metadata: { name },
        spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "a" }] } } },
      });
      const bulk = configOf("job", {
        ...{ resource: Job.definition, mode: "once", bulk: {}, readyPostcondition: ready as never },
        desired: ({ primary }) =>
          Object.fromEntries(
            Array.from({ length: (primary as Sample).spec.number ?? 0 }, (_, at) => [
              `i${at}`,
              item(`one-job${at === 0 ? "" : at}`),
            ]),
          ),
      });
      await using running = await start(space, [bulk]);
      await space.create(Sample, sample());
      await done(space);
      await untilRecorded(space, "ready");
      await running.quiet();
      await deleteJob(space);
      await touch(space, running);
      await space.until(Job, "one-job1", ({ status }) => status?.succeeded === 1);
      assert.is(await space.get(Job, "one-job"), undefined);
      assert.is(createdIn(running), 2);
    },
    COLLECTING,
  );
});
