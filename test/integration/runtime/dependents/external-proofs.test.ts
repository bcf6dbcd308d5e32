// What anyone can write proves nothing: an id of an external resource counts only if the operator itself kept it, for this primary, dependent and item.
import { waitFor } from "#apiserver/wait-for.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { createRecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { Page, startPageServer } from "../page-operator.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { startAccountService, type AccountService } from "./account-service.js";
import { dependentController, outcomeOf, untilOutcome } from "./sample-dependents.js";
import { itemsOf, namelessOf, sample, untilValues } from "./sample-externals.js";
import { ConfigMap, Sample, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

interface EventObject extends KubernetesObject {
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly name: string };
}
const EventKind = classOf<EventObject>(builtinDefinition("v1", "Event"));
const openSpace = spacesOf();
const KEY = "gen-operator-proof-key";
const MARK = "ids-signed.gen-operator.dev/sample";
const STATE = "gen-operator.dev/external-state";

/** Starts an operator whose key is in the space of the test. */
const startWith = (space: Space, dependents: readonly ExternalDependent[], controller = {}): Promise<TestOperator> =>
  space.start([dependentController(dependents, controller)], { proofKey: { namespace: space.namespace } });

const single = (service: AccountService, rest: Partial<ExternalDependent> = {}) =>
  namelessOf(service, { state: { kind: "configMap" }, ...rest } as Parameters<typeof namelessOf>[1]);

const bulk = (service: AccountService, rest: Partial<ExternalDependent> = {}) =>
  single(service, { bulk: {}, desired: ((args: Parameters<typeof itemsOf>[0]) => itemsOf(args)) as never, ...rest });

const statesIn = async (space: Space, kind = ConfigMap): Promise<DataObject[]> =>
  (await space.list(kind)).filter(({ metadata }) => metadata.labels?.[STATE] !== undefined);

const stateOf = (space: Space, primary = "one") =>
  waitFor(`an id of "${primary}" is kept`, async () =>
    (await statesIn(space)).find(({ metadata }) => metadata.ownerReferences?.[0]?.name === primary),
  );

const changesOf = ({ changes }: AccountService, method: string) => changes.filter((each) => each.startsWith(method));

const eventsIn = async (space: Space) => {
  const all = await space.list(EventKind);
  return all.filter(({ reason }) => reason === "UnprovenId").map(({ message = "" }) => message);
};

const errorsOf = ({ events }: TestOperator) => events.filter(({ error }) => error !== undefined);

/** Another primary's account, and what leads to it. */
const bobs = async (service: AccountService) => service.create({ owner: "bob", value: "bob" });

suite("proof of an external id", (test) => {
  test("rejects an added id with one warning and one Event, and neither updates nor deletes its resource", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, [bulk(service)]);
    await space.create(Sample, sample("first", 2));
    await untilValues(service, "first", "first");
    const bob = await bobs(service);
    const { metadata } = await stateOf(space);
    await space.patch(ConfigMap, metadata.name, { data: { "item.k-of-bob": bob.id } });
    const outcome = await untilOutcome(running, "account", "failed");
    const { error } = outcome as { error: Error };
    const place = `data.item.k-of-bob of ConfigMap "${space.namespace}/${metadata.name}"`;
    assert.ok(error.message.includes(`the id at ${place} was not written by this operator`), error.message);
    await running.quiet();
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(service, "bob", "second", "second");
    const lines = running.logs.filter((line) => line.includes("was not written by this operator: its proof"));
    assert.is(lines.length, 1, lines.join("\n"));
    assert.ok(lines[0]!.includes(`kubectl annotate secret ${KEY} -n ${space.namespace} ${MARK}-`), lines[0]);
    await waitFor("there is an Event", async () => (await eventsIn(space)).length === 1);
    // The way out.
    await space.patch(ConfigMap, metadata.name, { data: { "item.k-of-bob": null } });
    await waitFor("all is well", () => outcomeOf(running, "account")?.kind === "unchanged");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal([...service.accounts.keys()], [bob.id]);
  });

  test("restores an id that another client changes while the operator runs", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, [single(service)]);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    const bob = await bobs(service);
    const kept = await stateOf(space);
    await space.patch(ConfigMap, kept.metadata.name, { data: { id: bob.id } });
    await space.until(ConfigMap, kept.metadata.name, ({ data }) => data?.["id"] === kept.data?.["id"]);
    await running.quiet();
    assert.is(service.accounts.get(bob.id)?.value, "bob");
    assert.is(changesOf(service, "POST").length, 2);
  });

  for (const [what, attack] of Object.entries({
    "is changed": (id: string) => ({ id }),
    "is changed, without its proof": (id: string) => ({ id, mac: null }),
    "has lost its proof": () => ({ mac: null }),
  }))
    test(`blocks update and deletion if the id ${what} between two runs, until it is restored`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const first = await startWith(space, [single(service)]);
      await space.create(Sample, sample());
      await untilValues(service, "first");
      await first.quiet();
      await first.operator.stop();
      const bob = await bobs(service);
      const { metadata, data: before } = await stateOf(space);
      await space.patch(ConfigMap, metadata.name, { data: attack(bob.id) });
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await using second = await startWith(space, [single(service)]);
      await untilOutcome(second, "account", "failed");
      await space.delete(Sample, "one");
      await waitFor("the cleanup fails", () => second.events.some(({ kind, error }) => kind === "cleanup" && error));
      assert.ok((await space.get(Sample, "one")) !== undefined);
      assert.equal([service.accounts.get(bob.id)?.value, changesOf(service, "POST").length], ["bob", 2]);
      assert.equal(changesOf(service, "DELETE"), []);
      await space.patch(ConfigMap, metadata.name, { data: { id: before!["id"], mac: before!["mac"] } });
      await space.untilGone(Sample, "one");
      assert.equal([...service.accounts.keys()], [bob.id]);
    });

  test("rejects a changed id in the status while the operator runs and during cleanup", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const account = single(service, { state: { kind: "status", path: ["message"] } });
    const first = await startWith(space, [account]);
    await space.create(Sample, sample());
    const { status } = await space.until(Sample, "one", ({ status }) => status?.message !== undefined);
    await first.quiet();
    const bob = await bobs(service);
    const forge = () =>
      space.client.mergePatch(
        Sample,
        { name: "one", namespace: space.namespace, subresource: "status" },
        { status: { message: bob.id } },
      );
    await forge();
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(Sample, "one", (each) => each.status?.message === status?.message);
    await untilValues(service, "bob", "second");
    await first.operator.stop();
    await forge();
    await space.delete(Sample, "one");
    await using second = await startWith(space, [account]);
    await waitFor("the cleanup fails", () => second.events.some(({ kind, error }) => kind === "cleanup" && error));
    assert.is(service.accounts.size, 2);
    assert.ok(service.accounts.has(bob.id));
  });

  for (const isBulk of [false, true])
    test(`reports a status path that the CRD lacks, and creates no second resource${isBulk ? " for an item" : ""}`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const account = (isBulk ? bulk : single)(service, { state: { kind: "status", path: ["absent"] } });
      await using running = await startWith(space, [account]);
      await space.create(Sample, sample("first", 1));
      const { error } = (await untilOutcome(running, "account", "failed")) as { error: Error };
      assert.match(
        error.message,
        /the API server did not store the id of the resource at status\.absent(\.n0)? of Sample ".*\/one"; add the field to the definition/,
      );
      await waitFor("it is tried again", () => errorsOf(running).length > 2);
      assert.is(service.accounts.size, 1);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.is(service.accounts.size, 0);
    });

  test("of another primary, item or dependent is rejected", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const dependents = [bulk(service), { ...bulk(service), name: "other" }];
    const first = await startWith(space, dependents);
    await space.create(Sample, sample("first", 1));
    await space.create(Sample, { ...sample("bob", 1), metadata: { name: "bob" } });
    await untilValues(service, "bob", "bob", "first", "first");
    await first.quiet();
    await first.operator.stop();
    const states = await statesIn(space);
    const of = (primary: string, dependent: string) =>
      states.find(({ metadata }) => metadata.name.startsWith(`${primary}-${dependent}-`))!;
    const { data: ofBob = {} } = of("bob", "account");
    const { data: own = {} } = of("one", "account");
    const bobsId = ofBob["item.n0"]!;
    // The id and the proof of another primary; of another item, and of another dependent.
    await space.patch(ConfigMap, of("one", "account").metadata.name, {
      data: { "item.n0": bobsId, "mac.n0": ofBob["mac.n0"], "item.n1": own["item.n0"], "mac.n1": own["mac.n0"] },
    });
    await space.patch(ConfigMap, of("one", "other").metadata.name, {
      data: { "item.n0": own["item.n0"], "mac.n0": own["mac.n0"] },
    });
    const before = [...service.accounts.values()];
    await space.patch(Sample, "one", { spec: { value: "second", number: 2 } });
    await using second = await startWith(space, dependents);
    for (const name of ["account", "other"]) await untilOutcome(second, name, "failed");
    await space.delete(Sample, "one");
    await waitFor("the cleanup fails", () => second.events.some(({ kind, error }) => kind === "cleanup" && error));
    const now = [...service.accounts.values()].filter(({ id }) => before.some((each) => each.id === id));
    assert.equal(now, before, "nothing that was there is updated or deleted");
  });

  test("is required in a ConfigMap that existed before its primary, and nothing is created until it is deleted", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    // Its name is a hash of what everybody knows.
    const first = await startWith(space, [single(service)]);
    await space.create(Sample, sample());
    const { metadata, kind, apiVersion } = await stateOf(space);
    await first.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await first.operator.stop();
    const bob = await bobs(service);
    for (const isOwned of [false, true]) {
      const { metadata: owner } = await space.create(Sample, sample());
      const ownerReferences = [{ apiVersion: "josdk.example.com/v1", kind: "Sample", name: "one", uid: owner.uid! }];
      const trap = { name: metadata.name, labels: metadata.labels, ...(isOwned ? { ownerReferences } : {}) };
      await space.create(ConfigMap, { apiVersion, kind, metadata: trap, data: { id: bob.id } } as never);
      const creations = changesOf(service, "POST").length;
      await using running = await startWith(space, [single(service)]);
      const { error } = (await untilOutcome(running, "account", "failed")) as { error: Error };
      const said = isOwned ? "was not written by this operator" : "already exists and keeps ids";
      assert.ok(error.message.includes(said) && error.message.includes(metadata.name), error.message);
      assert.is(changesOf(service, "POST").length, creations);
      await space.delete(ConfigMap, metadata.name);
      await untilValues(service, "bob", "first");
      await running.quiet();
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.equal([...service.accounts.keys()], [bob.id]);
      await running.operator.stop();
    }
  });
});

suite("proof key", (test) => {
  test("is created once in the namespace of the operator, and only if external ids are stored", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const secret = () => space.get(Secret, KEY);
    {
      await using running = await startWith(space, [
        { ...single(service), state: undefined, stateOf: undefined as never },
      ]);
      await running.quiet();
      assert.is(await secret(), undefined);
    }
    await using running = await startWith(space, [single(service)]);
    await running.quiet();
    const { data, metadata } = (await secret())!;
    assert.is(Buffer.from(data!["key"]!, "base64").length, 32);
    assert.is(metadata.annotations?.[MARK], "true");
    const requests = running.requests.filter((each) => each.includes("/secrets"));
    const path = `/api/v1/namespaces/${space.namespace}/secrets`;
    assert.equal(requests, [`GET ${path}/${KEY} 404`, `POST ${path} 201`, `PATCH ${path}/${KEY} 200`]);
  });

  test("that cannot be read (403) blocks only its controller, and names the missing permission", async () => {
    await using server = await startPageServer();
    await using service = await startAccountService();
    server.faults.add({ verb: "get", kind: "Secret", answer: { status: 403 } });
    const page = (name: string, dependents: readonly ExternalDependent[]): ControllerDefinition => ({
      ...{ name, reconciler: { reconcile: () => {} }, finalizer: `example.com/${name}` },
      workflow: { primary: Page.definition, dependents },
    });
    const account = single(service, { desired: () => ({ owner: "one", value: "first" }) });
    await using running = createRecordedOperator({
      controllers: [page("page", [account]), page("other", [])],
      connection: { url: server.url, token: server.token },
    });
    const starting = running.operator.start();
    const line = await waitFor("the problem is logged", () => running.logs.find((each) => each.includes(KEY)));
    assert.match(
      line,
      /could not be read: .*; grant the operator get, create and patch of secrets in namespace "default"/,
    );
    const client = running.operator.client;
    await client.create(Page, { metadata: { name: "one", namespace: "default" }, spec: { text: "first" } });
    await waitFor("the other controller works", () => running.events.some(({ controller }) => controller === "other"));
    assert.is(service.accounts.size, 0);
    server.faults.clear();
    await starting;
    await untilValues(service, "first");
  });
});

suite("upgrade from ids without proofs", (test) => {
  /** Makes the objects as that version left them. */
  const takeProofs = async (space: Space) => {
    for (const kind of [ConfigMap, Secret])
      for (const { metadata, data = {} } of await statesIn(space, kind)) {
        const macs = Object.keys(data).filter((key) => /^mac(\.|$)/.test(key));
        await space.patch(kind, metadata.name, { data: Object.fromEntries(macs.map((key) => [key, null])) });
      }
    for (const { metadata } of await space.list(Sample)) {
      const proofs = Object.keys(metadata.annotations ?? {}).filter((key) => key.includes("/proof-"));
      const annotations = Object.fromEntries(proofs.map((key) => [key, null]));
      await space.patch(Sample, metadata.name, { metadata: { annotations } });
    }
  };

  for (const [what, state] of Object.entries({
    "a ConfigMap": { kind: "configMap" },
    "Secrets per item": { kind: "secret", perItem: true },
    "the status": { kind: "status", path: ["message"] },
  } as const))
    test(`signs each existing id with one write, and rejects unsigned ids afterwards: ${what}`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const dependent = state.kind === "status" ? single(service, { state }) : bulk(service, { state });
      const first = await startWith(space, [dependent]);
      await space.create(Sample, sample("first", 2));
      await waitFor("the accounts are there", () => service.accounts.size === (state.kind === "status" ? 1 : 2));
      await first.quiet();
      await first.operator.stop();
      const changes = [...service.changes];
      await takeProofs(space);
      await space.patch(Secret, KEY, { metadata: { annotations: { [MARK]: null } } });
      {
        await using upgraded = await startWith(space, [dependent]);
        await waitFor("it is reconciled", () => upgraded.events.length > 0);
        await upgraded.quiet();
        const writes = upgraded.requests.filter(
          (each) => !each.startsWith("GET") && !each.includes(`/secrets/${KEY} `),
        );
        assert.is(writes.length, "perItem" in state ? 2 : 1, writes.join("\n"));
        assert.is(outcomeOf(upgraded, "account")?.kind, "unchanged");
      }
      {
        await using again = await startWith(space, [dependent]);
        await waitFor("it is reconciled", () => again.events.length > 0);
        await again.quiet();
        assert.equal(
          again.requests.filter((each) => !/^(GET|POST) .*events/.test(each)),
          [`GET /api/v1/namespaces/${space.namespace}/secrets/${KEY} 200`],
        );
      }
      // After a rollback, and forth again.
      await takeProofs(space);
      {
        await using rejecting = await startWith(space, [dependent]);
        await untilOutcome(rejecting, "account", "failed");
      }
      assert.equal(service.changes, changes);
      await space.patch(Secret, KEY, { metadata: { annotations: { [MARK]: null } } });
      await using accepting = await startWith(space, [dependent]);
      await waitFor("all is well", () => outcomeOf(accepting, "account")?.kind === "unchanged");
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.is(service.accounts.size, 0);
    });
});

suite("object with an external id", (test) => {
  for (const [what, state] of Object.entries({
    "one for all items": { kind: "configMap" },
    "one per item": { kind: "secret", perItem: true },
  } as const))
    for (const [how, change] of Object.entries({
      "its controller is renamed": { name: "renamed", formerNames: ["sample"] },
      "it lost its labels": { name: "sample" },
      both: { name: "renamed", formerNames: ["sample"] },
    }))
      test(`is found although ${how}: ${what}`, async () => {
        await using space = await openSpace();
        await using service = await startAccountService();
        const account = bulk(service, { state });
        const kind = state.kind === "secret" ? Secret : ConfigMap;
        const first = await startWith(space, [account]);
        await space.create(Sample, sample("first", 2));
        await untilValues(service, "first", "first");
        await first.quiet();
        await first.operator.stop();
        const before = await statesIn(space, kind);
        if (!how.includes("name"))
          for (const { metadata } of before) await space.patch(kind, metadata.name, { metadata: { labels: null } });
        await space.patch(Sample, "one", { spec: { value: "second" } });
        {
          await using second = await startWith(space, [account], change);
          await untilValues(service, "second", "second");
          await second.quiet();
        }
        assert.is(changesOf(service, "POST").length, 2, "none is created again");
        const after = await statesIn(space, kind);
        assert.is(after.length, before.length);
        assert.ok(after.every(({ metadata }) => metadata.labels?.[STATE] === change.name));
        const all = (await space.list(kind)).filter(({ metadata }) => metadata.name.endsWith("-state"));
        assert.is(all.length, before.length, "no id is left under the former name");
        // What moved needs the former name no more.
        await using third = await startWith(space, [account], { name: change.name });
        await space.patch(Sample, "one", { spec: { value: "third" } });
        await untilValues(service, "third", "third");
        await space.delete(Sample, "one");
        await space.untilGone(Sample, "one");
        assert.is(service.accounts.size, 0);
        await third.quiet();
      });

  test("is found by a cleanup although it lost its labels while the operator was stopped", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    for (const account of [single(service), bulk(service)]) {
      const first = await startWith(space, [account]);
      await space.create(Sample, sample("first", 1));
      const { metadata } = await stateOf(space);
      await first.quiet();
      await first.operator.stop();
      await space.patch(ConfigMap, metadata.name, { metadata: { labels: null } });
      await space.delete(Sample, "one");
      await using _ = await startWith(space, [account]);
      await space.untilGone(Sample, "one");
      assert.is(service.accounts.size, 0);
    }
  });

  test("keeps all ids if it loses its labels while the operator runs", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, [bulk(service)]);
    await space.create(Sample, sample("first", 2));
    await untilValues(service, "first", "first");
    await running.quiet();
    const { metadata, data } = await stateOf(space);
    await space.patch(ConfigMap, metadata.name, { metadata: { labels: null } });
    const again = await stateOf(space);
    await running.quiet();
    assert.equal((await space.get(ConfigMap, metadata.name))?.data, data);
    assert.is(again.metadata.uid, metadata.uid);
  });

  test("is read once before the first creation, without further requests", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await using running = await startWith(space, [bulk(service)]);
    await running.quiet();
    running.requests.length = 0;
    await space.create(Sample, sample("first", 3));
    await untilValues(service, "first", "first", "first");
    await running.quiet();
    const requests = running.requests.filter((each) => each.includes("/configmaps"));
    assert.is(requests.filter((each) => each.startsWith("GET")).length, 1, requests.join("\n"));
    assert.ok(requests.filter((each) => each.startsWith("PATCH")).length <= 3, requests.join("\n"));
  });
});

suite("stateOf", (test) => {
  for (const [what, stateOf] of Object.entries({ "a string": ({ id }: { id: string }) => id, null: () => null }))
    test(`that returns ${what} fails the reconcile after one creation`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      await using running = await startWith(space, [single(service, { stateOf: stateOf as never })]);
      await space.create(Sample, sample());
      const { error } = (await untilOutcome(running, "account", "failed")) as { error: Error };
      assert.match(error.message, /stateOf\(\) returned (a string|null); it has to return an object with the id/);
      await running.quiet();
      assert.is(changesOf(service, "POST").length, 1);
    });
});
