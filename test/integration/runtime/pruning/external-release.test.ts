// What becomes of a primary when a resource outside Kubernetes cannot be deleted.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { RetryAfterError } from "#runtime/base/errors.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService } from "../dependents/account-service.js";
import { untilOutcome } from "../dependents/sample-dependents.js";
import {
  accountOf,
  byOwner,
  itemsOf,
  namelessOf,
  ownerOf,
  sample,
  startWith,
  untilValues,
} from "../dependents/sample-externals.js";
import { Sample } from "../sample-kind.js";
import { spacesOf } from "../space.js";
import { ConfigMap, createPage, createPageOperator, setText, startPageServer, type Page } from "../page-operator.js";

interface EventObject extends KubernetesObject {
  readonly reason?: string;
  readonly message?: string;
}
const EventKind = classOf<EventObject>(builtinDefinition("v1", "Event"));
const openSpace = spacesOf();
const release = { onDeleteFailure: "release" } as const;

suite("onDeleteFailure: release", (test) => {
  test("removes the finalizer after the last failed attempt, with an Event", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let attempts = 0;
    const remove = () => {
      attempts++;
      throw new Error("out of order");
    };
    const account = accountOf("account", service, {
      ...release,
      delete: remove,
      retry: { maxRetries: 2, initialIntervalMs: 1 },
    });
    await using running = await startWith(space, account);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(attempts, 3);
    assert.is(service.accounts.size, 1);
    const left = 'the resource of dependent "account" could not be deleted and is left: out of order';
    assert.equal(
      running.logs.filter((line) => line.startsWith("warn") && line.includes("is left")),
      [`warn ${left}`],
    );
    const isTold = async () => (await space.list(EventKind)).find(({ reason }) => reason === "DeletionFailed");
    const event = await waitFor("there is an Event", isTold);
    assert.is(event?.message, left);
  });

  test("removes the finalizer if the deletion of one bulk item fails", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const many = accountOf("many", service, {
      bulk: {},
      desired: (args) => itemsOf(args, (key) => ({ id: `${ownerOf(args.primary)}-${key}` })),
      ...release,
      source: { kind: "poll", intervalMs: 20, fetch: () => byOwner(service) },
      delete: ({ id }: { id: string }) => {
        if (id.endsWith("n1")) throw new Error("out of order");
        return service.delete(id);
      },
    });
    const keyed = {
      ...many,
      desired: (args: never) =>
        Object.fromEntries(
          Object.values((many.desired as (args: never) => { [key: string]: { id: string } })(args)).map((each) => [
            each.id,
            each,
          ]),
        ),
    };
    await using running = await startWith(space, keyed as typeof many);
    await space.create(Sample, sample("first", 3));
    await waitFor("all are there", () => service.accounts.size === 3);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(
      [...service.accounts.keys()].map((id) => id.slice(-2)),
      ["n1"],
    );
  });

  for (const isBulk of [false, true])
    test(`removes the finalizer if fetch fails, for ${isBulk ? "a bulk" : "a single"} dependent`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const account = accountOf("account", service, {
        ...release,
        ...(isBulk && { bulk: {}, desired: () => ({}) }),
        activationCondition: () => true,
        source: { kind: "perPrimaryPoll", intervalMs: 20, fetch: () => Promise.reject(new Error("out of order")) },
      });
      await using running = await startWith(space, account);
      await space.create(Sample, sample());
      await untilOutcome(running, "account", "failed");
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.ok(running.logs.some((line) => line.includes("is left: out of order")));
    });

  test("is not the default: a failed deletion blocks the primary and records an Event", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let isBroken = true;
    const remove = ({ id }: { id: string }) => {
      if (isBroken) throw new Error("out of order");
      return service.delete(id);
    };
    await using _running = await startWith(space, accountOf("account", service, { delete: remove }));
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.delete(Sample, "one");
    const note =
      'the resource of dependent "account" could not be deleted and blocks the deletion of its primary: out of order';
    await waitFor("there is an Event", async () =>
      (await space.list(EventKind)).some(({ message }) => message === note),
    );
    assert.ok(await space.get(Sample, "one"));
    isBroken = false;
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  test("waits for a RetryAfterError before it deletes again", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let attempts = 0;
    const remove = ({ id }: { id: string }) => {
      if (++attempts === 1) throw new RetryAfterError("it is busy", 1);
      return service.delete(id);
    };
    await using _ = await startWith(space, accountOf("account", service, { ...release, delete: remove }));
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
    assert.is(attempts, 2);
  });

  test("retries a failed deletePostcondition", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let failures = 0;
    const failOnce = ({ primary }: { primary: Sample }) => {
      if (primary.metadata.deletionTimestamp === undefined || failures++ > 0) return true;
      throw new Error("out of order");
    };
    await using running = await startWith(
      space,
      accountOf("account", service, { ...release, deletePostcondition: failOnce as never }),
    );
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
    assert.ok(failures > 1, "it was tried again");
    assert.equal(
      running.logs.filter((line) => line.includes("is left")),
      [],
    );
  });

  test("retries a deletion while the primary exists", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const account = accountOf("account", service, {
      ...release,
      reconcilePrecondition: ({ primary }: { primary: Sample }) => primary.spec.value !== "none",
    });
    await using running = await startWith(space, account);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    service.faults.set("DELETE", "refused");
    await space.patch(Sample, "one", { spec: { value: "none" } });
    await untilOutcome(running, "account", "failed");
    service.faults.clear();
    await waitFor("it is deleted", () => service.accounts.size === 0);
  });
});

const failures = { "it could not be forgotten": "write", "the answer to the deletion was lost": "answer" };

suite("id of a deleted external resource", (test) => {
  for (const [what, fails, isBulk] of Object.entries(failures).flatMap((each) =>
    [true, false].map((bulk) => [...each, bulk] as const),
  ))
    test(`is removed later if ${what}, for ${isBulk ? "an item" : "a single resource"}`, async () => {
      await using server = await startPageServer();
      await using service = await startAccountService();
      const isWanted = ({ primary }: { primary: Page }) => primary.spec.text === "first";
      const draft = { owner: "one", value: "first" };
      const account = namelessOf(service, {
        state: { kind: "configMap", perItem: isBulk },
        ...(isBulk
          ? {
              bulk: {},
              desired: (({ primary }: { primary: Page }) => (isWanted({ primary }) ? { n: draft } : {})) as never,
            }
          : { desired: () => draft, reconcilePrecondition: isWanted }),
      });
      // The fault is over before the next attempt.
      const retry = { initialIntervalMs: 2_000, maxRetries: -1 };
      await using page = createPageOperator(server, { dependents: [account], retry });
      await page.operator.start();
      await createPage(page);
      const labelSelector = "gen-operator.dev/external-state";
      const kept = async () => (await page.operator.client.list(ConfigMap, { labelSelector })).length;
      await waitFor("the id is kept", async () => (await kept()) === 1);
      if (fails === "write") server.faults.add({ verb: "delete", kind: "ConfigMap", answer: { status: 500 } });
      else service.faults.set("DELETE", "failedAfterwards");
      await setText(page, "second");
      await waitFor(
        "the id is not forgotten",
        () => page.events.at(-1)?.workflow?.dependents["account"]?.kind === "failed",
      );
      assert.is(service.accounts.size, 0);
      server.faults.clear();
      service.faults.clear();
      await waitFor("the id is forgotten", async () => (await kept()) === 0);
      assert.is(service.changes.filter((change) => change.startsWith("DELETE")).length, 1, "it is deleted once");
    });

  test("under a former dependent name is removed in a later reconcile", async () => {
    await using server = await startPageServer();
    await using service = await startAccountService();
    const account = namelessOf(service, {
      state: { kind: "configMap" },
      desired: () => ({ owner: "one", value: "first" }),
    });
    {
      await using page = createPageOperator(server, { dependents: [account as never] });
      await page.operator.start();
      await createPage(page);
      await waitFor("the account is made", () => page.events.at(-1)?.workflow?.isReady === true);
    }
    server.faults.add({ verb: "delete", kind: "ConfigMap", answer: { status: 500 }, times: 1 });
    const user = { ...account, name: "user", movedFrom: [account.name] };
    await using page = createPageOperator(server, { dependents: [user as never] });
    await page.operator.start();
    await waitFor("all is ready", () => page.events.at(-1)?.workflow?.isReady === true);
    const labelSelector = "gen-operator.dev/external-state";
    const states = await page.operator.client.list(ConfigMap, { labelSelector });
    assert.is(states.length, 1, states.map(({ metadata }) => metadata.name).join());
  });
});
