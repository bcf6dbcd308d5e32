// Deletion depends on nothing that may be gone: foreground deletion, deletion of the namespace and people delete objects that a cleanup reads.
import { waitFor } from "#apiserver/wait-for.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { keepFinalizer } from "#runtime/reconcile/reconciler.js";
import { fieldEquals } from "#runtime/workflow/conditions.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService, type Account } from "./account-service.js";
import { COLLECTING, configOf, outcomeOf, dependentController } from "./sample-dependents.js";
import { accountOf, itemsOf, untilValues } from "./sample-externals.js";
import { clusterSampleCrd, ConfigMap, Sample, sampleCrd, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";
import { Page, pageCrd } from "../page.js";
import {
  accountWith,
  eventsIn,
  HOLD,
  loginOf,
  Namespace,
  refOf,
  refuseDeletions,
  remove,
  sample,
  startWith,
  TOKEN,
  user,
  type Arguments,
  type Known,
} from "./logins.js";

const openSpace = spacesOf({ simulate: true, crds: [sampleCrd, clusterSampleCrd, pageCrd] });

suite("delete of an external dependent", (test) => {
  test(
    "receives a Secret that foreground deletion of the primary has already deleted",
    async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      await using _ = await startWith(space, [loginOf(), accountWith(service)]);
      await space.create(Sample, sample());
      await untilValues(service, "first");
      const fault = refuseDeletions(service);
      await remove(space, "Foreground");
      await space.untilGone(Secret, "one-login", COLLECTING);
      fault.heal();
      await space.untilGone(Sample, "one", COLLECTING);
      assert.is(service.accounts.size, 0);
    },
    COLLECTING,
  );

  test(
    "receives a Secret that was deleted with its namespace",
    async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      await using _ = await startWith(space, [loginOf(), accountWith(service)]);
      await space.create(Sample, sample());
      await untilValues(service, "first");
      const fault = refuseDeletions(service);
      await space.client.delete(Namespace, { name: space.namespace });
      await space.untilGone(Secret, "one-login", COLLECTING);
      fault.heal();
      await waitFor(
        "the namespace is gone",
        async () => (await space.client.get(Namespace, { name: space.namespace })) === undefined,
        { timeoutMs: 45_000 },
      );
      assert.is(service.accounts.size, 0);
    },
    COLLECTING,
  );

  test("receives a referenced Secret that was deleted before the primary", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await space.create(Secret, user());
    await using running = await startWith(space, [refOf(), accountWith(service)]);
    await space.create(Sample, sample({ other: "settings" }));
    await untilValues(service, "first");
    await space.delete(Secret, "settings");
    await waitFor("it is waited for", () => outcomeOf(running, "login")?.kind === "waiting");
    await running.quiet();
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  test("receives the recreated Secret instead of the deleted one", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await space.create(Secret, user("settings", { token: "b2xk" }));
    await using running = await startWith(space, [refOf(), accountWith(service)]);
    await space.create(Sample, sample({ other: "settings" }));
    await untilValues(service, "first");
    await space.delete(Secret, "settings");
    await waitFor("it is waited for", () => outcomeOf(running, "login")?.kind === "waiting");
    await space.create(Secret, user());
    await waitFor("it is there again", () => outcomeOf(running, "login")?.kind === "unchanged");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  test("runs after a fetch that also receives the deleted Secret", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await space.create(Secret, user());
    const login = refOf();
    const fetch = async (_: Sample, { secondary }: Arguments) => {
      if (secondary["login"]!.data!["token"] !== TOKEN) throw new Error("the token is wrong");
      return service.list(`${space.namespace}/one`);
    };
    const account = accountWith(service, {
      source: { kind: "perPrimaryPoll", intervalMs: 20, fetch: fetch as never },
    } as never);
    await using running = await startWith(space, [login, account]);
    await space.create(Sample, sample({ other: "settings" }));
    await untilValues(service, "first");
    await space.delete(Secret, "settings");
    await waitFor("it is waited for", () => outcomeOf(running, "login")?.kind === "waiting");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  test("receives the deleted items of a bulk dependent", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const logins = loginOf({
      bulk: {},
      deletion: "garbageCollected",
      desired: (({ primary }: { primary: Sample }) =>
        Object.fromEntries(
          ["a", "b"].map((key) => [
            key,
            { metadata: { name: `${primary.metadata.name}-${key}` }, data: { token: TOKEN } },
          ]),
        )) as never,
    });
    const account = accountWith(service, {
      bulk: {},
      desired: ((args: never) => itemsOf(args, (id) => ({ id }))) as never,
      source: {
        kind: "poll",
        intervalMs: 20,
        fetch: async () => new Map([[`${space.namespace}/one`, await service.list()]]),
      },
      delete: (({ id }: Account, { secondary }: { secondary: { login: Known } }) => {
        const [a, b] = [secondary.login["a"]!, secondary.login["b"]!];
        if (a.data!["token"] !== TOKEN || b.data!["token"] !== TOKEN) throw new Error("the token is wrong");
        return service.delete(id);
      }) as never,
    } as never);
    await using _ = await startWith(space, [logins, account]);
    await space.create(Sample, sample({ number: 2 }));
    await untilValues(service, "first", "first");
    const fault = refuseDeletions(service);
    await remove(space, "Background");
    await space.delete(Secret, "one-a");
    await space.delete(Secret, "one-b");
    await space.untilGone(Secret, "one-b");
    fault.heal();
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });

  for (const serverSideApply of [true, false])
    test(`receives an ordered dependent that another client deleted during cleanup, ${serverSideApply ? "applied" : "written by PUT"}`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      await using running = await startWith(space, [
        loginOf({ deletion: "ordered", serverSideApply }),
        accountWith(service),
      ]);
      await space.create(Sample, sample());
      await untilValues(service, "first");
      const fault = refuseDeletions(service);
      await remove(space, "Background");
      await waitFor("the cleanup fails", () => running.events.some(({ kind, error }) => kind === "cleanup" && error));
      await space.delete(Secret, "one-login");
      fault.heal();
      await space.untilGone(Sample, "one");
      assert.is(service.accounts.size, 0);
    });

  test("receives deleted objects of a read-only dependent", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const secrets = informerSource({
      resource: Secret,
      name: "secrets",
      mapper: ({ metadata }: DataObject) => {
        const owner = metadata.annotations?.["example.com/owner"];
        return owner === undefined ? [] : [`${metadata.namespace}/${owner}` as never];
      },
    });
    const login = refOf({ ref: undefined, eventSource: "secrets" } as never);
    await using running = await startWith(space, [login, accountWith(service)], {
      eventSources: () => [secrets as never],
    });
    const { metadata, ...rest } = user();
    await space.create(Secret, { metadata: { ...metadata, annotations: { "example.com/owner": "one" } }, ...rest });
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.delete(Secret, "settings");
    await waitFor("it is waited for", () => outcomeOf(running, "login")?.kind === "waiting");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });
});

suite("cleanup", (test) => {
  test("receives deleted secondaries, while conditions and context.secondary() return live state", async () => {
    await using space = await openSpace();
    await space.create(Secret, user());
    const seen: unknown[] = [];
    const child = configOf("child", {
      deletion: "ordered",
      dependsOn: ["login"],
      deletePostcondition: (({ secondary, live }: Arguments & { live: unknown }) => {
        seen.push(secondary["login"] === undefined ? "none" : "there");
        return live === undefined;
      }) as never,
    });
    const cleanup = ({ secondary, context }: Arguments & { context: { secondary(kind: object): unknown } }) => {
      seen.push(secondary["login"]?.data?.["token"], context.secondary(Secret));
    };
    const controller = dependentController([refOf(), child], {
      reconciler: { reconcile: () => {}, cleanup: cleanup as never },
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample({ other: "settings" }));
    await space.until(ConfigMap, "one-child", () => true);
    await space.delete(Secret, "settings");
    await waitFor("it is waited for", () => outcomeOf(running, "login")?.kind === "waiting");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.equal(seen, ["none", TOKEN, undefined]);
  });

  test("does not receive an object that the operator itself deleted", async () => {
    await using space = await openSpace();
    const seen: unknown[] = [];
    const cleanup = ({ secondary }: Arguments) => {
      seen.push(secondary["a"]);
      return secondary["a"] === undefined ? undefined : keepFinalizer();
    };
    const a = configOf("a", { deletion: "ordered" });
    const controller = dependentController([a], { reconciler: { reconcile: () => {}, cleanup: cleanup as never } });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.equal(seen, [undefined]);
  });
});

suite("activationCondition", (test) => {
  const cacheWith = (activationCondition: (args: Arguments & { primary: Sample }) => boolean, rest = {}) =>
    configOf("cache", { deletion: "ordered", activationCondition: activationCondition as never, ...rest });

  for (const dependsOn of [[], ["login"]])
    test(`does not block deletion if the object it reads is deleted${dependsOn.length > 0 ? ", also with dependsOn" : ""}`, async () => {
      await using space = await openSpace();
      await space.create(Secret, user());
      const cache = cacheWith(({ secondary }) => secondary["login"]!.data!["token"] === TOKEN, { dependsOn });
      await using running = await startWith(space, [refOf(), cache]);
      await space.create(Sample, sample({ other: "settings" }));
      await space.until(ConfigMap, "one-cache", () => true);
      await space.delete(Secret, "settings");
      await waitFor("it is gone for the operator", () => outcomeOf(running, "login")?.kind === "waiting");
      await remove(space, "Background");
      await space.untilGone(Sample, "one");
      assert.is(await space.get(ConfigMap, "one-cache"), undefined);
    });

  for (const isRestarted of [false, true])
    test(`deletes an ordered dependent although it has become false${isRestarted ? " before a restart" : ""}`, async () => {
      await using space = await openSpace();
      const cache = cacheWith(({ primary }) => primary.spec.value === "first");
      const first = await startWith(space, [cache]);
      await space.create(Sample, sample());
      await space.until(ConfigMap, "one-cache", () => true);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await waitFor("it is inactive", () => outcomeOf(first, "cache")?.kind === "inactive");
      if (isRestarted) await first.operator.stop();
      await using _ = isRestarted ? await startWith(space, [cache]) : first;
      await remove(space, "Background");
      await space.untilGone(Sample, "one");
      assert.is(await space.get(ConfigMap, "one-cache"), undefined);
    });

  test("deletes items and external resources although it has become false", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const isFirst = (({ primary }: { primary: Sample }) => primary.spec.value === "first") as never;
    const items = configOf("items", {
      bulk: {},
      deletion: "ordered",
      activationCondition: isFirst,
      desired: ({ primary }) => ({ a: { metadata: { name: `${primary.metadata.name}-a` } } }),
    });
    await using running = await startWith(space, [
      items,
      accountOf("account", service, { activationCondition: isFirst }),
    ]);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await space.until(ConfigMap, "one-a", () => true);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it is inactive", () => outcomeOf(running, "account")?.kind === "inactive");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
    assert.is(service.accounts.size, 0);
  });

  test("is not evaluated during cleanup after a restart, so that a dependency is passed to delete()", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const login = loginOf({
      activationCondition: (({ primary }: { primary: Sample }) => primary.spec.value === "first") as never,
    });
    const dependents = [login, accountWith(service)];
    const first = await startWith(space, dependents);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await first.operator.stop();
    await remove(space, "Background");
    await using _ = await startWith(space, dependents);
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });
});

suite("deletePostcondition", (test) => {
  const childWith = (deletePostcondition: (args: Arguments & { live: unknown }) => boolean, rest = {}) =>
    configOf("child", {
      deletion: "ordered",
      dependsOn: ["login"],
      deletePostcondition: deletePostcondition as never,
      ...rest,
    });
  const CONDITIONS = {
    "throws because": ({ secondary }: Arguments) => secondary["login"]!.data!["done"] === "true",
    "is false because": ({ secondary }: Arguments) => secondary["login"]?.data?.["done"] === "true",
  };
  for (const [what, condition] of Object.entries(CONDITIONS))
    for (const isBulk of [false, true])
      test(`that ${what} an object it reads was deleted does not block deletion${isBulk ? " of items" : ""}`, async () => {
        await using space = await openSpace();
        await space.create(Secret, user());
        const items = { bulk: {}, desired: () => ({ a: { metadata: { name: "one-child" } } }) };
        await using running = await startWith(space, [refOf(), childWith(condition, isBulk ? items : {})]);
        await space.create(Sample, sample({ other: "settings" }));
        await space.until(ConfigMap, "one-child", () => true);
        await space.delete(Secret, "settings");
        await waitFor("it is gone for the operator", () => outcomeOf(running, "login")?.kind === "waiting");
        await running.quiet();
        const before = running.events.length;
        await remove(space, "Background");
        await space.untilGone(Sample, "one");
        assert.is(await space.get(ConfigMap, "one-child"), undefined);
        assert.equal(
          running.events.slice(before).filter(({ error }) => error !== undefined),
          [],
        );
      });

  test("whose input was deleted is met only after its own object is deleted", async () => {
    await using space = await openSpace();
    await space.create(Secret, user());
    const base = configOf("base", { deletion: "ordered" });
    const child = childWith(CONDITIONS["throws because"], {
      dependsOn: ["login", "base"],
      desired: () => ({ metadata: { name: "one-child", finalizers: [HOLD] } }),
    });
    await using running = await startWith(space, [refOf(), base, child]);
    await space.create(Sample, sample({ other: "settings" }));
    await space.until(ConfigMap, "one-child", () => true);
    await space.delete(Secret, "settings");
    await waitFor("it is gone for the operator", () => outcomeOf(running, "login")?.kind === "waiting");
    await remove(space, "Background");
    await space.until(ConfigMap, "one-child", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await running.quiet();
    assert.ok((await space.get(ConfigMap, "one-base")) !== undefined);
    await space.patch(ConfigMap, "one-child", { metadata: { finalizers: null } });
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-base"), undefined);
  });

  test("blocks deletion while it is false and its input exists", async () => {
    await using space = await openSpace();
    await space.create(Secret, user());
    await using running = await startWith(space, [refOf(), childWith(CONDITIONS["throws because"])]);
    await space.create(Sample, sample({ other: "settings" }));
    await space.until(ConfigMap, "one-child", () => true);
    await remove(space, "Background");
    await space.untilGone(ConfigMap, "one-child");
    await running.quiet();
    assert.ok((await space.get(Sample, "one")) !== undefined);
    await space.patch(Secret, "settings", { data: { done: "true" } });
    await waitFor("it is reconciled", () => outcomeOf(running, "child")?.conditions?.deletePostcondition !== undefined);
    await space.delete(Secret, "settings");
    await space.untilGone(Sample, "one");
  });

  test("blocks deletion while it throws, with a CleanupFailed Event and a Ready condition", async () => {
    await using space = await openSpace();
    let isBroken = true;
    const child = {
      ...configOf("child", {
        deletion: "ordered",
        deletePostcondition: (() => {
          if (isBroken) throw new Error("the service is down");
          return true;
        }) as never,
      }),
      desired: (() => ({ metadata: { name: "one-child" } })) as never,
    };
    const controller: ControllerDefinition = {
      name: "page",
      statusConditions: "managed",
      retry: { initialIntervalMs: 20, maxIntervalMs: 100 },
      workflow: { primary: Page.definition, dependents: [child] },
    };
    await using _ = await space.start([controller]);
    await space.create(Page, { metadata: { name: "one" }, spec: { text: "first" } });
    await space.until(ConfigMap, "one-child", () => true);
    await space.delete(Page, "one");
    const [event] = await waitFor("there is an Event", async () => {
      const all = await eventsIn(space, "CleanupFailed");
      return all.length > 0 ? all : undefined;
    });
    assert.ok(event?.includes('dependent "child": the service is down'), event);
    assert.ok(event?.includes("pages.example.com/finalizer"), event);
    const { status } = await space.until(Page, "one", ({ status }) =>
      status?.conditions?.some(({ type, status }) => type === "Ready" && status === "False"),
    );
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    assert.equal([ready?.reason, ready?.message.includes("the service is down")], ["Failed", true]);
    isBroken = false;
    await space.untilGone(Page, "one");
  });
});

suite("cleanupTimeout", (test) => {
  const never = (reason: string) => () => {
    throw new Error(reason);
  };

  test("removes the finalizer, and records an Event and a warning with the failing dependent", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const account = accountOf("account", service, { delete: never("the service is gone") });
    await using running = await startWith(space, [account], { cleanupTimeoutMs: 2_000 });
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    const [event] = await waitFor("there is an Event", async () => {
      const all = await eventsIn(space, "CleanupTimedOut");
      return all.length > 0 ? all : undefined;
    });
    assert.ok(event?.includes('dependent "account": the service is gone'), event);
    assert.is(running.logs.filter((line) => line.startsWith("warn cleanup timed out after")).length, 1);
  });

  for (const isRestarted of [false, true])
    test(`removes the finalizer of a primary whose retries are exhausted${isRestarted ? ", also after a restart" : ""}`, async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const account = accountOf("account", service, { delete: never("the service is gone") });
      const rest = { cleanupTimeoutMs: 3_000, retry: { maxRetries: 0 } };
      const first = await startWith(space, [account], rest);
      await space.create(Sample, sample());
      await untilValues(service, "first");
      await remove(space, "Background");
      await waitFor("the cleanup fails", () => first.events.some(({ kind, error }) => kind === "cleanup" && error));
      if (isRestarted) await first.operator.stop();
      await using _ = isRestarted ? await startWith(space, [account], rest) : first;
      await space.untilGone(Sample, "one");
    });

  test("removes the finalizer while a dependent is not deleted, and names it in the Event", async () => {
    await using space = await openSpace();
    const child = configOf("child", { deletion: "ordered", deletePostcondition: (() => false) as never });
    await using _ = await startWith(space, [child], { cleanupTimeoutMs: 2_000 });
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-child", () => true);
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    await waitFor("there is an Event", async () =>
      (await eventsIn(space, "CleanupTimedOut")).some((message) => message.includes("waiting for deletion of child")),
    );
  });

  test("removes the finalizer if every cleanup attempt is aborted by reconcileTimeoutMs", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    const account = accountOf("account", service, {
      delete: ((_: Account, { context: { signal } }: { context: { signal: AbortSignal } }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)))) as never,
    });
    await using _ = await startWith(space, [account], { cleanupTimeoutMs: 2_000, reconcileTimeoutMs: 500 });
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    await waitFor("there is an Event", async () =>
      (await eventsIn(space, "CleanupTimedOut")).some((message) => message.includes("took too long")),
    );
  });

  test("is disabled by default, so that a failing cleanup is retried until it succeeds", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    let isBroken = true;
    const account = accountOf("account", service, {
      delete: ({ id }: Account) => (isBroken ? never("it is down")() : service.delete(id)),
    });
    await using running = await startWith(space, [account]);
    await space.create(Sample, sample());
    await untilValues(service, "first");
    await remove(space, "Background");
    await waitFor(
      "the cleanup fails again and again",
      () => running.events.filter(({ kind, error }) => kind === "cleanup" && error).length > 4,
    );
    assert.ok(await space.get(Sample, "one"));
    isBroken = false;
    await space.untilGone(Sample, "one");
    assert.is(service.accounts.size, 0);
  });
});

suite("built-in deletePostcondition", (test) => {
  test("does not block deletion once its object is deleted", async () => {
    await using space = await openSpace();
    const child = configOf("child", {
      deletion: "ordered",
      deletePostcondition: fieldEquals("data.done", "true") as never,
    });
    await using running = await startWith(space, [child]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-child", () => true);
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    const line = running.logs.find((text) => text.includes("treated as met")) ?? "";
    assert.match(line, /is false, and it reads nothing else: treated as met, because its object is deleted$/);
  });
});
