// Links prove themselves: what anyone can write onto an object makes it nobody's dependent.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { configOf, dependentController, writesOf, type SampleArguments, type Stated } from "./sample-dependents.js";
import { ClusterSample, ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

const openSpace = spacesOf({ simulate: true });
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const EventKind = classOf<KubernetesObject & { reason: string; message: string }>(builtinDefinition("v1", "Event"));
const DOMAIN = "gen-operator.dev";
const sample = { metadata: { name: "one" }, spec: { value: "first" } };

/** The other namespace of a test, in which a tenant has all rights. */
async function openTenant(space: Space): Promise<string> {
  const name = `${space.namespace}-tenant`;
  await space.client.create(Namespace, { metadata: { name } });
  return name;
}

/** A namespace for objects that the operator places there. */
async function openShared(space: Space): Promise<string> {
  const name = `${space.namespace}-shared`;
  await space.client.create(Namespace, { metadata: { name } });
  return name;
}

/** The namespaces of a test, and no other test's. */
const all = ({ namespace }: Space) => ({
  namespaces: [namespace, `${namespace}-tenant`, `${namespace}-shared`] as const,
});

/** Everything that the operator writes onto an object of a primary, written by a tenant. */
function forgedFor(
  primary: KubernetesObject,
  { namespace, name = "trap", dependent = "a", item, knowsUid = true }: ForgedOptions,
): DataObject & { metadata: { name: string; namespace: string } } {
  const { name: victim, namespace: home, uid = "" } = primary.metadata;
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      ...{ name, namespace },
      labels: { [`${DOMAIN}/controller`]: "sample" },
      annotations: {
        [`${DOMAIN}/primary-name`]: victim,
        ...(home && { [`${DOMAIN}/primary-namespace`]: home }),
        [`${DOMAIN}/primary-type`]: `${primary.kind}.josdk.example.com`,
        ...(knowsUid && { [`${DOMAIN}/primary-uid`]: uid }),
        [`${DOMAIN}/dependent`]: dependent,
        ...(item && { [`${DOMAIN}/item`]: item }),
        [`${DOMAIN}/object`]: `${namespace}/${name}`,
        [`${DOMAIN}/link-proof`]: "AAAAAAAAAAAAAAAAAAAAAA",
      },
      ownerReferences:
        home === undefined
          ? [{ apiVersion: primary.apiVersion, kind: primary.kind, name: victim, uid: knowsUid ? uid : "false-uid" }]
          : [],
    },
    data: { password: "of the tenant" },
  };
}

interface ForgedOptions {
  readonly namespace: string;
  readonly name?: string;
  readonly dependent?: string;
  readonly item?: string;
  readonly knowsUid?: boolean;
}

/** A ConfigMap that keeps its password; `seen` gets what desired sees. */
const keeping = (seen: unknown[], rest: Stated = {}): Stated => ({
  desired: ({ primary, secondary }) => {
    const password = (secondary["a"] as DataObject | undefined)?.data?.["password"];
    seen.push(password);
    const value = primary.spec.value ?? "";
    return { metadata: { name: `${primary.metadata.name}-a` }, data: { password: password ?? "own", value } };
  },
  ...rest,
});

const bulk = (seen: unknown[]): Stated => ({
  bulk: {},
  desired: ({ primary, secondary }) => {
    const items = secondary["a"] as unknown as { [key: string]: DataObject };
    const password = items["k"]?.data?.["password"];
    seen.push(...Object.values(items).map(({ data }) => data?.["password"]));
    const value = primary.spec.value ?? "";
    return { k: { metadata: { name: "one-a" }, data: { password: password ?? "own", value } } };
  },
});

const untilValue = (space: Space, value: string) =>
  space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === value);

/** How many reconciles there were. */
const reconcilesOf = ({ events }: TestOperator) => events.length;

suite("forged link in another namespace", (test) => {
  const ways: readonly [string, (seen: unknown[]) => Stated][] = [
    ["garbage-collected", (seen) => keeping(seen)],
    ["by PUT", (seen) => keeping(seen, { serverSideApply: false })],
    ["createOnly", (seen) => keeping(seen, { mode: "createOnly" })],
    ["ordered", (seen) => keeping(seen, { deletion: "ordered" })],
    ["orphan", (seen) => keeping(seen, { deletion: "orphan" })],
    ["bulk", bulk],
    ["ordered bulk", (seen) => ({ ...bulk(seen), deletion: "ordered" })],
  ];
  for (const [way, stated] of ways)
    for (const knowsUid of [true, false])
      test(`is ignored by reconciles and cleanup (${way}, ${knowsUid ? "with" : "without"} the uid of the primary)`, async () => {
        await using space = await openSpace();
        const namespace = await openTenant(space);
        const { client } = space;
        const seen: unknown[] = [];
        const item = way.includes("bulk") ? { item: "k" } : {};
        // As the primary is not known yet, and as it is.
        const early = {
          apiVersion: "josdk.example.com/v1",
          kind: "Sample",
          metadata: { ...sample.metadata, namespace: space.namespace },
        };
        await client.create(ConfigMap, forgedFor(early, { namespace, name: "early", knowsUid: false, ...item }));
        await using running = await space.start([dependentController([configOf("a", stated(seen))], all(space))]);
        const primary = await space.create(Sample, sample);
        await untilValue(space, "first");
        await client.create(ConfigMap, forgedFor(primary, { namespace, knowsUid, ...item }));
        const states = async () =>
          (await client.list(ConfigMap, { namespace })).filter(({ data }) => data?.["password"]);
        const before = await states();
        assert.is(before.length, 2);
        await running.quiet();
        await space.patch(Sample, "one", { spec: { value: "second" } });
        if (way !== "createOnly") await untilValue(space, "second");
        await running.quiet();
        const count = reconcilesOf(running);
        for (let edit = 0; edit < 10; edit++)
          await client.mergePatch(ConfigMap, { name: "trap", namespace }, { data: { edit: `${edit}` } });
        await running.quiet();
        assert.is(reconcilesOf(running) - count, 0);
        assert.equal(
          seen.filter((password) => password === "of the tenant"),
          [],
        );
        assert.is((await space.get(ConfigMap, "one-a"))?.data?.["password"], "own");
        // A deletion that waits for the trap, or takes it along.
        await client.mergePatch(
          ConfigMap,
          { name: "trap", namespace },
          { metadata: { finalizers: ["example.com/hold"] } },
        );
        await space.delete(Sample, "one");
        await space.untilGone(Sample, "one");
        const after = await states();
        assert.equal(
          after.map(({ metadata: { name, deletionTimestamp } }) => [name, deletionTimestamp]),
          [
            ["early", undefined],
            ["trap", undefined],
          ],
        );
        assert.equal(failuresOf(running.events), []);
        await client.mergePatch(ConfigMap, { name: "trap", namespace }, { metadata: { finalizers: null } });
      });

  test("does not make a read-only dependent ready", async () => {
    await using space = await openSpace();
    const namespace = await openTenant(space);
    const reader = configOf("a", { mode: "readOnly" });
    await using running = await space.start([dependentController([reader], all(space))]);
    const primary = await space.create(Sample, sample);
    await waitFor("it was reconciled", () => running.events.length > 0);
    await space.client.create(ConfigMap, forgedFor(primary, { namespace }));
    await running.quiet();
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it was reconciled again", () => running.events.length > 1);
    await running.quiet();
    assert.is(running.events.at(-1)?.workflow?.dependents["a"]?.kind, "waiting");
  });

  test("is reported with one warning and an UnprovenLink Event", async () => {
    await using space = await openSpace();
    const namespace = await openTenant(space);
    await using running = await space.start([
      dependentController([configOf("a", { deletion: "ordered" })], all(space)),
    ]);
    const primary = await space.create(Sample, sample);
    await untilValue(space, "first");
    await space.client.create(ConfigMap, forgedFor(primary, { namespace }));
    for (const value of ["second", "third"]) {
      await space.patch(Sample, "one", { spec: { value } });
      await untilValue(space, value);
      await running.quiet();
    }
    const lines = running.logs.filter((line) => line.includes(`${namespace}/trap`));
    assert.is(lines.length, 1);
    assert.match(
      lines[0]!,
      /^warn .*ConfigMap .*trap.* names this primary, but has no valid proof that the operator linked it/,
    );
    const event = await waitFor("an Event says so", async () =>
      (await space.client.list(EventKind, { namespace: space.namespace })).find(
        ({ reason }) => reason === "UnprovenLink",
      ),
    );
    assert.match(event?.message ?? "", "names this primary, but has no valid proof that the operator linked it");
  });
});

suite("owner reference to a cluster-scoped primary", (test) => {
  const controller = (space: Space, stated: Stated) =>
    dependentController([configOf("a", stated)], {
      ...all(space),
      workflow: { primary: ClusterSample.definition },
    });
  for (const knowsUid of [true, false])
    test(`is no link in a namespace that desired() does not return (${knowsUid ? "correct" : "wrong"} uid)`, async () => {
      await using space = await openSpace();
      const namespace = await openTenant(space);
      const name = `${space.namespace}-cluster`;
      const seen: unknown[] = [];
      const desired: Stated["desired"] = ({ primary, secondary }) => {
        const password = (secondary["a"] as DataObject | undefined)?.data?.["password"];
        seen.push(password);
        return {
          metadata: { name: `${primary.metadata.name}-a`, namespace: space.namespace },
          data: { password: password ?? "own", value: primary.spec.value ?? "" },
        };
      };
      await using running = await space.start([controller(space, { desired })]);
      const primary = await space.create(ClusterSample, { metadata: { name }, spec: { value: "first" } });
      await space.until(ConfigMap, `${name}-a`, ({ data }) => data?.["value"] === "first");
      const forged = forgedFor(primary, { namespace, knowsUid });
      // The garbage collector deletes what has an owner that does not exist.
      if (!knowsUid) Object.assign(forged.metadata, { finalizers: ["example.com/hold"] });
      await space.client.create(ConfigMap, forged);
      await running.quiet();
      const count = reconcilesOf(running);
      for (let edit = 0; edit < 10; edit++)
        await space.client.mergePatch(ConfigMap, { name: "trap", namespace }, { data: { edit: `${edit}` } });
      await running.quiet();
      assert.is(reconcilesOf(running) - count, 0);
      await space.patch(ClusterSample, name, { spec: { value: "second" } });
      await space.until(ConfigMap, `${name}-a`, ({ data }) => data?.["value"] === "second");
      await running.quiet();
      assert.equal(
        seen.filter((password) => password === "of the tenant"),
        [],
      );
      const live = await space.get(ConfigMap, `${name}-a`);
      assert.is(live?.data?.["password"], "own");
      await space.client.mergePatch(ConfigMap, { name: "trap", namespace }, { metadata: { finalizers: null } });
      await space.delete(ClusterSample, name);
    });
});

suite("link to an object in another namespace", (test) => {
  /** Places the object where the primary says. */
  const placed = (seen: unknown[]): Stated => ({
    deletion: "ordered",
    desired: ({ primary, secondary }: SampleArguments) => {
      const password = (secondary["a"] as DataObject | undefined)?.data?.["password"];
      seen.push(password);
      return {
        metadata: { name: "one-a", namespace: primary.spec.other ?? "" },
        data: { password: password ?? "own", value: primary.spec.value ?? "" },
      };
    },
  });

  test("is valid after a restart, without a write", async () => {
    await using space = await openSpace();
    const namespace = await openShared(space);
    const ref = { name: "one-a", namespace };
    const seen: unknown[] = [];
    const controllers = [dependentController([configOf("a", placed(seen))], all(space))];
    const spec = { value: "first", other: namespace };
    {
      await using first = await space.start(controllers);
      await space.create(Sample, { ...sample, spec });
      await waitFor("it is made", async () => (await space.client.get(ConfigMap, ref)) !== undefined);
      await first.quiet();
    }
    seen.length = 0;
    await using running = await space.start(controllers);
    await waitFor("it is reconciled", () => running.events.length > 0);
    await running.quiet();
    assert.equal(seen, ["own"]);
    assert.equal(writesOf(running), []);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it is changed", async () => (await space.client.get(ConfigMap, ref))?.data?.["value"] === "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.client.get(ConfigMap, ref), undefined);
  });

  test("moves with the namespace that desired() returns, also while the operator is stopped", async () => {
    await using space = await openSpace();
    const [first, second] = [await openShared(space), await openTenant(space)];
    const controllers = [dependentController([configOf("a", placed([]))], all(space))];
    {
      await using running = await space.start(controllers);
      await space.create(Sample, { ...sample, spec: { value: "first", other: first } });
      const made = async () => (await space.client.get(ConfigMap, { name: "one-a", namespace: first })) !== undefined;
      await waitFor("it is made", made);
      await running.quiet();
    }
    await space.patch(Sample, "one", { spec: { other: second } });
    await using running = await space.start(controllers);
    const isThere = async (namespace: string) =>
      (await space.client.get(ConfigMap, { name: "one-a", namespace })) !== undefined;
    await waitFor("it has moved", async () => !(await isThere(first)) && (await isThere(second)));
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.not(await isThere(second));
  });

  test("is not valid with the link proof of another object", async () => {
    await using space = await openSpace();
    const [shared, namespace] = [await openShared(space), await openTenant(space)];
    await using running = await space.start([dependentController([configOf("a", placed([]))], all(space))]);
    await space.create(Sample, { ...sample, spec: { value: "first", other: shared } });
    const original = await waitFor("it is made", () =>
      space.client.get(ConfigMap, { name: "one-a", namespace: shared }),
    );
    const { labels = {}, annotations = {} } = original.metadata;
    assert.match(annotations[`${DOMAIN}/link-proof`]!, /^[\w-]{22}$/);
    const copies = ["one-a", "copy"].map((name) => ({
      metadata: {
        name,
        namespace,
        labels,
        annotations: { ...annotations, [`${DOMAIN}/object`]: `${namespace}/${name}` },
      },
    }));
    for (const copy of copies) await space.client.create(ConfigMap, copy);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    const left = (await space.client.list(ConfigMap, { namespace })).map(({ metadata }) => metadata.name);
    assert.equal(left.filter((name) => name !== "kube-root-ca.crt").sort(), ["copy", "one-a"]);
  });
});

suite("link without a primary uid", (test) => {
  for (const [way, rest] of [
    ["by apply", {}],
    ["by PUT", { serverSideApply: false }],
    ["createOnly", { mode: "createOnly" }],
  ] as const)
    test(`gets the uid with one write after an upgrade, and keeps the data of its object (${way})`, async () => {
      await using space = await openSpace();
      const seen: unknown[] = [];
      const controllers = [dependentController([configOf("a", keeping(seen, { deletion: "ordered", ...rest }))])];
      {
        await using first = await space.start(controllers);
        await space.create(Sample, sample);
        await untilValue(space, "first");
        await first.quiet();
      }
      const annotations = { [`${DOMAIN}/primary-uid`]: null };
      await space.patch(ConfigMap, "one-a", { metadata: { annotations }, data: { password: "kept" } });
      await using running = await space.start(controllers);
      const { metadata } = await space.until(
        ConfigMap,
        "one-a",
        ({ metadata }) => metadata.annotations?.[`${DOMAIN}/primary-uid`] !== undefined,
      );
      await running.quiet();
      assert.is(metadata.annotations?.[`${DOMAIN}/primary-uid`], (await space.get(Sample, "one"))?.metadata.uid);
      assert.is((await space.get(ConfigMap, "one-a"))?.data?.["password"], "kept");
      assert.is(writesOf(running).length, 1);
    });

  test("is found by a cleanup directly after an upgrade", async () => {
    await using space = await openSpace();
    const stated = { deletion: "ordered" } as const;
    const many: Stated = { ...stated, bulk: {}, desired: () => ({ k: { metadata: { name: "one-k" }, data: {} } }) };
    const controllers = [dependentController([configOf("a", stated), configOf("many", many)])];
    {
      await using first = await space.start(controllers);
      await space.create(Sample, sample);
      await space.until(ConfigMap, "one-a", () => true);
      await space.until(ConfigMap, "one-k", () => true);
      await first.quiet();
    }
    for (const name of ["one-a", "one-k"])
      await space.patch(ConfigMap, name, { metadata: { annotations: { [`${DOMAIN}/primary-uid`]: null } } });
    await space.delete(Sample, "one");
    await using running = await space.start(controllers);
    await space.untilGone(Sample, "one");
    assert.equal(await space.list(ConfigMap), []);
    assert.equal(failuresOf(running.events), []);
  });
});
