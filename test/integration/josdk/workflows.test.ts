// Workflows: order, conditions, and who runs them, after JOSDK's integration tests.
import { waitFor } from "#runtime/base/wait-for.js";
import { keepFinalizer, updateStatus } from "#runtime/reconcile/reconciler.js";
import { deleted, ready } from "#runtime/workflow/builtin-conditions.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../../support/kind-definitions.js";
import { assert, suite } from "../../support/suite.js";
import { configOf, dependentController, writesOf, type SampleArguments } from "./sample-dependents.js";
import { ConfigMap, Sample, Secret } from "./sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "./space.js";

const openSpace = spacesOf({ simulate: true });
const Deployment = classOf(builtinDefinition("apps/v1", "Deployment"));
const StatefulSet = classOf(builtinDefinition("apps/v1", "StatefulSet"));
const Service = classOf(builtinDefinition("v1", "Service"));
const HOLD = "example.com/hold";
const sample = (spec: Sample["spec"] = {}) => ({ metadata: { name: "one" }, spec: { value: "first", ...spec } });

const isNotOff = (({ primary }: SampleArguments) => primary.spec.other !== "off") as never;
const ordered = { isGarbageCollected: false } as const;

const errorsOf = ({ events }: TestOperator) => events.flatMap(({ error }) => error ?? []);
const untilValue = (space: Space, name: string, value: string) =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);
/** The writes of dependents, without those of the primary. */
const dependentWrites = (running: TestOperator) => writesOf(running).filter((write) => !write.includes("samples/"));

function secretOf(name: string, rest: Parameters<typeof configOf>[1] = {}): KubernetesDependent {
  const desired = ({ primary }: SampleArguments) => ({ metadata: { name: `${primary.metadata.name}-${name}` } });
  return configOf(name, { resource: Secret.definition, desired, ...rest });
}

/** A Deployment or StatefulSet with one pod. */
function workloadOf(
  name: string,
  { definition }: typeof Deployment,
  rest: Parameters<typeof configOf>[1] = {},
): KubernetesDependent {
  const labels = { app: name };
  const spec = {
    replicas: 1,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
    ...(definition.kind === "StatefulSet" ? { serviceName: name } : {}),
  };
  const desired = () => ({ metadata: { name }, spec });
  return configOf(name, { resource: definition, desired, readyPostcondition: ready, ...rest });
}

suite("the order of a workflow", (test) => {
  test("is that of its dependencies, and of a cleanup the reverse", async () => {
    await using space = await openSpace();
    const dependents = [configOf("a", ordered), secretOf("b", { ...ordered, dependsOn: ["a"] })];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await space.until(Secret, "one-b", () => true);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(dependentWrites(running), [
      "PATCH configmaps/one-a 201",
      "PATCH secrets/one-b 201",
      "DELETE secrets/one-b 200",
      "DELETE configmaps/one-a 200",
    ]);
  });

  test("waits for workloads that are ready", async () => {
    await using space = await openSpace();
    const service = (name: string, dependsOn: string[]) =>
      configOf(name, {
        resource: Service.definition,
        dependsOn,
        desired: () => ({ metadata: { name }, spec: { selector: { app: name }, ports: [{ port: 80 }] } }),
      });
    const dependents = [
      workloadOf("first", StatefulSet),
      service("first-service", ["first"]),
      workloadOf("second", StatefulSet, { dependsOn: ["first"] }),
      service("second-service", ["second", "first-service"]),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await waitFor("all is ready", () => running.events.at(-1)?.workflow?.isReady === true);
    const made = dependentWrites(running);
    const at = (name: string) => made.findIndex((write) => write.endsWith(`/${name} 201`));
    assert.is(made.length, 4);
    assert.ok(at("first") === 0 && at("second-service") === 3, made.join(", "));
    // What is waited for is made in a reconcile of its own, when the status says that it is ready.
    assert.equal(running.events[0]?.workflow?.waiting, ["first-service", "second", "second-service"]);
    assert.equal(errorsOf(running), []);
  });

  test("waits for a ready Deployment, follows its preconditions, and lets go when all is gone", async () => {
    await using space = await openSpace();
    const dependents = [
      workloadOf("web", Deployment, ordered),
      configOf("config", {
        ...ordered,
        dependsOn: ["web"],
        reconcilePrecondition: isNotOff,
        deletePostcondition: deleted,
      }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await untilValue(space, "one-config", "first");
    assert.equal(running.events[0]?.workflow?.waiting, ["config"]);
    await space.patch(Sample, "one", { spec: { other: "off" } });
    await space.untilGone(ConfigMap, "one-config");
    await space.patch(Sample, "one", { spec: { other: "on" } });
    await untilValue(space, "one-config", "first");
    await space.patch(ConfigMap, "one-config", { metadata: { finalizers: [HOLD] } });
    await space.delete(Sample, "one");
    await space.until(ConfigMap, "one-config", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await running.quiet();
    assert.ok(await space.get(Deployment, "web"), "what was needed by it stays until it is gone");
    assert.ok(await space.get(Sample, "one"));
    await space.patch(ConfigMap, "one-config", { metadata: { finalizers: null } });
    await space.untilGone(Sample, "one");
    await space.untilGone(Deployment, "web");
  });

  test("leaves to the garbage collector what has an owner, and deletes it itself when a precondition says so", async () => {
    await using space = await openSpace();
    // The second one gives the primary a cleanup.
    const dependents = [configOf("a", { reconcilePrecondition: isNotOff }), configOf("b", ordered)];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    const { metadata } = await untilValue(space, "one-a", "first");
    assert.is(metadata.ownerReferences?.[0]?.name, "one");
    await space.patch(Sample, "one", { spec: { other: "off" } });
    await space.untilGone(ConfigMap, "one-a");
    await space.patch(Sample, "one", { spec: { other: "on" } });
    await untilValue(space, "one-a", "first");
    await running.quiet();
    const before = dependentWrites(running);
    assert.is(before.filter((write) => write.startsWith("DELETE")).length, 1);
    await space.delete(Sample, "one");
    await space.untilGone(ConfigMap, "one-a");
    assert.equal(dependentWrites(running), [...before, "DELETE configmaps/one-b 200"]);
  });
});

suite("who runs a workflow, and who sees its errors", (test) => {
  test("an explicit one runs when the reconciler says so, and its cleanup by itself if the reconciler has none", async () => {
    await using space = await openSpace();
    const dependents = [configOf("a", ordered)];
    const controller = dependentController(dependents, {
      workflow: { invocation: "explicit" },
      reconciler: {
        reconcile: async ({ primary, context }) => {
          if (primary.spec.other !== "run") return updateStatus({ message: "not run" });
          const { reconciled } = await context.workflow!.reconcile();
          return updateStatus({ message: `made ${reconciled.join()}` });
        },
      },
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ status }) => status?.message === "not run");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
    await space.patch(Sample, "one", { spec: { other: "run" } });
    await space.until(Sample, "one", ({ status }) => status?.message === "made a");
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "first");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  test("the cleanup of an explicit one runs when that of the reconciler says so", async () => {
    await using space = await openSpace();
    const cleanups: string[] = [];
    let isAllowed = false;
    const controller = dependentController([configOf("a", ordered)], {
      workflow: { invocation: "explicit" },
      reconciler: {
        reconcile: async ({ context }) => void (await context.workflow!.reconcile()),
        cleanup: async ({ context }) => {
          if (!isAllowed) {
            cleanups.push("not yet");
            return keepFinalizer();
          }
          const { deleted: gone } = await context.workflow!.cleanup();
          cleanups.push(`deleted ${gone.join()}`);
          return undefined;
        },
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await space.delete(Sample, "one");
    await waitFor("the cleanup is called", () => cleanups.length > 0);
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "one-a"), "nobody said that it be deleted");
    isAllowed = true;
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
    assert.equal([cleanups[0], cleanups.find((each) => each !== "not yet")], ["not yet", "deleted a"]);
  });

  test("errors may be in the result only, and a cleanup with errors is tried again all the same", async () => {
    await using space = await openSpace();
    let isBroken = true;
    const seen: string[] = [];
    const note = (when: string, { errors }: { errors: ReadonlyMap<string, unknown> }) =>
      seen.push(`${when} ${[...errors].map(([name, error]) => `${name}: ${(error as Error).message}`).join()}`);
    const broken = (what: string) => () => {
      if (isBroken) throw new Error(`${what} is broken`);
    };
    const dependents = [
      configOf("a", {
        ...ordered,
        desired: ({ primary }) => {
          if (primary.spec.other !== "mended") broken("desired")();
          return { metadata: { name: "one-a" }, data: { value: primary.spec.value ?? "" } };
        },
        deletePostcondition: (() => {
          broken("postcondition")();
          return true;
        }) as never,
      }),
      configOf("b", ordered),
    ];
    const controller = dependentController(dependents, {
      workflow: { exceptions: "result" },
      reconciler: {
        reconcile: ({ workflow }) => void note("reconcile", workflow),
        cleanup: ({ workflow }) => void note("cleanup", workflow),
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValue(space, "one-b", "first");
    await running.quiet();
    assert.equal(errorsOf(running), []);
    assert.equal(seen, ['reconcile a: dependent "a": desired is broken'], "it is not tried again");
    await space.patch(Sample, "one", { spec: { other: "mended" } });
    await untilValue(space, "one-a", "first");
    await running.quiet();
    seen.length = 0;
    await space.delete(Sample, "one");
    await waitFor("the cleanup is tried again", () => seen.length > 1);
    assert.ok(await space.get(Sample, "one"), "the finalizer stays");
    isBroken = false;
    await space.untilGone(Sample, "one");
    assert.match(seen[0] ?? "", /^cleanup a: .*postcondition is broken/);
    assert.is(seen.at(-1), "cleanup ");
    assert.equal(await space.list(ConfigMap), []);
  });
});
