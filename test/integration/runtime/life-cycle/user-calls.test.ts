// Each function of the user is marked while its synchronous part runs, so that one that blocks the event loop is named.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { userCalls } from "#runtime/base/user-calls.js";
import { perPrimaryPollingSource } from "#runtime/sources/polling-sources.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService, type Account } from "../dependents/account-service.js";
import { configOf, dependentController } from "../dependents/sample-dependents.js";
import { accountOf, ownerOf } from "../dependents/sample-externals.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { isOfTests, spacesOf } from "../space.js";

const openSpace = spacesOf();

/** The text that a stall names for each function; the primary, or the object, and the controller are in it where they are known. */
const MARKS: { readonly [called: string]: RegExp } = {
  "the reconciler": /^the reconciler \(primary ".*\/one", controller "sample"\)/,
  "cleanup of the reconciler": /^the cleanup.* \(primary ".*\/one", controller "sample"\)/,
  "desired of a dependent": /^desired\(\) of dependent "config" \(primary ".*\/one", controller "sample"\)/,
  "a condition of a dependent": /^.*readyPostcondition.*"config".* \(primary ".*\/one", controller "sample"\)/i,
  "matcher of a dependent": /^the matcher of dependent "config" \(primary ".*\/one"\)/,
  "existing of a dependent": /^existing of dependent "config" \(primary ".*\/one"\)/,
  "desired of an external dependent": /^desired\(\) of dependent "account" \(primary ".*\/one", controller "sample"\)/,
  "fetch of an external dependent": /"account"/,
  "idOf of an external dependent": /^idOf of (dependent "account"$|event source "account" \(controller "sample"\))/,
  "stateOf of an external dependent": /^stateOf of dependent "account"$/,
  "isOwn of an external dependent": /^isOwn of dependent "account" \(primary ".*\/one"\)/,
  "matches of an external dependent": /^matches of dependent "account" \(primary ".*\/one"\)/,
  "create of an external dependent": /^create\(\) of dependent "account" \(primary ".*\/one"\)/,
  "update of an external dependent": /^update\(\) of dependent "account" \(primary ".*\/one"\)/,
  "delete of an external dependent": /^delete\(\) of dependent "account" \(primary ".*\/one"\)/,
  "mapper of an event source": /^the mapper of event source "maps" \(object ".*", controller "sample"\)/,
  "index of an event source": /^an index function \(object ".*"\)/,
  "filter of an event source": /of event source "maps" \(.*controller "sample"\)/,
  "idOf of an event source": /^idOf of event source "visits" \(controller "sample"\)/,
  "intervalOf of an event source": /^intervalOf of event source "visits" \(controller "sample"\)/,
  "fetch of an event source": /"visits"/,
  "filter of the controller": /^a filter of the controller \(primary ".*\/one", controller "sample"\)/,
  "index of the controller": /^an index function \(object ".*\/one"\)/,
  "next of a retry": /^the retry of the controller \(controller "sample"\)/,
  "isLastAttempt of a retry": /^the retry of the controller \(controller "sample"\)/,
  "creation of a rate limiter": /^the rate limiter of the controller \(controller "sample"\)/,
  "take of a rate limiter": /^the rate limiter of the controller \(controller "sample"\)/,
};

/** Takes note of what is marked when functions are called. */
function createRecorder() {
  const marks = new Map<string, Set<string>>();
  let current = "";
  userCalls.markWith((text) => void (current = text));
  return {
    marks,
    /** Returns a function that does the same, and takes note of what is marked when it is called. */
    noting: <Called extends (...args: never[]) => unknown>(called: string, call: Called): Called =>
      ((...args: never[]) => {
        marks.set(called, (marks.get(called) ?? new Set()).add(current));
        return call(...args);
      }) as Called,
    [Symbol.dispose]: () => userCalls.markWith(undefined),
  };
}

suite("user functions", (test) => {
  test("are recorded with their primary and controller while their synchronous part runs", async () => {
    await using service = await startAccountService();
    await using space = await openSpace();
    using recorder = createRecorder();
    const { marks, noting } = recorder;
    const usual = accountOf("account", service);
    const source = usual.source as { readonly fetch: (...args: never[]) => unknown };
    const account = accountOf("account", service, {
      desired: noting("desired of an external dependent", usual.desired!) as never,
      source: { ...source, fetch: noting("fetch of an external dependent", source.fetch) } as never,
      state: { kind: "configMap" },
      idOf: noting("idOf of an external dependent", ({ id }: Account) => id) as never,
      stateOf: noting("stateOf of an external dependent", ({ id }: Account) => ({ id })) as never,
      isOwn: noting(
        "isOwn of an external dependent",
        ({ owner }: Account, primary: Sample) => owner === ownerOf(primary),
      ) as never,
      matches: noting(
        "matches of an external dependent",
        (wanted: Account, live: Account) => wanted.value === live.value,
      ) as never,
      create: noting("create of an external dependent", (wanted: Account) => service.create(wanted)) as never,
      update: noting("update of an external dependent", (wanted: Account) => service.update(wanted)) as never,
      delete: noting("delete of an external dependent", ({ id }: Account) => service.delete(id)) as never,
    });
    const config = configOf("config", {
      desired: noting("desired of a dependent", ({ primary }: { primary: Sample }) => ({
        metadata: { name: "config" },
        data: { value: primary.spec.value ?? "" },
      })) as never,
      existing: noting("existing of a dependent", () => true) as never,
      matcher: noting(
        "matcher of a dependent",
        (wanted: { data: { value: string } }, live: { data: { value: string } }) =>
          wanted.data.value === live.data?.value,
      ) as never,
      readyPostcondition: noting("a condition of a dependent", () => true) as never,
    });
    const visits = perPrimaryPollingSource<{ readonly id: string }>({
      name: "visits",
      idOf: noting("idOf of an event source", ({ id }: { readonly id: string }) => id),
      intervalMs: 20,
      intervalOf: noting("intervalOf of an event source", () => 20),
      fetch: noting("fetch of an event source", () => [{ id: "first" }]),
    });
    const maps = informerSource({
      name: "maps",
      resource: ConfigMap,
      filters: { onAdd: noting("filter of an event source", () => true) },
      indexes: { all: noting("index of an event source", () => ["all"]) },
      mapper: noting("mapper of an event source", ({ metadata }: KubernetesObject) =>
        isOfTests({ metadata }) ? [`${metadata.namespace}/one`] : [],
      ) as never,
    });
    const controller = dependentController([config, account], {
      eventSources: () => [visits, maps],
      indexes: { all: noting("index of the controller", () => ["all"]) },
      filters: { onAdd: noting("filter of the controller", () => true) } as never,
      rateLimit: noting("creation of a rate limiter", () => ({ take: noting("take of a rate limiter", () => 0) })),
      retry: {
        next: noting("next of a retry", () => ({ attempt: 1, intervalMs: 10 })),
        isLastAttempt: noting("isLastAttempt of a retry", () => false),
      },
      reconciler: {
        reconcile: noting("the reconciler", ({ context }: { context: { retry: { isLastAttempt: boolean } } }) => {
          // An event during a reconcile that fails takes the place of its retry.
          if (marks.has("next of a retry") || context.retry.isLastAttempt) return;
          throw new Error("until it is retried");
        }) as never,
        cleanup: noting("cleanup of the reconciler", () => {}) as never,
      },
    });
    await space.create(ConfigMap, { metadata: { name: "config" }, data: { value: "" } });
    await using _ = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await waitFor("the account is made", () => [...service.accounts.values()].some(({ value }) => value === "first"));
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("the account is changed", () =>
      [...service.accounts.values()].some(({ value }) => value === "second"),
    );
    const untilCleanup = Object.keys(MARKS).filter((each) => !/^(cleanup|delete) /.test(each));
    await waitFor("all are called", () => untilCleanup.every((each) => marks.has(each))).catch(() => {});
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    const wrong = Object.entries(MARKS).flatMap(([called, mark]) => {
      const found = marks.get(called) ?? new Set(["it is not called"]);
      return [...found].filter((text) => !mark.test(text)).map((text) => `${called}: "${text}"`);
    });
    assert.equal(wrong, []);
  });
});
