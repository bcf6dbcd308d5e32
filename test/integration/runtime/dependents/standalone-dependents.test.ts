// Dependents that no workflow runs by itself, after JOSDK's integration tests.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  bulkOf,
  configOf,
  dependentController,
  outcomeOf,
  untilValues,
  valuesIn,
  wantedOf,
  writesOf,
} from "./sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const sample = (spec: Sample["spec"] = { value: "first" }) => ({ metadata: { name: "one" }, spec });
const untilValue = (space: Space, name: string, value: string) =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);

suite("standalone workflow", (test) => {
  interface Deployment extends KubernetesObject {
    spec: { replicas: number };
  }
  const Deployment = classOf<Deployment>(builtinDefinition("apps/v1", "Deployment"));

  test("returns its dependent as written in the same reconcile", async () => {
    await using space = await openSpace();
    const labels = { app: "web" };
    const web = configOf("web", {
      resource: Deployment.definition,
      desired: ({ primary }) => ({
        metadata: { name: "web" },
        spec: {
          replicas: primary.spec.number,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
        },
      }),
    });
    const seen: unknown[] = [];
    const controller = dependentController([], {
      workflows: { web: { primary: Sample.definition, dependents: [web] } },
      reconciler: {
        reconcile: async ({ primary, context }) => {
          await context.workflows.get("web").reconcile();
          seen.push([primary.spec.number, context.secondary(Deployment)?.spec.replicas]);
        },
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample({ number: 1 }));
    await space.until(Deployment, "web", ({ spec }) => spec.replicas === 1);
    await space.patch(Sample, "one", { spec: { number: 3 } });
    await space.until(Deployment, "web", ({ spec }) => spec.replicas === 3);
    await running.quiet();
    assert.equal(seen, [
      [1, 1],
      [3, 3],
    ]);
  });

  test("distinguishes two dependents of one kind by name", async () => {
    await using space = await openSpace();
    const seen: unknown[] = [];
    const controller = dependentController([], {
      workflows: { pair: { primary: Sample.definition, dependents: [configOf("a"), configOf("b")] } },
      reconciler: {
        reconcile: async ({ context }) => {
          await context.workflows.get("pair").reconcile();
          const found = ["one-a", "one-b"].map((name) => context.secondary(ConfigMap, { name })?.data?.["value"]);
          seen.push([...found, context.secondaries(ConfigMap).length]);
        },
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await untilValue(space, "one-b", "first");
    await running.quiet();
    assert.equal(seen, [["first", "first", 2]]);
  });

  test("supports a dependent of an untyped kind", async () => {
    await using space = await openSpace();
    const Untyped = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
    const dependents = [configOf("a", { resource: Untyped.definition, deletion: "ordered" })];
    const controller = dependentController([], {
      workflows: { config: { primary: Sample.definition, dependents } },
      reconciler: {
        reconcile: async ({ context }) => {
          const { reconciled } = await context.workflows.get("config").reconcile();
          return updateStatus({ count: reconciled.length });
        },
        cleanup: async ({ context }) => void (await context.workflows.get("config").cleanup()),
      },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await space.until(Sample, "one", ({ status }) => status?.count === 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValue(space, "one-a", "second");
    await running.quiet();
    assert.is(outcomeOf(running, "a"), undefined, "it is not of the workflow that runs by itself");
    assert.is(writesOf(running).filter((write) => write.includes("configmaps")).length, 2);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  for (const how of ["a workflow of its own", "the explicit workflow of the controller"] as const)
    test(`keeps dependents unchanged in a reconcile that does not invoke it: ${how}`, async () => {
      await using space = await openSpace();
      const isOwn = how === "a workflow of its own";
      const dependents = [configOf("a"), bulkOf("b")];
      const start = () => {
        const reconciler: Parameters<typeof dependentController>[1] = {
          workflow: { invocation: "explicit" },
          ...(isOwn ? { workflows: { extra: { primary: Sample.definition, dependents } } } : {}),
          reconciler: {
            reconcile: async ({ primary, context }) => {
              const invocation = isOwn ? context.workflows.get("extra") : context.workflow!;
              if (primary.spec.other === "run") await invocation.reconcile();
              return updateStatus({ message: `${primary.spec.other} ${primary.spec.value}` });
            },
          },
        };
        return space.start([dependentController(isOwn ? [] : dependents, reconciler)]);
      };
      const made = { "one-a": "first", ...wantedOf("b", 2) };
      {
        await using running = await start();
        await space.create(Sample, sample({ value: "first", number: 2, other: "run" }));
        await untilValues(space, made);
        await space.patch(Sample, "one", { spec: { other: "rest", value: "second" } });
        await space.until(Sample, "one", ({ status }) => status?.message === "rest second");
        await running.quiet();
        assert.equal(await valuesIn(space), made);
      }
      await space.patch(Sample, "one", { spec: { value: "third" } });
      await using running = await start();
      await space.until(Sample, "one", ({ status }) => status?.message === "rest third");
      await running.quiet();
      assert.equal(await valuesIn(space), made);
      await space.patch(Sample, "one", { spec: { other: "run", number: 1 } });
      await untilValues(space, { "one-a": "third", ...wantedOf("b", 1, "third") });
      assert.equal(
        running.events.flatMap(({ error }) => error ?? []),
        [],
      );
    });

  test("keeps the object of a dependent that moved to it from the managed workflow", async () => {
    await using space = await openSpace();
    {
      await using running = await space.start([dependentController([configOf("a")])]);
      await space.create(Sample, sample());
      await untilValues(space, { "one-a": "first" });
      await running.quiet();
    }
    const { uid } = (await space.get(ConfigMap, "one-a"))!.metadata;
    const controller = dependentController([], {
      workflows: { later: { primary: Sample.definition, dependents: [configOf("a")] } },
      reconciler: {
        reconcile: async ({ primary, context }) => {
          if (primary.spec.value === "second") await context.workflows.get("later").reconcile();
          return updateStatus({ message: primary.spec.value ?? "" });
        },
      },
    });
    await using running = await space.start([controller]);
    await space.until(Sample, "one", ({ status }) => status?.message === "first");
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-a"))?.metadata.uid, uid, "nobody deletes what a workflow has");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValue(space, "one-a", "second");
    assert.is((await space.get(ConfigMap, "one-a"))?.metadata.uid, uid);
  });

  test("is pruned by a later version that lists its dependent in removed", async () => {
    await using space = await openSpace();
    {
      const controller = dependentController([], {
        workflows: { extra: { primary: Sample.definition, dependents: [configOf("a"), configOf("b")] } },
        reconciler: { reconcile: async ({ context }) => void (await context.workflows.get("extra").reconcile()) },
      });
      await using running = await space.start([controller]);
      await space.create(Sample, sample());
      await untilValues(space, { "one-a": "first", "one-b": "first" });
      await running.quiet();
    }
    const removed = { a: { resource: ConfigMap.definition, deletion: "ordered" } } as const;
    await using running = await space.start([dependentController([], { workflow: { removed } })]);
    await untilValues(space, { "one-b": "first" });
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "one-b"), "what is not named stays");
  });
});
