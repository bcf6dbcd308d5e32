// Workflows and bulk dependents against an API server, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import { deleted, ready } from "#runtime/workflow/conditions.js";
import type { Context } from "#runtime/workflow/context.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import type { WorkflowResult } from "#runtime/workflow/run.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configOf,
  dependentController,
  untilOutcome,
  writesOf,
  type SampleArguments,
  type Stated,
} from "./sample-dependents.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf({ simulate: true });
const Deployment = classOf(builtinDefinition("apps/v1", "Deployment"));
const StatefulSet = classOf(builtinDefinition("apps/v1", "StatefulSet"));
const Service = classOf(builtinDefinition("v1", "Service"));

interface Args extends SampleArguments {
  readonly context: Context<Sample>;
  readonly workflow?: WorkflowResult;
}

const sample = (value: string, name = "one") => ({ metadata: { name }, spec: { value } });
/** The value of a sample is a list of words; a condition that holds if one is among them. */
const says =
  (word: string) =>
  ({ primary }: SampleArguments) =>
    wordsOf(primary).includes(word);
const wordsOf = ({ spec }: Sample) => spec.value?.split(" ").filter(Boolean) ?? [];

/** A bulk dependent with a ConfigMap for each word of the value. */
function configsOf(rest: Stated = {}): KubernetesDependent {
  const desired = ({ primary }: SampleArguments) =>
    Object.fromEntries(
      wordsOf(primary).map((word) => {
        const [key = "", value = key] = word.split("=");
        return [key, { metadata: { name: `${primary.metadata.name}-${key}` }, data: { value } }];
      }),
    );
  const deletion = rest.mode === "readOnly" ? {} : { deletion: "ordered" as const };
  return configOf("items", { bulk: {}, ...deletion, desired, ...rest });
}

const untilConfigs = (space: Space, ...names: string[]) =>
  waitFor(`there are ${names.join(", ")}`, async () => {
    const all = await space.list(ConfigMap);
    const found = all.map(({ metadata }) => metadata.name);
    return JSON.stringify(found.sort()) === JSON.stringify([...names].sort());
  });

const workload = (name: string) => ({
  metadata: { name },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "web", image: "nginx" }] } },
  },
});

suite("bulk dependents", (test) => {
  test("create, update and delete objects to match the desired items, and delete all on cleanup", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([configsOf()])]);
    await space.create(Sample, sample("a b c"));
    await untilConfigs(space, "one-a", "one-b", "one-c");
    await space.patch(Sample, "one", { spec: { value: "a=changed" } });
    await untilConfigs(space, "one-a");
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "changed");
    await space.patch(Sample, "one", { spec: { value: "a b c d e" } });
    await untilConfigs(space, "one-a", "one-b", "one-c", "one-d", "one-e");
    await running.quiet();
    const before = writesOf(running).length;
    await space.patch(ConfigMap, "one-b", { data: { value: "theirs" } });
    await space.until(ConfigMap, "one-b", ({ data }) => data?.["value"] === "b");
    await running.quiet();
    assert.is(writesOf(running).length, before + 1, "the others are left alone");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilConfigs(space);
  });

  test("are ready once every item is ready", async () => {
    await using space = await openSpace();
    const readyPostcondition = ({ live }: { live: Partial<DataObject> | undefined }) =>
      live?.data?.["value"] !== "late";
    const controller = dependentController([
      configsOf({ readyPostcondition }),
      configOf("after", { dependsOn: ["items"] }),
    ]);
    await using running = await space.start([controller]);
    await space.create(Sample, sample("a b=late"));
    assert.equal(await untilOutcome(running, "after", "waiting"), { kind: "waiting", for: ["items"] });
    await space.patch(Sample, "one", { spec: { value: "a b" } });
    await untilConfigs(space, "one-a", "one-b", "one-after");
  });

  test("with mode: readOnly are ready once enough items of other clients exist, and keep them on cleanup", async () => {
    await using space = await openSpace();
    const isEnough = ({ secondary }: SampleArguments) => Object.keys(secondary["items"] ?? {}).length >= 2;
    const items = configsOf({ mode: "readOnly", desired: undefined, readyPostcondition: isEnough });
    await using running = await space.start([dependentController([items])]);
    const { metadata } = await space.create(Sample, sample("a"));
    await untilOutcome(running, "items", "waiting");
    const annotations = {
      "gen-operator.dev/primary-uid": metadata.uid,
      "gen-operator.dev/primary-name": "one",
      "gen-operator.dev/primary-namespace": space.namespace,
      "gen-operator.dev/primary-type": "Sample.josdk.example.com",
    };
    for (const name of ["x", "y"]) await space.create(ConfigMap, { metadata: { name, annotations } });
    await waitFor("it is ready", () => running.events.at(-1)?.workflow?.isReady);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilConfigs(space, "x", "y");
  });

  test("of a standalone workflow are reconciled and cleaned up by the reconciler", async () => {
    await using space = await openSpace();
    const controller = dependentController([], {
      workflows: { configs: { primary: Sample.definition, dependents: [configsOf()] } },
      reconciler: {
        reconcile: async ({ context }: Args) => void (await context.workflows.get("configs").reconcile()),
        cleanup: async ({ context }: Args) => void (await context.workflows.get("configs").cleanup()),
      },
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample("a b c"));
    await untilConfigs(space, "one-a", "one-b", "one-c");
    await space.patch(Sample, "one", { spec: { value: "a" } });
    await untilConfigs(space, "one-a");
    await space.delete(ConfigMap, "one-a");
    await untilConfigs(space, "one-a");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilConfigs(space);
  });

  test("write nothing and do not block the deletion of the primary while inactive", async () => {
    await using space = await openSpace();
    const controller = dependentController([configsOf({ activationCondition: says("active") })]);
    await using running = await space.start([controller]);
    await space.create(Sample, sample("a"));
    await untilOutcome(running, "items", "inactive");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(
      writesOf(running).filter((write) => write.includes("configmaps")),
      [],
    );
    assert.not(running.events.some(({ error }) => error !== undefined));
  });
});

suite("workflow order", (test) => {
  test("creates each StatefulSet and Service after its dependency is ready", async () => {
    await using space = await openSpace();
    const service = (name: string) => ({
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ port: 80 }] },
    });
    const names = ["first", "second"];
    const dependents = names.flatMap((name, index) => [
      configOf(`${name}-set`, {
        resource: StatefulSet.definition,
        dependsOn: index === 0 ? [] : [`${names[index - 1]!}-service`],
        desired: () => ({ ...workload(name), spec: { ...workload(name).spec, serviceName: name } }),
        readyPostcondition: ready,
      }),
      configOf(`${name}-service`, {
        resource: Service.definition,
        dependsOn: [`${name}-set`],
        desired: () => service(name),
      }),
    ]);
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample("x"));
    await waitFor("all is ready", () => running.events.at(-1)?.workflow?.isReady);
    const created = writesOf(running).filter((write) => /statefulsets|services/.test(write));
    const kinds = created.map((write) => (write.includes("statefulsets") ? "set" : "service"));
    assert.equal(kinds.slice(0, 4), ["set", "service", "set", "service"]);
  });

  test("creates a ConfigMap after its Deployment, and deletes it first, also if its precondition becomes false", async () => {
    await using space = await openSpace();
    const dependents = [
      configOf("web", {
        resource: Deployment.definition,
        deletion: "ordered",
        desired: () => workload("web"),
        readyPostcondition: ready,
      }),
      configOf("config", {
        dependsOn: ["web"],
        deletion: "ordered",
        reconcilePrecondition: says("configured"),
        deletePostcondition: deleted,
      }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample("nothing"));
    await waitFor("the Deployment is ready", () => running.events.at(-1)?.workflow?.isReady);
    assert.is(await space.get(ConfigMap, "one-config"), undefined);
    await space.patch(Sample, "one", { spec: { value: "configured" } });
    await space.until(ConfigMap, "one-config", () => true);
    await space.patch(Sample, "one", { spec: { value: "nothing" } });
    await space.untilGone(ConfigMap, "one-config");
    await space.patch(Sample, "one", { spec: { value: "configured" } });
    await space.until(ConfigMap, "one-config", () => true);
    await space.patch(ConfigMap, "one-config", { metadata: { finalizers: ["example.com/foreign"] } });
    await space.delete(Sample, "one");
    await untilOutcome(running, "config", "deleted");
    assert.ok((await space.get(Deployment, "web")) !== undefined, "what it depends on stays");
    await space.patch(ConfigMap, "one-config", { metadata: { finalizers: null } });
    await space.untilGone(Sample, "one");
    await space.untilGone(Deployment, "web");
  });

  test("creates nothing and does not fail with a false precondition above an inactive dependent", async () => {
    await using space = await openSpace();
    const dependents = [
      configOf("above", { reconcilePrecondition: says("never") }),
      configOf("below", { dependsOn: ["above"], activationCondition: says("never") }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample("x"));
    await untilOutcome(running, "below", "inactive");
    await running.quiet();
    await untilConfigs(space);
    assert.not(running.events.some(({ error }) => error !== undefined));
  });
});

suite("activationCondition", (test) => {
  test("lets context.secondary() return undefined for an inactive dependent", async () => {
    await using space = await openSpace();
    const seen: unknown[] = [];
    const reconciler = { reconcile: ({ context }: Args) => void seen.push(context.secondary(ConfigMap)) };
    const controller = dependentController([configOf("a", { activationCondition: says("active") })], {
      reconciler,
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample("x"));
    await waitFor("it is reconciled", () => running.events.length > 0);
    await running.quiet();
    assert.equal(seen[0], undefined);
    assert.not(running.events.some(({ error }) => error !== undefined));
  });

  test("alternates between two dependents of one kind, and leaves the inactive one unchanged", async () => {
    await using space = await openSpace();
    const dependents = ["a", "b"].map((name) => configOf(name, { activationCondition: says(name) }));
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample("a"));
    await untilConfigs(space, "one-a");
    await untilOutcome(running, "b", "inactive");
    await space.patch(Sample, "one", { spec: { value: "b" } });
    await untilConfigs(space, "one-a", "one-b");
    await untilOutcome(running, "a", "inactive");
    await space.patch(Sample, "one", { spec: { value: "a b" } });
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "a b");
    await space.until(ConfigMap, "one-b", ({ data }) => data?.["value"] === "a b");
  });

  test("keeps the object of a dependent that becomes inactive, ignores its events, and resumes later", async () => {
    await using space = await openSpace();
    const controller = dependentController([configOf("a", { activationCondition: says("active") })]);
    await using running = await space.start([controller]);
    await space.create(Sample, sample("active"));
    await untilConfigs(space, "one-a");
    await space.patch(Sample, "one", { spec: { value: "x" } });
    await untilOutcome(running, "a", "inactive");
    await running.quiet();
    const before = running.events.length;
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await running.quiet();
    assert.is(running.events.length, before);
    await space.patch(Sample, "one", { spec: { value: "active again" } });
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "active again");
  });

  test("is evaluated for a primary that is terminating at startup, whose dependent is deleted", async () => {
    await using space = await openSpace();
    const controller = () =>
      dependentController([configOf("a", { deletion: "ordered", activationCondition: says("active") })]);
    const before = await space.start([controller()]);
    await space.create(Sample, sample("active"));
    await untilConfigs(space, "one-a");
    await before.operator.stop();
    await space.delete(Sample, "one");
    await using _ = await space.start([controller()]);
    await space.untilGone(Sample, "one");
    await untilConfigs(space);
  });

  test("does not block four primaries of which one activates the only dependent", async () => {
    await using space = await openSpace();
    const controller = dependentController([configOf("a", { activationCondition: says("active") })]);
    await using running = await space.start([controller]);
    const names = ["one", "two", "three", "four"];
    for (const name of names) await space.create(Sample, sample(name === "two" ? "active" : "x", name));
    await untilConfigs(space, "two-a");
    await waitFor("all are reconciled", () =>
      names.every((name) => running.events.some((each) => each.primary.endsWith(name))),
    );
    for (const name of names) await space.delete(Sample, name);
    for (const name of names) await space.untilGone(Sample, name);
  });
});

suite("explicit workflow", (test) => {
  test("deletes dependents in a cleanup that the reconciler invokes, before the finalizer is removed", async () => {
    await using space = await openSpace();
    const calls: string[] = [];
    const controller = dependentController([configOf("a", { deletion: "ordered" })], {
      workflow: { invocation: "explicit" },
      reconciler: {
        reconcile: async ({ context }: Args) => void (await context.workflow!.reconcile()),
        async cleanup({ context }: Args) {
          calls.push("cleanup");
          await context.workflow!.cleanup();
        },
      },
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample("x"));
    await untilConfigs(space, "one-a");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilConfigs(space);
    assert.ok(calls.length > 0);
  });

  test("runs only when the reconciler invokes it, and is cleaned up without an invocation", async () => {
    await using space = await openSpace();
    const controller = dependentController([configOf("a", { deletion: "ordered" })], {
      workflow: { invocation: "explicit" },
      reconciler: {
        async reconcile({ primary, context }: Args) {
          if (wordsOf(primary).includes("go")) await context.workflow!.reconcile();
        },
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample("wait"));
    await waitFor("it is reconciled", () => running.events.length > 0);
    await running.quiet();
    await untilConfigs(space);
    await space.patch(Sample, "one", { spec: { value: "go" } });
    await untilConfigs(space, "one-a");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilConfigs(space);
  });

  test("with exceptions: result fails neither reconcile nor cleanup, and keeps the finalizer", async () => {
    await using space = await openSpace();
    let isBroken = true;
    const seen: string[] = [];
    const note = (what: string) => (args: Args) =>
      void seen.push(`${what} ${[...(args.workflow?.errors.keys() ?? [])].join()}`);
    const fail = () => {
      if (isBroken) throw new Error("no idea");
      return true;
    };
    const controller = dependentController(
      [
        configOf("good", { deletion: "ordered" }),
        configOf("bad", { deletion: "ordered", readyPostcondition: fail, deletePostcondition: fail }),
      ],
      {
        workflow: { exceptions: "result" },
        retry: { initialIntervalMs: 10, maxRetries: 100, multiplier: 1 },
        reconciler: { reconcile: note("reconcile"), cleanup: note("cleanup") },
      },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, sample("x"));
    await waitFor("it is reconciled", () => seen.length > 0);
    assert.is(seen[0], "reconcile bad");
    assert.is(running.events[0]?.error, undefined);
    await space.delete(Sample, "one");
    await waitFor("it is cleaned up in vain", () => seen.includes("cleanup bad"));
    assert.ok((await space.get(Sample, "one")) !== undefined);
    isBroken = false;
    await space.untilGone(Sample, "one");
    await untilConfigs(space);
  });
});
