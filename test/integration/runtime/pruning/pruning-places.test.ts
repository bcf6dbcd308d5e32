// What becomes of the objects of a dependent that is elsewhere now, or has another selector: its watch does not show them.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { bulkOf, configOf, dependentController, valuesIn } from "../dependents/sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { openSpace, runFirst, sample, startSecond, untilReady } from "./two-versions.js";

const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const removedOf = (name: string, namespace?: string) => ({
  removed: {
    [name]: { resource: ConfigMap.definition, deletion: "ordered", ...(namespace && { namespace }) } as const,
  },
});
const labelled = (name: string, rest: Partial<KubernetesDependent> = {}) =>
  configOf(name, {
    labelSelector: "tier=x",
    desired: () => ({ metadata: { name: "labelled", labels: { tier: "x" } }, data: { value: "new" } }),
    ...(rest as object),
  });

suite("removed dependent with the name of another dependent", (test) => {
  test("is pruned in its former namespace", async () => {
    await using space = await openSpace();
    const { client, namespace } = space;
    const other = `${namespace}-other`;
    await client.create(Namespace, { metadata: { name: other } });
    const first = { ...sample(), spec: { value: "first", number: 1 } };
    await runFirst(space, [configOf("a", { deletion: "ordered" }), bulkOf("many", { deletion: "ordered" })], first);
    const elsewhere = { deletion: "ordered", namespace: other } as const;
    const { removed } = removedOf("a", namespace);
    await using running = await startSecond(space, [configOf("a", elsewhere), bulkOf("many", elsewhere)], {
      removed: { ...removed, ...removedOf("many", namespace).removed },
    });
    await waitFor("the former ones are gone", async () => (await space.list(ConfigMap)).length === 0);
    await untilReady(running);
    for (const name of ["one-a", "one-many-0"])
      assert.ok(await client.get(ConfigMap, { name, namespace: other }), name);
  });

  test("is pruned if it does not match the labelSelector", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a", { deletion: "ordered" }), configOf("before")]);
    const moved = labelled("now", {
      movedFrom: ["before"],
      desired: () => ({ metadata: { name: "moved", labels: { tier: "x" } } }),
    });
    const { removed } = removedOf("a");
    await using running = await startSecond(space, [labelled("a", { deletion: "ordered" }), moved], {
      removed: { ...removed, ...removedOf("before").removed },
    });
    await waitFor("the former ones are gone", async () => !(await space.get(ConfigMap, "one-a")));
    await waitFor("the former ones are gone", async () => !(await space.get(ConfigMap, "one-before")));
    await untilReady(running);
    assert.equal(Object.keys(await valuesIn(space)).sort(), ["labelled", "moved"]);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "labelled"), undefined);
  });

  test("is kept while the dependent of its name is inactive, or its workflow was not invoked", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), configOf("b")]);
    const inactive = configOf("a", { labelSelector: "tier=x", activationCondition: () => false });
    const extra = { extra: { primary: Sample.definition, dependents: [configOf("b", { labelSelector: "tier=x" })] } };
    const removed = { ...removedOf("a").removed, ...removedOf("b").removed };
    await using running = await startSecond(space, [inactive], { removed }, { workflows: extra });
    await waitFor("it is reconciled", () => running.events.length > 0);
    await running.quiet();
    assert.equal(Object.keys(await valuesIn(space)).sort(), ["one-a", "one-b"]);
  });
});

suite("adoption of an object outside the selector", (test) => {
  const [collected, ordered] = [{ deletion: "garbageCollected" }, { deletion: "ordered" }] as const;
  const of = (dependent: KubernetesDependent, rest: Partial<ControllerDefinition> = {}) =>
    ({ ...dependentController([dependent]), finalizer: "example.com/other", ...rest }) as const;
  for (const [before, after] of [
    [collected, ordered],
    [ordered, collected],
  ] as const) {
    const what = `${before.deletion} to ${after.deletion}`;
    test(`takes it over from another controller when deletion changes from ${what}`, async () => {
      await using space = await openSpace();
      await runFirst(space, [configOf("a", before)]);
      const was = await space.get(ConfigMap, "one-a");
      const left = { a: { resource: ConfigMap.definition, ...collected } };
      const former = dependentController([], { workflow: { removed: left } });
      await using running = await space.start([former, of(configOf("a", after), { name: "other" })]);
      const isTheirs = ({ metadata }: KubernetesObject) => metadata.labels?.["gen-operator.dev/controller"] === "other";
      await space.until(ConfigMap, "one-a", isTheirs);
      await running.quiet();
      const is = await space.get(ConfigMap, "one-a");
      assert.is(is?.metadata.uid, was?.metadata.uid);
      assert.is(is?.metadata.ownerReferences === undefined, after === ordered);
      await space.delete(Sample, "one");
      await space.untilGone(ConfigMap, "one-a");
    });
  }

  test("keeps the uid when labelSelector and deletion of the dependent change", async () => {
    await using space = await openSpace();
    const desired = () => ({ metadata: { name: "labelled" }, data: { value: "old" } });
    await runFirst(space, [configOf("a", { ...collected, desired })]);
    const was = await space.get(ConfigMap, "labelled");
    await using running = await startSecond(space, [labelled("a", ordered)], removedOf("a"));
    await untilReady(running);
    assert.is((await space.get(ConfigMap, "labelled"))?.metadata.uid, was?.metadata.uid);
  });
});
