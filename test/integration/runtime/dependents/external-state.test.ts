// External dependents whose ids nothing but the runtime knows, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import type { ExternalArguments } from "#runtime/workflow/workflow-definition.js";
import type { ExternalSource } from "#runtime/sources/external-source.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { perPrimaryPollingSource } from "#runtime/sources/polling-sources.js";
import { builtinDefinition, classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService, type Account, type AccountDraft } from "./account-service.js";
import { outcomeOf } from "./sample-dependents.js";
import { EVERY_MS, itemsOf, namelessOf, ownerOf, sample, startWith, untilValues } from "./sample-externals.js";
import { ConfigMap, crdOf, Sample, sampleController, sampleCrd } from "../sample-kind.js";
import type { DataObject, SampleReconciler } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const text = { type: "string" };
const keptAccount = {
  type: "object",
  required: ["id", "token"],
  properties: { id: text, token: text, use: { type: "object", properties: { times: { type: "integer" } } } },
};
const stateCrd = crdOf("AccountState", "Namespaced", {
  type: "object",
  properties: {
    spec: { type: "object", properties: { accounts: { type: "object", additionalProperties: keptAccount } } },
  },
});
const stateKind = customDefinition(stateCrd);
const openSpace = spacesOf({ crds: [sampleCrd, stateCrd] });
const Secret = classOf<DataObject>(builtinDefinition("v1", "Secret"));

interface KeptAccount {
  readonly id: string;
  readonly token: string;
  readonly use: { readonly times: number };
}

suite("external state", (test) => {
  // Without the proofs of the ids.
  const stateIn = async (space: Space) => {
    const all = await space.list(ConfigMap);
    const state = all.find(({ metadata }) => metadata.labels?.["gen-operator.dev/external-state"]);
    const ids = Object.entries(state?.data ?? {}).filter(([key]) => !/^mac(\.|$)/.test(key));
    return state && { ...state, data: Object.fromEntries(ids) };
  };

  test("stores the id in a ConfigMap, and finds the resource by it after a restart (ExternalStateDependentIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const dependent = namelessOf(service, { state: { kind: "configMap" } });
    const running = await startWith(space, dependent);
    const { metadata } = await space.create(Sample, sample());
    await untilValues(service, "first");
    const state = await waitFor("the id is kept", () => stateIn(space));
    assert.equal(state.data, { id: "id-1" });
    assert.is(state.metadata.ownerReferences?.[0]?.uid, metadata.uid);
    await running.quiet();
    assert.is(running.events.length, 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second");
    await running.operator.stop();
    // Another process knows nothing but what is kept.
    await using _ = await startWith(space, dependent);
    await space.patch(Sample, "one", { spec: { value: "third" } });
    await untilValues(service, "third");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
    assert.is(await stateIn(space), undefined);
    assert.equal(service.changes, ["POST nobody", "PUT id-1", "PUT id-1", "DELETE id-1"]);
  });

  test("logs one line for each creation and deletion of the ConfigMap", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const running = await startWith(space, namelessOf(service, { state: { kind: "configMap" } }));
    await space.create(Sample, sample());
    const { metadata } = await waitFor("the id is kept", () => stateIn(space));
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    const object = `ConfigMap "${space.namespace}/${metadata.name}"`;
    const lines = running.logs.filter((line) => line.includes("ConfigMap"));
    assert.equal(lines, [`info created ${object}`, `info deleted ${object}`]);
  });

  test("stores the id of each item in its own Secret, and creates no item twice after a restart", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const dependent = namelessOf(service, {
      state: { kind: "secret", perItem: true },
      bulk: {},
      desired: (args) => itemsOf(args),
    });
    const running = await startWith(space, dependent);
    await space.create(Sample, sample("first", 3));
    const states = async () =>
      (await space.list(Secret)).filter(({ metadata }) => metadata.labels?.["gen-operator.dev/external-state"]);
    await waitFor("three ids are kept", async () => (await states()).length === 3);
    await running.operator.stop();
    // Another process knows nothing but what is kept.
    await using second = await startWith(space, dependent);
    await space.patch(Sample, "one", { spec: { value: "second", number: 2 } });
    await waitFor("one id is forgotten", async () => (await states()).length === 2);
    await second.quiet();
    assert.equal(
      [...service.accounts.values()].map(({ value }) => value),
      ["second", "second"],
    );
    assert.is(service.changes.filter((change) => change.startsWith("POST")).length, 3, "none is made twice");
  });

  test("stores the id at a path of an object of a user-defined kind", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const state = { kind: "resource", resource: ConfigMap.definition, path: ["data", "account"] } as const;
    await using running = await startWith(space, namelessOf(service, { state }));
    await space.create(Sample, sample());
    const kept = await waitFor("the id is kept", () => stateIn(space));
    assert.equal(kept.data, { account: "id-1" });
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.is(service.accounts.size, 0);
    assert.is(await stateIn(space), undefined);
  });

  for (const state of [
    { kind: "secret" },
    { kind: "configMap", perItem: true },
    { kind: "resource", resource: stateKind, path: ["spec", "accounts"] },
  ] as const)
    test(`passes the stored result of create() to delete() after a restart: ${state.kind}`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      // Only who creates an account is told its token, and only who has the token may delete it.
      const tokens = new Map<string, string>();
      const deleted: string[] = [];
      const dependent = namelessOf(service, {
        ...{ state, bulk: {}, desired: (args) => itemsOf(args) },
        source: {
          kind: "perPrimaryPoll",
          intervalMs: EVERY_MS,
          fetch: async (_: Sample, { state: kept }: { state: ReadonlyMap<string, KeptAccount> }) => {
            const found = await Promise.all([...kept.values()].map(({ id }) => service.get(id)));
            return found.filter((each) => each !== undefined);
          },
        },
        create: async (desired: AccountDraft) => {
          const created = await service.create(desired);
          tokens.set(created.id, `token of ${created.id}`);
          return { ...created, token: tokens.get(created.id) };
        },
        stateOf: ({ id, token }: Account & { readonly token: string }): KeptAccount => ({
          id,
          token,
          use: { times: 1 },
        }),
        delete: async ({ id }: Account, { state: kept }: ExternalArguments<Sample, object, KeptAccount>) => {
          if (kept?.token !== tokens.get(id)) throw new Error(`wrong token for ${id}: ${JSON.stringify(kept)}`);
          deleted.push(id);
          await service.delete(id);
        },
      });
      const running = await startWith(space, dependent);
      await space.create(Sample, sample("first", 2));
      await untilValues(service, "first", "first");
      await running.quiet();
      await running.operator.stop();
      await using _ = await startWith(space, dependent);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await untilValues(service, "second", "second");
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.equal(deleted.sort(), ["id-1", "id-2"]);
      assert.is(service.changes.filter((change) => change.startsWith("POST")).length, 2, "none is made twice");
    });

  test("stores the id in the status of the primary without another reconcile", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const running = await startWith(space, namelessOf(service, { state: { kind: "status", path: ["message"] } }));
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ status }) => status?.message === "id-1");
    await running.quiet();
    assert.is(running.events.length, 1, "what the runtime writes causes no reconcile");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(service.changes, ["POST nobody", "PUT id-1", "DELETE id-1"]);
  });

  test("replaces the id when the resource disappears and is recreated", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using _ = await startWith(space, namelessOf(service, { state: { kind: "configMap" } }));
    await space.create(Sample, sample());
    await waitFor("the id is kept", async () => (await stateIn(space))?.data?.["id"] === "id-1");
    service.accounts.clear();
    await waitFor("the new id is kept", async () => (await stateIn(space))?.data?.["id"] === "id-2");
    assert.equal([...service.accounts.keys()], ["id-2"]);
  });

  test("restores a ConfigMap or an entry that another client deletes, without a second POST", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const bulk = namelessOf(service, { state: { kind: "configMap" }, bulk: {}, desired: (args) => itemsOf(args) });
    await using running = await startWith(space, bulk);
    const textOf = (state?: DataObject) =>
      Object.entries(state?.data ?? {})
        .sort()
        .join(" ");
    const dataOf = async () => textOf(await stateIn(space));
    await space.create(Sample, sample("first", 2));
    const kept = await waitFor("two ids are kept", async () => {
      const state = await stateIn(space);
      return Object.keys(state?.data ?? {}).length === 2 ? state : undefined;
    });
    const data = textOf(kept);
    await space.delete(ConfigMap, kept.metadata.name);
    await waitFor("the ids are kept again", async () => (await dataOf()) === data);
    await space.patch(ConfigMap, kept.metadata.name, { data: { "item.n0": null } });
    await waitFor("the id is kept again", async () => (await dataOf()) === data);
    await running.quiet();
    assert.equal(
      service.changes,
      ["POST home/one", "POST home/one"].map((change) => change.replace("home", space.namespace)),
    );
  });

  test("stores one id for each item of a bulk dependent (ExternalStateBulkIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const bulk = namelessOf(service, { state: { kind: "configMap" }, bulk: {}, desired: (args) => itemsOf(args) });
    await using running = await startWith(space, bulk);
    const keysIn = async () => Object.keys((await stateIn(space))?.data ?? {}).sort();
    await space.create(Sample, sample("first", 3));
    await untilValues(service, "first", "first", "first");
    await space.patch(Sample, "one", { spec: { number: 4 } });
    await untilValues(service, ...Array<string>(4).fill("first"));
    await space.patch(Sample, "one", { spec: { number: 2, value: "second" } });
    await untilValues(service, "second", "second");
    await waitFor("two ids are kept", async () => (await keysIn()).join() === "item.n0,item.n1");
    await running.quiet();
    assert.is(service.changes.filter((change) => change.startsWith("POST")).length, 4);
    assert.is(outcomeOf(running, "account")?.kind, "updated");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
    assert.is(await stateIn(space), undefined);
  });
});

suite("external state of a reconciler", (test) => {
  test("finds the resource by an id in a ConfigMap, and creates it once (ExternalStateIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const stateOf = (primary: Sample, id: string) => ({
      metadata: {
        name: `${primary.metadata.name}-id`,
        namespace: primary.metadata.namespace ?? "",
        annotations: { sample: primary.metadata.name },
      },
      data: { id },
    });
    const reconciler: SampleReconciler = {
      async reconcile({ primary, context }) {
        const accounts = context.eventSources.get("accounts") as ExternalSource<Account>;
        const known = context.secondary<Account>("account");
        const { value = "none" } = primary.spec;
        if (known === undefined) {
          const created = await service.create({ owner: "nobody", value });
          await context.resources.of(ConfigMap).create(stateOf(primary, created.id));
          accounts.recordCreated(ownerOf(primary), created);
        } else if (known.value !== value) {
          accounts.recordUpdated(ownerOf(primary), await service.update({ ...known, value }), known);
        }
      },
      async cleanup({ primary, context }) {
        const known = context.secondary<Account>("account");
        if (known !== undefined) await service.delete(known.id);
        await context.client.delete(ConfigMap, { name: `${primary.metadata.name}-id`, namespace: space.namespace });
      },
    };
    const states = informerSource({
      name: "states",
      resource: ConfigMap,
      mapper: byAnnotation(Sample, { name: "sample" }),
      startPriority: "first",
    });
    const accounts = perPrimaryPollingSource<Account, Sample>({
      name: "accounts",
      type: "account",
      idOf: ({ id }) => id,
      intervalMs: EVERY_MS,
      async fetch(primary) {
        const [state] = states.secondariesOf(primary) as DataObject[];
        const found = state === undefined ? undefined : await service.get(state.data?.["id"] ?? "");
        return found === undefined ? [] : [found];
      },
    });
    const controller = sampleController(reconciler, { eventSources: () => [states, accounts] });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await running.quiet();
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(service.changes, ["POST nobody", "PUT id-1", "DELETE id-1"]);
  });
});
