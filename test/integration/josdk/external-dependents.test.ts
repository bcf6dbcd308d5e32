// Dependents outside Kubernetes, after JOSDK's integration tests; the service is a real one, over HTTP.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#runtime/base/wait-for.js";
import type { CachingInboundSource } from "#runtime/events/caching-inbound-source.js";
import type {
  DependentArguments,
  ExternalArguments,
  ExternalDefinition,
  ExternalDependent,
} from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../support/suite.js";
import { startAccountService, type Account, type AccountDraft, type AccountService } from "./account-service.js";
import { dependentController, outcomeOf, untilOutcome } from "./sample-dependents.js";
import { ConfigMap, Sample } from "./sample-kind.js";
import { spacesOf, type TestOperator } from "./space.js";

const openSpace = spacesOf();
const EVERY_MS = 20;
/** Longer than any test: what is polled is known from the first poll, or from what the driver did. */
const NEVER_MS = 3_600_000;

type Arguments = DependentArguments<Sample, { readonly [name: string]: unknown }>;
type FunctionArguments = ExternalArguments<Sample, object>;

const ownerOf = ({ metadata }: KubernetesObject) => keyOf(metadata);
const sample = (value = "first", number?: number) => ({
  metadata: { name: "one" },
  spec: { value, ...(number === undefined ? {} : { number }) },
});

interface Stated extends Partial<Omit<ExternalDependent, "external" | "desired">> {
  readonly external?: { readonly [member in keyof ExternalDefinition]?: unknown };
  readonly desired?: (args: Arguments) => unknown;
}

/** Returns all accounts, by the primaries that own them. */
async function byOwner(service: AccountService, isOurs: (account: Account) => boolean = () => true) {
  const all = new Map<ObjectKey, Account[]>();
  for (const account of await service.list())
    if (isOurs(account)) all.set(account.owner as ObjectKey, [...(all.get(account.owner as ObjectKey) ?? []), account]);
  return all;
}

/** A dependent that is an account of the primary; its id is chosen by us. */
function accountOf(name: string, service: AccountService, { external = {}, ...rest }: Stated = {}): ExternalDependent {
  return {
    name,
    dependsOn: [],
    desired: ({ primary }: Arguments): Account => ({
      id: `${ownerOf(primary)}/${name}`,
      owner: ownerOf(primary),
      value: primary.spec.value ?? "none",
    }),
    ...rest,
    external: {
      source: {
        kind: "poll",
        intervalMs: EVERY_MS,
        fetch: () => byOwner(service, ({ id }) => id.endsWith(`/${name}`)),
      },
      idOf: ({ id }: Account) => id,
      create: (desired: Account) => service.create(desired),
      update: (desired: Account) => service.update(desired),
      delete: ({ id }: Account) => service.delete(id),
      ...external,
    },
  } as unknown as ExternalDependent;
}

/** A dependent whose accounts get their ids from the service: what they are is found by the state alone. */
function namelessOf(service: AccountService, rest: Stated & { state: ExternalDefinition["state"] }): ExternalDependent {
  const { state, external, ...stated } = rest;
  return accountOf("account", service, {
    desired: ({ primary }) => ({ owner: "nobody", value: primary.spec.value ?? "none" }),
    ...stated,
    external: {
      source: {
        kind: "perPrimaryPoll",
        intervalMs: EVERY_MS,
        fetch: async (_: Sample, { state: ids }: { state: ReadonlyMap<string, string> }) => {
          const found = await Promise.all([...ids.values()].map((id) => service.get(id)));
          return found.filter((each) => each !== undefined);
        },
      },
      state,
      update: (desired: AccountDraft, { id }: Account) => service.update({ ...desired, id }),
      delete: (_: Account, { state: id = "" }: FunctionArguments) => service.delete(id),
      matches: (desired: AccountDraft, live: Account) => desired.value === live.value,
      ...external,
    },
  });
}

/** A bulk dependent with as many accounts as the primary says. */
function itemsOf({ primary }: Arguments, idOf: (key: string) => object = () => ({})) {
  const keys = Array.from({ length: primary.spec.number ?? 0 }, (_, index) => `n${index}`);
  const account = (key: string) => ({ ...idOf(key), owner: ownerOf(primary), value: primary.spec.value ?? "none" });
  return Object.fromEntries(keys.map((key) => [key, account(key)]));
}

const start = (space: Awaited<ReturnType<typeof openSpace>>, ...dependents: readonly ExternalDependent[]) =>
  space.start([dependentController(dependents as never)]);
const valuesIn = ({ accounts }: AccountService) => [...accounts.values()].map(({ value }) => value).sort();
const reconciles = ({ events }: TestOperator) => events.length;
const untilValues = (service: AccountService, ...values: readonly string[]) =>
  waitFor(`the accounts are ${values.join(", ") || "none"}`, () => valuesIn(service).join() === values.join());

suite("an external dependent", (test) => {
  test("is created, updated, and deleted before its primary goes", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await start(space, accountOf("account", service));
    const { metadata } = await space.create(Sample, sample());
    await untilValues(service, "first");
    const finalizers = (await space.get(Sample, "one"))?.metadata.finalizers;
    assert.is(finalizers?.length, 1, "it has to be deleted by the runtime");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second");
    service.faults.set("DELETE", "refused");
    await space.delete(Sample, "one");
    await waitFor("the deletion fails", () => running.events.some(({ error }) => error !== undefined));
    assert.ok((await space.get(Sample, "one"))?.metadata.deletionTimestamp, "it waits for its account");
    assert.is(service.accounts.size, 1);
    service.faults.clear();
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
    const id = `${keyOf(metadata)}/account`;
    assert.equal(service.changes, [`POST ${id}`, `PUT ${id}`, `DELETE ${id}`]);
  });

  test("is known as soon as it is created, and its creation and update make no reconcile", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await start(space, accountOf("account", service));
    await space.create(Sample, sample());
    await untilOutcome(running, "account", "created");
    await running.quiet();
    assert.is(reconciles(running), 1, "polls bring nothing new");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilOutcome(running, "account", "updated");
    await running.quiet();
    assert.is(reconciles(running), 2);
  });

  test("that somebody else changes or deletes is made as desired again, as soon as a poll sees it", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using _ = await start(space, accountOf("account", service));
    await space.create(Sample, sample());
    await untilValues(service, "first");
    const [account] = service.accounts.values();
    service.accounts.set(account!.id, { ...account!, value: "theirs" });
    await untilValues(service, "first");
    service.accounts.clear();
    await untilValues(service, "first");
  });

  test("may be polled for each primary, and is seen by what depends on it", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const seen: unknown[] = [];
    const fetch = (primary: Sample) => service.list(ownerOf(primary));
    const account = accountOf("account", service, {
      external: { source: { kind: "perPrimaryPoll", intervalMs: EVERY_MS, fetch } },
    });
    const copy = accountOf("copy", service, {
      dependsOn: ["account"],
      desired: ({ primary, secondary }) => {
        seen.push(secondary["account"]);
        return { id: `${ownerOf(primary)}/copy`, owner: "somebody", value: (secondary["account"] as Account).value };
      },
      external: { source: { kind: "inbound" } },
    });
    await using _ = await start(space, account, copy);
    await space.create(Sample, sample());
    await untilValues(service, "first", "first");
    assert.equal(seen[0], service.accounts.get(`${space.namespace}/one/account`));
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second", "second");
    const id = `${space.namespace}/one/account`;
    service.accounts.set(id, { ...service.accounts.get(id)!, value: "theirs" });
    await untilValues(service, "second", "second");
  });

  test("may be pushed, and is made as desired again at once", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await start(
      space,
      accountOf("account", service, { external: { source: { kind: "inbound" } } }),
    );
    const { metadata } = await space.create(Sample, sample());
    await untilValues(service, "first");
    const source = running.operator.controller("sample").sources.get("account") as CachingInboundSource<Account>;
    const [account] = service.accounts.values();
    const theirs = { ...account!, value: "theirs" };
    service.accounts.set(theirs.id, theirs);
    source.put(keyOf(metadata), theirs);
    await untilValues(service, "first");
    service.accounts.clear();
    source.delete(keyOf(metadata), theirs.id);
    await untilValues(service, "first");
  });

  test("stands beside another one of the same type (MultipleManagedExternalDependentSameTypeIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using _ = await start(space, accountOf("a", service), accountOf("b", service));
    await space.create(Sample, sample());
    await untilValues(service, "first", "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second", "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  test("is not created twice when its creation failed after it had an effect", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const source = {
      kind: "perPrimaryPoll",
      intervalMs: NEVER_MS,
      fetch: (primary: Sample) => service.list(ownerOf(primary)),
    };
    const polled = accountOf("polled", service, {
      external: { source: { kind: "poll", intervalMs: NEVER_MS, fetch: () => byOwner(service) } },
    });
    const each = accountOf("polled", service, { external: { source } });
    for (const dependent of [polled, each]) {
      service.accounts.clear();
      service.changes.length = 0;
      service.faults.set("POST", "failedAfterwards");
      await using running = await start(space, dependent);
      await space.create(Sample, sample());
      await untilOutcome(running, "polled", "failed");
      await untilOutcome(running, "polled", "unchanged");
      service.faults.clear();
      assert.is(service.changes.length, 1);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
    }
  });

  test("waits while its service is down, which health tells, and is made when it is back", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const source = {
      kind: "perPrimaryPoll",
      intervalMs: EVERY_MS,
      fetch: (primary: Sample) => service.list(ownerOf(primary)),
    };
    service.faults.set("GET", "refused");
    await using running = await start(space, accountOf("account", service, { external: { source } }));
    await space.create(Sample, sample());
    await waitFor("it is tried again", () => running.events.some(({ error }) => error !== undefined));
    const health = () => running.operator.controller("sample").health()["account"];
    assert.is(health()?.status, "unhealthy");
    assert.match(health()?.reason ?? "", /was answered with 503/);
    service.faults.clear();
    await untilValues(service, "first");
    await waitFor("it is healthy", () => health()?.status === "healthy");
  });

  test("is neither polled nor made while its activation condition does not hold", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let polls = 0;
    const fetch = () => {
      polls++;
      return byOwner(service);
    };
    const activationCondition = ({ primary }: Arguments) => primary.spec.value !== "off";
    const account = accountOf("account", service, {
      activationCondition: activationCondition as never,
      external: { source: { kind: "poll", intervalMs: EVERY_MS, fetch } },
    });
    await using running = await start(space, account);
    await space.create(Sample, sample("off"));
    await untilOutcome(running, "account", "inactive");
    assert.is(polls, 0);
    service.faults.set("GET", "refused");
    await space.patch(Sample, "one", { spec: { value: "on" } });
    await untilOutcome(running, "account", "failed");
    service.faults.clear();
    await untilValues(service, "on");
    await space.patch(Sample, "one", { spec: { value: "off" } });
    await untilOutcome(running, "account", "inactive");
    const before = polls;
    await running.quiet();
    assert.ok(polls <= before + 1, "it is polled no more");
    assert.is(service.accounts.size, 1, "it is left");
  });
});

suite("a bulk external dependent", (test) => {
  test("has as many resources as are desired, and changes them (BulkExternalDependentIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const bulk = accountOf("accounts", service, {
      bulk: {},
      desired: (args) => itemsOf(args, (id) => ({ id })),
      external: { source: { kind: "poll", intervalMs: EVERY_MS, fetch: () => byOwner(service) } },
    });
    await using running = await start(space, bulk);
    await space.create(Sample, sample("first", 3));
    await untilValues(service, "first", "first", "first");
    await space.patch(Sample, "one", { spec: { number: 1 } });
    await untilValues(service, "first");
    await space.patch(Sample, "one", { spec: { number: 5, value: "second" } });
    await untilValues(service, ...Array<string>(5).fill("second"));
    await running.quiet();
    assert.is(service.changes.filter((change) => change.startsWith("POST")).length, 7);
    await space.patch(Sample, "one", { spec: { number: 0 } });
    await untilValues(service);
    await space.patch(Sample, "one", { spec: { number: 2 } });
    await untilValues(service, "second", "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });
});

suite("an external dependent with explicit state", (test) => {
  const stateIn = async (space: Awaited<ReturnType<typeof openSpace>>) =>
    (await space.list(ConfigMap)).find(({ metadata }) => metadata.labels?.["gen-operator.dev/external-state"]);

  test("keeps the id in a ConfigMap, and finds the resource by it (ExternalStateDependentIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const dependent = namelessOf(service, { state: { kind: "configMap" } });
    const running = await start(space, dependent);
    const { metadata } = await space.create(Sample, sample());
    await untilValues(service, "first");
    const state = await waitFor("the id is kept", () => stateIn(space));
    assert.equal(state.data, { id: "id-1" });
    assert.is(state.metadata.ownerReferences?.[0]?.uid, metadata.uid);
    await running.quiet();
    assert.is(reconciles(running), 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second");
    await running.operator.stop();
    // Another process knows nothing but what is kept.
    await using _ = await start(space, dependent);
    await space.patch(Sample, "one", { spec: { value: "third" } });
    await untilValues(service, "third");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
    assert.is(await stateIn(space), undefined);
    assert.equal(service.changes, ["POST nobody", "PUT id-1", "PUT id-1", "DELETE id-1"]);
  });

  test("keeps the id in the status of its primary", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const running = await start(space, namelessOf(service, { state: { kind: "status", path: ["message"] } }));
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ status }) => status?.message === "id-1");
    await running.quiet();
    assert.is(reconciles(running), 1, "what the runtime writes causes no reconcile");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(service.changes, ["POST nobody", "PUT id-1", "DELETE id-1"]);
  });

  test("that vanishes is created anew, and the new id is kept", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using _ = await start(space, namelessOf(service, { state: { kind: "configMap" } }));
    await space.create(Sample, sample());
    await waitFor("the id is kept", async () => (await stateIn(space))?.data?.["id"] === "id-1");
    service.accounts.clear();
    await waitFor("the new id is kept", async () => (await stateIn(space))?.data?.["id"] === "id-2");
    assert.equal([...service.accounts.keys()], ["id-2"]);
  });

  test("may be one of many, each with its id (ExternalStateBulkIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const bulk = namelessOf(service, { state: { kind: "configMap" }, bulk: {}, desired: (args) => itemsOf(args) });
    await using running = await start(space, bulk);
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
