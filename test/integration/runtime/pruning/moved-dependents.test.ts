// What becomes of the objects of a dependent that has another name, keeps its ids in another form, or is written in another way, in the next
// version of an operator.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService } from "../dependents/account-service.js";
import { bulkOf, configOf, dependentController, writesOf } from "../dependents/sample-dependents.js";
import { itemsOf, namelessOf, startWith, untilValues } from "../dependents/sample-externals.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { openSpace, runFirst, sample, startSecond, untilReady } from "./two-versions.js";

const DEPENDENT = "gen-operator.dev/dependent";

/** The same dependent under another name: what it desires does not change with its name. */
const renamed = (dependent: KubernetesDependent, name: string, rest: Partial<KubernetesDependent> = {}) => ({
  ...dependent,
  name,
  movedFrom: [dependent.name],
  ...rest,
});

/** The objects by name: their uid, and the dependent that they name. */
async function objectsIn(space: Awaited<ReturnType<typeof openSpace>>) {
  const all = await space.list(ConfigMap);
  return Object.fromEntries(
    all.map(({ metadata: { name, uid, annotations } }) => [name, { uid, dependent: annotations?.[DEPENDENT] }]),
  );
}

suite("movedFrom", (test) => {
  test("keeps the object with its uid in one patch", async () => {
    await using space = await openSpace();
    const web = configOf("web");
    await runFirst(space, [web]);
    const before = await objectsIn(space);
    await using running = await startSecond(space, [renamed(web, "deployment")]);
    await untilReady(running);
    assert.equal(await objectsIn(space), { "one-web": { uid: before["one-web"]?.uid, dependent: "deployment" } });
    assert.equal(writesOf(running), ["PATCH configmaps/one-web 200"]);
  });

  test("keeps the items of a bulk dependent", async () => {
    await using space = await openSpace();
    const pages = bulkOf("pages");
    {
      await using first = await space.start([dependentController([pages])]);
      await space.create(Sample, { ...sample(), spec: { value: "first", number: 3 } });
      await untilReady(first);
    }
    const uidsOf = async () => Object.values(await objectsIn(space)).map(({ uid }) => uid);
    const before = await uidsOf();
    await using running = await startSecond(space, [renamed(pages, "sites")]);
    await untilReady(running);
    assert.is(before.length, 3);
    assert.equal(await uidsOf(), before);
    assert.ok(writesOf(running).every((write) => /^PATCH configmaps\/one-pages-\d 200$/.test(write)));
    await space.patch(Sample, "one", { spec: { number: 1 } });
    await waitFor("two items are gone", async () => (await uidsOf()).length === 1);
  });

  test("passes the object to conditions under the new name before it is written", async () => {
    await using space = await openSpace();
    const [web, after] = [configOf("web"), configOf("after")];
    await runFirst(space, [web, after]);
    const before = await objectsIn(space);
    const isThere = ({ secondary }: { secondary: { deployment?: object } }) => secondary.deployment !== undefined;
    const conditional = { ...configOf("after", { reconcilePrecondition: isThere }) };
    await using running = await startSecond(space, [conditional, renamed(web, "deployment")]);
    await untilReady(running);
    const uids = Object.entries(await objectsIn(space)).map(([name, { uid }]) => [name, uid]);
    assert.equal(
      uids,
      Object.entries(before).map(([name, { uid }]) => [name, uid]),
    );
    assert.equal(writesOf(running), ["PATCH configmaps/one-web 200"]);
  });

  test("lets a cleanup delete objects of the former names in order", async () => {
    await using space = await openSpace();
    const ordered = { deletion: "ordered" } as const;
    const [web, after] = [configOf("web", ordered), configOf("after", { ...ordered, dependsOn: ["web"] })];
    await runFirst(space, [web, after]);
    await space.delete(Sample, "one");
    const second = [renamed(web, "deployment"), renamed(after, "last", { dependsOn: ["deployment"] })];
    await using running = await startSecond(space, second, { pruning: false });
    await space.untilGone(Sample, "one");
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("DELETE")),
      ["DELETE configmaps/one-after 200", "DELETE configmaps/one-web 200"],
    );
    assert.equal(await objectsIn(space), {});
  });

  test("deletes the old object after desired() returned a new object name", async () => {
    await using space = await openSpace();
    const web = configOf("web");
    await runFirst(space, [web]);
    const deployment = renamed(configOf("deployment"), "deployment", { movedFrom: ["web"] });
    await using running = await startSecond(space, [deployment]);
    await space.untilGone(ConfigMap, "one-web");
    await running.quiet();
    assert.equal(writesOf(running), ["PATCH configmaps/one-deployment 201", "DELETE configmaps/one-web 200"]);
  });

  for (const [what, rest] of [
    ["with mode: createOnly", { mode: "createOnly" }],
    ["with operations.update: false", { operations: { update: false } }],
  ] as const)
    test(`updates only the dependent annotation of an object ${what}`, async () => {
      await using space = await openSpace();
      const web = configOf("web", rest);
      await runFirst(space, [web]);
      const before = await space.get(ConfigMap, "one-web");
      const desired = () => ({ metadata: { name: "one-web" }, data: { value: "other" } });
      const next = renamed(web, "deployment", { desired });
      {
        await using running = await startSecond(space, [next]);
        await untilReady(running);
        const after = await space.get(ConfigMap, "one-web");
        assert.equal([after?.metadata.uid, after?.data], [before?.metadata.uid, before?.data]);
        assert.is(after?.metadata.annotations?.[DEPENDENT], "deployment");
        assert.equal(writesOf(running), ["PATCH configmaps/one-web 200"]);
      }
      // A version that no longer knows the former name.
      await using third = await startSecond(space, [configOf("deployment", { ...rest, desired })]);
      await untilReady(third);
      assert.equal(writesOf(third), []);
      assert.is((await space.get(ConfigMap, "one-web"))?.metadata.uid, before?.metadata.uid);
    });

  test("finds an external resource by the id under the former name, and stores it under the new name", async () => {
    const items = { bulk: {}, desired: (args: Parameters<typeof itemsOf>[0]) => itemsOf(args) } as const;
    for (const form of [
      { state: { kind: "configMap" } },
      { state: { kind: "configMap", perItem: true }, ...items },
    ] as const) {
      await using space = await openSpace();
      await using service = await startAccountService();
      const account = namelessOf(service, form);
      const first = await startWith(space, account);
      await space.create(Sample, { ...sample(), spec: { value: "first", number: 1 } });
      await untilValues(service, "first");
      await first.quiet();
      await first.operator.stop();
      const stateNames = async () => (await space.list(ConfigMap)).map(({ metadata }) => metadata.name);
      const [before] = await stateNames();
      {
        await using second = await startWith(space, { ...account, name: "user", movedFrom: [account.name] });
        await waitFor("it is reconciled", () => second.events.length > 0);
        await second.quiet();
        const names = await stateNames();
        assert.is(names.length, 1);
        assert.match(names[0] ?? "", /^one-user-/);
        assert.is.not(names[0], before);
      }
      await using third = await startWith(space, { ...account, name: "user" });
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await untilValues(service, "second");
      await third.quiet();
      assert.equal(
        service.changes.map((change) => change.split(" ")[0]),
        ["POST", "PUT"],
      );
    }
  });

  test("rejects a former name that is in use, in removed, or listed twice", async () => {
    await using space = await openSpace();
    const start =
      (dependents: readonly KubernetesDependent[], removed = {}) =>
      () =>
        void space.operator([dependentController(dependents, { workflow: { removed } })]);
    const web = configOf("web");
    const moved = renamed(web, "deployment");
    assert.throws(
      start([web, moved]),
      'lists dependent "web" as moved to "deployment", but it is already used by "web"; remove one of the two',
    );
    assert.throws(
      start([moved, renamed(web, "other")]),
      'as moved to "other", but it is already used by "deployment"; remove one of the two',
    );
    const removed = { web: { resource: ConfigMap.definition, deletion: "orphan" } };
    assert.throws(start([moved], removed), 'lists dependent "web" both in removed and as moved to "deployment"');
  });
});

suite("perItem state of external ids", (test) => {
  for (const [what, before, now] of [
    ["from one object to one per item", false, true],
    ["from one object per item to one", true, false],
  ] as const)
    test(`is migrated without recreating resources: ${what}`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const accounts = (perItem: boolean) =>
        namelessOf(service, { state: { kind: "configMap", perItem }, bulk: {}, desired: (args) => itemsOf(args) });
      const states = async () => (await space.list(ConfigMap)).length;
      {
        await using first = await startWith(space, accounts(before));
        await space.create(Sample, { ...sample(), spec: { value: "first", number: 3 } });
        await untilValues(service, "first", "first", "first");
        await first.quiet();
        assert.is(await states(), before ? 3 : 1);
        await first.operator.stop();
      }
      // One item is no longer wanted when the second version starts.
      await space.patch(Sample, "one", { spec: { value: "second", number: 2 } });
      await using second = await startWith(space, accounts(now));
      await untilValues(service, "second", "second");
      await second.quiet();
      assert.is(await states(), now ? 2 : 1);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.is(service.accounts.size, 0);
      assert.is(service.changes.filter((change) => change.startsWith("POST")).length, 3, "none is made twice");
      await waitFor("no id is left", async () => (await states()) === 0);
    });
});

suite("first apply of a dependent", (test) => {
  const of = (data: object, rest: Partial<KubernetesDependent> = {}) =>
    configOf("a", { ...rest, desired: () => ({ metadata: { name: "one-a" }, data }) });
  const before = { old: "x", both: "x" };
  const rounds = [{ both: "x" }, { both: "y", next: "x" }, { both: "y" }];

  test("takes over fields written by PUT and removes those that are no longer desired", async () => {
    await using space = await openSpace();
    await runFirst(space, [of(before, { serverSideApply: false })]);
    await space.patch(ConfigMap, "one-a", { data: { theirs: "x" } });
    for (const data of rounds) {
      await using running = await startSecond(space, [of(data)]);
      await untilReady(running);
      assert.equal((await space.get(ConfigMap, "one-a"))?.data, { ...data, theirs: "x" });
      assert.is(writesOf(running).length, data === rounds[0] ? 2 : 1);
    }
  });

  test("keeps the data of an adopted object with mode: createOnly", async () => {
    await using space = await openSpace();
    await runFirst(space, [of(before, { serverSideApply: false })]);
    {
      const removed = { a: { resource: ConfigMap.definition, deletion: "orphan" } } as const;
      await using running = await startSecond(space, [], { removed });
      await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.labels === undefined);
      await running.quiet();
    }
    await using running = await startSecond(space, [of({}, { mode: "createOnly", existing: "adopt" })]);
    await untilReady(running);
    assert.equal((await space.get(ConfigMap, "one-a"))?.data, before);
  });

  for (const serverSideApply of [true, false])
    test(`takes over fields that another controller wrote by ${serverSideApply ? "apply" : "PUT"}`, async () => {
      await using space = await openSpace();
      await runFirst(space, [of(before, { serverSideApply })]);
      const former = dependentController([], {
        workflow: { removed: { a: { resource: ConfigMap.definition, deletion: "garbageCollected" } } },
      });
      for (const data of rounds) {
        await using running = await space.start([former, { ...dependentController([of(data)]), name: "other" }]);
        const isAsDesired = (object: DataObject) => Object.keys(object.data ?? {}).join() === Object.keys(data).join();
        await waitFor("it is as desired", async () => isAsDesired((await space.get(ConfigMap, "one-a"))!));
        await running.quiet();
      }
    });
});
