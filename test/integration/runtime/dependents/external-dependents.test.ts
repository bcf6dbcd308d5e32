// Dependents outside Kubernetes, after JOSDK's integration tests; the service is a real one, over HTTP.
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { CachingInboundSource } from "#runtime/sources/caching-inbound-source.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService, type Account } from "./account-service.js";
import { configOf, dependentController, outcomeOf, untilOutcome } from "./sample-dependents.js";
import {
  accountOf,
  byOwner,
  EVERY_MS,
  itemsOf,
  ownerOf,
  sample,
  startWith,
  untilValues,
  type Arguments,
} from "./sample-externals.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
/** Longer than any test: what is polled is known from the first poll, or from what was written. */
const NEVER_MS = 3_600_000;

/** What the functions of a dependent see of others, and of an event source. */
interface Known {
  readonly config?: DataObject;
  readonly keys: readonly DataObject[];
}

suite("external dependent", (test) => {
  test("creates and updates its resource, and deletes it before the finalizer is removed", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, accountOf("account", service));
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

  test("knows its resource from the response, so that own writes cause no reconcile", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, accountOf("account", service));
    await space.create(Sample, sample());
    await untilOutcome(running, "account", "created");
    await running.quiet();
    assert.is(running.events.length, 1, "polls bring nothing new");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilOutcome(running, "account", "updated");
    await running.quiet();
    assert.is(running.events.length, 2);
  });

  test("restores a resource that another client changed or deleted at the next poll", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using _ = await startWith(space, accountOf("account", service));
    await space.create(Sample, sample());
    await untilValues(service, "first");
    const [account] = service.accounts.values();
    service.accounts.set(account!.id, { ...account!, value: "theirs" });
    await untilValues(service, "first");
    service.accounts.clear();
    await untilValues(service, "first");
  });

  test("is polled for each primary, and its resource is visible to dependents that depend on it", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const seen: unknown[] = [];
    const fetch = (primary: Sample) => service.list(ownerOf(primary));
    const account = accountOf("account", service, {
      source: { kind: "perPrimaryPoll", intervalMs: EVERY_MS, fetch },
    });
    const copy = accountOf("copy", service, {
      dependsOn: ["account"],
      desired: ({ primary, secondary }) => {
        seen.push(secondary["account"]);
        return { id: `${ownerOf(primary)}/copy`, owner: "somebody", value: (secondary["account"] as Account).value };
      },
      source: { kind: "inbound" },
    });
    await using _ = await startWith(space, account, copy);
    await space.create(Sample, sample());
    await untilValues(service, "first", "first");
    assert.equal(seen[0], service.accounts.get(`${space.namespace}/one/account`));
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second", "second");
    const id = `${space.namespace}/one/account`;
    service.accounts.set(id, { ...service.accounts.get(id)!, value: "theirs" });
    await untilValues(service, "second", "second");
  });

  test("passes dependents and secondaries of other event sources to fetch()", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const seen: string[] = [];
    const fetch = (primary: Sample, { secondary }: { secondary: Known }) => {
      const { keys, config } = secondary;
      seen.push(`${keys[0]?.data?.["token"] ?? "no"} key, ${config?.data?.["value"] ?? "no"} config`);
      return service.list(ownerOf(primary));
    };
    const key = { name: "key", namespace: space.namespace, labels: { kind: "key" } };
    const account = accountOf("account", service, {
      dependsOn: ["config"],
      source: { kind: "perPrimaryPoll", intervalMs: EVERY_MS, fetch },
    });
    const controller = dependentController([configOf("config"), account], {
      eventSources: () => [
        informerSource({
          name: "keys",
          resource: ConfigMap,
          labelSelector: "kind=key",
          primaryToSecondary: () => [keyOf(key)],
        }),
      ],
    });
    await space.create(ConfigMap, { metadata: key, data: { token: "first" } });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    assert.is(seen[0], "first key, no config", "nothing is fetched before the event sources are known");
    await space.patch(ConfigMap, "key", { data: { token: "second" } });
    await waitFor("a poll sees it", () => seen.at(-1) === "second key, first config");
  });

  test("restores a resource at once when an inbound source reports a change or deletion", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, accountOf("account", service, { source: { kind: "inbound" } }));
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

  test("is distinguished from another external dependent of the same type (MultipleManagedExternalDependentSameTypeIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using _ = await startWith(space, accountOf("a", service), accountOf("b", service));
    await space.create(Sample, sample());
    await untilValues(service, "first", "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "second", "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  test("creates its resource once if create() fails after it took effect", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const source = {
      kind: "perPrimaryPoll" as const,
      intervalMs: NEVER_MS,
      fetch: (primary: Sample) => service.list(ownerOf(primary)),
    };
    const polled = accountOf("polled", service, {
      source: { kind: "poll", intervalMs: NEVER_MS, fetch: () => byOwner(service) },
    });
    const each = accountOf("polled", service, { source });
    for (const dependent of [polled, each]) {
      service.accounts.clear();
      service.changes.length = 0;
      service.faults.set("POST", "failedAfterwards");
      await using running = await startWith(space, dependent);
      await space.create(Sample, sample());
      await untilOutcome(running, "polled", "failed");
      await untilOutcome(running, "polled", "unchanged");
      service.faults.clear();
      assert.is(service.changes.length, 1);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
    }
  });

  test("fails alone while its service returns 503, as the health says, and is created by the first poll that succeeds", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const each = {
      kind: "perPrimaryPoll" as const,
      intervalMs: EVERY_MS,
      fetch: (one: Sample) => service.list(ownerOf(one)),
    };
    const all = { kind: "poll" as const, intervalMs: EVERY_MS, fetch: () => byOwner(service) };
    for (const source of [each, all]) {
      service.faults.set("GET", "refused");
      const dependents = [configOf("config"), accountOf("account", service, { source })];
      await using running = await space.start([dependentController(dependents, { retry: { maxRetries: 0 } })]);
      await space.create(Sample, sample());
      const { error } = (await untilOutcome(running, "account", "failed")) as { error: Error };
      assert.match(error.message, /was answered with 503/);
      assert.is(outcomeOf(running, "config")?.kind, "created");
      const health = () => running.operator.controller("sample").health()["account"];
      assert.is(health()?.status, "unhealthy");
      assert.match(health()?.reason ?? "", /was answered with 503/);
      await running.quiet();
      assert.is(running.events.length, 1, "polls that fail cause no reconcile");
      service.faults.clear();
      await untilValues(service, "first");
      await waitFor("it is healthy", () => health()?.status === "healthy");
      await running.quiet();
      assert.is(running.events.length, 2);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      for (const { metadata } of await space.list(ConfigMap)) await space.delete(ConfigMap, metadata.name);
    }
  });

  test("neither polls nor creates its resource while its activationCondition is false", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let polls = 0;
    const fetch = () => {
      polls++;
      return byOwner(service);
    };
    const activationCondition = ({ primary }: Arguments) => primary.spec.value !== "off";
    const account = accountOf("account", service, {
      activationCondition: activationCondition,
      source: { kind: "poll", intervalMs: EVERY_MS, fetch },
    });
    await using running = await startWith(space, account);
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

suite("bulk external dependent", (test) => {
  test("creates, updates and deletes resources to match the desired items (BulkExternalDependentIT)", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const bulk = accountOf("accounts", service, {
      bulk: {},
      desired: (args) => itemsOf(args, (id) => ({ id })),
      source: { kind: "poll", intervalMs: EVERY_MS, fetch: () => byOwner(service) },
    });
    await using running = await startWith(space, bulk);
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
