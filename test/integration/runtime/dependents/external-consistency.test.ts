// Absence must be confirmed, and what belongs to a primary goes with it: an operator over a service whose lists are late.
import { waitFor } from "#apiserver/wait-for.js";
import { systemClock } from "#runtime/base/wait.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import {
  EventualService,
  type EventualDraft,
  type EventualResource,
} from "../../../support/runtime/eventual-service.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService } from "./account-service.js";
import { dependentController, outcomeOf, untilOutcome } from "./sample-dependents.js";
import { accountOf, ownerOf, sample, startWith, untilValues } from "./sample-externals.js";
import { Sample } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

const openSpace = spacesOf();

interface Arguments {
  readonly primary: Sample;
  readonly token: string;
}

/** A dependent over a service that gives the ids and lists by owner. */
function rowOf(service: EventualService, rest: Partial<ExternalDependent> = {}): ExternalDependent {
  return {
    ...{ name: "row", dependsOn: [] },
    source: { kind: "perPrimaryPoll", intervalMs: 50, fetch: (primary: Sample) => service.list(ownerOf(primary)) },
    idOf: ({ id = "" }: EventualResource) => id,
    desired: ({ primary }: Arguments) => ({ owner: ownerOf(primary), item: "", value: primary.spec.value ?? "none" }),
    create: (draft: EventualDraft, { token }: Arguments) => service.create(draft, token),
    update: (draft: EventualDraft, { id }: EventualResource) => service.update(id, draft),
    delete: ({ id }: EventualResource) => service.delete(id),
    matches: (draft: EventualDraft, { value }: EventualResource) => draft.value === value,
    ...rest,
  } as ExternalDependent;
}

suite("external dependent with delayed lists", (test) => {
  for (const kind of ["perPrimaryPoll", "poll"] as const)
    test(`creates and updates its resource once, and deletes it although no list contains it: ${kind}`, async () => {
      await using space = await openSpace();
      const service = new EventualService({ clock: systemClock, lagMs: 1_500 });
      const all = () => {
        const owners = new Map<string, EventualResource[]>();
        for (const each of service.list()) owners.set(each.owner, [...(owners.get(each.owner) ?? []), each]);
        return owners;
      };
      const source = { kind, intervalMs: 50, fetch: all };
      await using running = await startWith(space, rowOf(service, kind === "poll" ? { source: source as never } : {}));
      await space.create(Sample, sample());
      await waitFor("it is created", () => service.counts.creates > 0);
      await new Promise((resolve) => systemClock.schedule(500, () => resolve(undefined)));
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await waitFor("it is updated", () => service.counts.updates > 0);
      await waitFor("a list shows it", () => service.list()[0]?.value === "second");
      await running.quiet();
      assert.equal(service.counts, { creates: 1, updates: 1, deletes: 0 });
      service.lagMs = 60_000;
      await space.create(Sample, { ...sample(), metadata: { name: "two" } });
      await waitFor("the other is created", () => service.counts.creates > 1);
      for (const name of ["one", "two"]) {
        await space.delete(Sample, name);
        await space.untilGone(Sample, name);
      }
      assert.equal([service.resources.size, service.counts.creates], [0, 2]);
    });

  test("logs and counts its creation, update and deletion", async () => {
    await using space = await openSpace();
    const service = new EventualService({ clock: systemClock });
    const running = await space.start([dependentController([rowOf(service)])], { metricsBindAddress: "127.0.0.1:0" });
    await space.create(Sample, sample());
    await waitFor("it is created", () => service.counts.creates > 0);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it is updated", () => service.counts.updates > 0);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    const lines = running.logs.filter((line) => line.includes("external dependent"));
    const verbs = ["created", "updated", "deleted"];
    assert.equal(
      lines,
      verbs.map((verb) => `info ${verb} the resource "id-1" of external dependent "row"`),
    );
    const address = running.logs.flatMap(
      (each) => /^info serves the metrics.* at (127\.0\.0\.1:\d+)$/.exec(each)?.[1] ?? [],
    );
    const metrics = await (await fetch(`http://${address[0]}/metrics`)).text();
    for (const verb of verbs) {
      const series = `gen_operator_external_writes_total{controller="sample",dependent="row",verb="${verb}"} 1`;
      assert.ok(metrics.includes(series), series);
    }
  });

  test("postpones writes and warns if its resource disappears after each creation", async () => {
    await using space = await openSpace();
    const service = new EventualService({ clock: systemClock });
    service.onCreated = ({ id }) => void systemClock.schedule(120, () => service.delete(id));
    await using running = await startWith(space, rowOf(service));
    await space.create(Sample, sample());
    const line = await waitFor("there is a warning", () => running.logs.find((each) => each.startsWith("warn Ext")));
    assert.match(line, /^warn ExternalResource row was written 3 times although the desired object did not change/);
    await waitFor("a write is postponed", () => running.operator.controller("sample").postponed.length > 0);
    assert.match(running.operator.controller("sample").postponed[0]?.kind ?? "", "ExternalResource");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
  });

  test("waits for creationGraceMs after a restart before it creates, and gives the reason", async () => {
    await using space = await openSpace();
    const service = new EventualService({ clock: systemClock, lagMs: 3_600_000 });
    const row = rowOf(service, { creationGraceMs: 5_000 });
    const first = await startWith(space, row);
    const { metadata } = await space.create(Sample, sample());
    await waitFor("it is created", () => service.counts.creates > 0);
    await first.operator.stop();
    await using second = await startWith(space, row);
    const outcome = await untilOutcome(second, "row", "waiting");
    assert.match(String((outcome as { because?: string }).because), /resources created earlier may not be listed yet/);
    service.lagMs = 0;
    await waitFor("it is found", () => outcomeOf(second, "row")?.kind === "unchanged");
    assert.is(service.counts.creates, 1);
    assert.is(service.list(keyOf(metadata)).length, 1);
  });
});

suite("primary taken over from another process", (test) => {
  const arrivals: { readonly [way: string]: (space: Space, running: TestOperator) => Promise<unknown> } = {
    "after it is selected by its labels": (space) =>
      space.patch(Sample, "one", { metadata: { labels: { shard: "b" } } }),
    "after its namespace is added": (space, { operator }) =>
      operator.controller("sample").setNamespaces([space.namespace]),
  };
  for (const [way, arrive] of Object.entries(arrivals))
    test(`waits for creationGraceMs before it creates a resource that is not listed yet, ${way}`, async () => {
      await using space = await openSpace();
      await using other = await openSpace();
      const service = new EventualService({ clock: systemClock, lagMs: 3_600_000 });
      const row = rowOf(service, { creationGraceMs: 3_000 });
      const settings = way.includes("selected") ? { labelSelector: "shard=b" } : { namespaces: [other.namespace] };
      await using running = await space.start([dependentController([row], settings)]);
      {
        await using before = await space.start([dependentController([row], { labelSelector: "shard=a" })]);
        await space.create(Sample, { ...sample(), metadata: { name: "one", labels: { shard: "a" } } });
        await waitFor("it is created", () => service.counts.creates > 0);
        await before.quiet();
      }
      // The grace begins when the primary is met, not at the start.
      await new Promise((resolve) => systemClock.schedule(3_500, () => resolve(undefined)));
      await arrive(space, running);
      const outcome = await untilOutcome(running, "row", "waiting");
      assert.match(
        String((outcome as { because?: string }).because),
        /resources created earlier may not be listed yet/,
      );
      service.lagMs = 0;
      await waitFor("it is found", () => outcomeOf(running, "row")?.kind === "unchanged");
      assert.is(service.counts.creates, 1);
    });

  test("is created without waiting if no other process may have created its resource", async () => {
    await using space = await openSpace();
    const service = new EventualService({ clock: systemClock });
    await using running = await startWith(space, rowOf(service, { creationGraceMs: 60_000 }));
    await space.create(Sample, sample());
    await waitFor("it is created", () => service.counts.creates > 0);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await space.create(Sample, sample());
    await waitFor("it is created again", () => service.counts.creates > 1);
  });
});

suite("several resources of one external dependent", (test) => {
  for (const hasState of [false, true])
    test(`fail the reconcile with their ids, and are all deleted on cleanup${hasState ? ", with state" : ""}`, async () => {
      await using space = await openSpace();
      const service = new EventualService({ clock: systemClock });
      const row = rowOf(service, { creationGraceMs: 0, ...(hasState && { state: { kind: "configMap" } }) });
      await using running = await startWith(space, row);
      const { metadata } = await space.create(Sample, sample());
      await waitFor("it is created", () => service.counts.creates > 0);
      service.create({ owner: keyOf(metadata), item: "other", value: "theirs" });
      const { error } = (await untilOutcome(running, "row", "failed")) as { error: Error };
      assert.match(error.message, /expected one resource, found 2 \("id-1", "id-2"\)/);
      assert.match(error.message, /delete those that it does not need, or make the dependent a bulk dependent/);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.is(service.resources.size, 0);
    });

  test("are all deleted if the reconcilePrecondition becomes false", async () => {
    await using space = await openSpace();
    const service = new EventualService({ clock: systemClock });
    const reconcilePrecondition = ({ primary }: Arguments) => primary.spec.value !== "none";
    await using running = await startWith(
      space,
      rowOf(service, { creationGraceMs: 0, reconcilePrecondition: reconcilePrecondition as never }),
    );
    const { metadata } = await space.create(Sample, sample());
    await waitFor("it is created", () => service.counts.creates > 0);
    service.create({ owner: keyOf(metadata), item: "other", value: "theirs" });
    await untilOutcome(running, "row", "failed");
    await space.patch(Sample, "one", { spec: { value: "none" } });
    await waitFor("both are gone", () => service.resources.size === 0);
  });

  test("are deleted although the deletion of another one fails", async () => {
    await using space = await openSpace();
    const service = new EventualService({ clock: systemClock });
    let isBroken = true;
    const remove = ({ id }: EventualResource) => {
      if (isBroken && id === "id-1") throw new Error("out of order");
      service.delete(id);
    };
    await using _ = await startWith(space, rowOf(service, { creationGraceMs: 0, delete: remove as never }));
    const { metadata } = await space.create(Sample, sample());
    await waitFor("it is created", () => service.counts.creates > 0);
    service.create({ owner: keyOf(metadata), item: "other", value: "theirs" });
    await space.delete(Sample, "one");
    await waitFor("the other is gone", () => service.resources.size === 1);
    isBroken = false;
    await space.untilGone(Sample, "one");
    assert.is(service.resources.size, 0);
  });

  test("fail the reconcile after a change of the id, and are all deleted with the primary", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const account = accountOf("account", service, {
      desired: ({ primary }) => ({
        id: `${primary.spec.other ?? "first"}.example.com`,
        owner: ownerOf(primary),
        value: primary.spec.value ?? "none",
      }),
      source: { kind: "perPrimaryPoll", intervalMs: 20, fetch: (primary: Sample) => service.list(ownerOf(primary)) },
    });
    await using running = await startWith(space, account);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.patch(Sample, "one", { spec: { other: "second" } });
    const { error } = (await untilOutcome(running, "account", "failed")) as { error: Error };
    assert.match(error.message, /expected one resource, found 2 \("second\.example\.com", "first\.example\.com"\)/);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });
});
