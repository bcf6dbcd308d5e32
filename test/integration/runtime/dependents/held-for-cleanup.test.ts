// heldForCleanup: a finalizer keeps an object until the cleanup of its primary, which needs it, has ended; across restarts of the operator.
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService } from "./account-service.js";
import { COLLECTING, writesOf } from "./sample-dependents.js";
import { accountOf, untilValues } from "./sample-externals.js";
import { Sample, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  startPageServer,
  untilText,
} from "../page-operator.js";
import { accountWith, loginOf, Namespace, refOf, remove, sample, startWith, TOKEN, user } from "./logins.js";

const openSpace = spacesOf({ simulate: true });
const held = { heldForCleanup: true };
const holdsOf = (object: DataObject | undefined) =>
  object?.metadata.finalizers?.filter((name) => name.startsWith("gen-operator.dev/held-")) ?? [];
const untilHeld = (space: Space, name: string, count = 1) =>
  space.until(Secret, name, (object) => holdsOf(object).length === count);
const fails = () => {
  throw new Error("the service is gone");
};
const isTerminating = ({ metadata }: DataObject) => metadata.deletionTimestamp !== undefined;

/** How the Secret of the primary is written, and its name. */
const KINDS: { readonly [what: string]: readonly [name: string, login: (rest?: object) => KubernetesDependent] } = {
  applied: ["one-login", (rest) => loginOf(rest)],
  put: ["one-login", (rest) => loginOf({ serverSideApply: false, ...rest })],
  "only created": ["one-login", (rest) => loginOf({ mode: "createOnly", ...rest })],
  ordered: ["one-login", (rest) => loginOf({ deletion: "ordered", ...rest })],
  "of a user": ["settings", (rest) => refOf(rest)],
  "an item": [
    "one-login",
    (rest) =>
      loginOf({
        bulk: {},
        desired: (() => ({ a: { metadata: { name: "one-login" }, data: { token: TOKEN } } })) as never,
        ...rest,
      }),
  ],
};

suite("heldForCleanup", (test) => {
  for (const [what, [name, login]] of Object.entries(KINDS)) {
    const isItem = what === "an item";
    const accountFor = (service: Parameters<typeof accountWith>[0]) =>
      isItem
        ? accountOf("account", service, {
            dependsOn: ["login"],
            delete: (({ id }: { id: string }, { secondary }: { secondary: { login: { a: DataObject } } }) => {
              if (secondary.login.a.data!["token"] !== TOKEN) throw new Error("the token is wrong");
              return service.delete(id);
            }) as never,
          } as never)
        : accountWith(service);

    test(
      `keeps a Secret (${what}) across a restart during foreground deletion, and releases it afterwards`,
      async () => {
        await using space = await openSpace();
        await using service = await startAccountService();
        await space.create(Secret, user());
        const first = await startWith(space, [login(held), accountFor(service)]);
        await space.create(Sample, sample({ other: "settings" }));
        await untilValues(service, "first");
        await untilHeld(space, name);
        await first.operator.stop();
        await remove(space, "Foreground");
        if (what === "of a user") await space.delete(Secret, name);
        if (what !== "ordered") await space.until(Secret, name, isTerminating);
        await using _ = await startWith(space, [login(held), accountFor(service)]);
        await space.untilGone(Sample, "one", COLLECTING);
        await space.untilGone(Secret, name, COLLECTING);
        assert.is(service.accounts.size, 0);
      },
      COLLECTING,
    );

    test(
      `releases a Secret (${what}) when its primary is cleaned up`,
      async () => {
        await using space = await openSpace();
        await using service = await startAccountService();
        await space.create(Secret, user());
        await using _ = await startWith(space, [login(held), accountFor(service)]);
        await space.create(Sample, sample({ other: "settings" }));
        await untilValues(service, "first");
        await untilHeld(space, name);
        await remove(space, "Background");
        await space.untilGone(Sample, "one");
        if (what === "of a user") assert.equal((await space.get(Secret, name))?.metadata.finalizers ?? [], []);
        else await space.untilGone(Secret, name, COLLECTING);
      },
      COLLECTING,
    );

    test(`does not delay the deletion of a Secret (${what}) while its primary exists`, async () => {
      await using space = await openSpace();
      await space.create(Secret, user());
      await using running = await startWith(space, [login(held)]);
      await space.create(Sample, sample({ other: "settings" }));
      const { metadata } = await untilHeld(space, name);
      await running.quiet();
      await space.delete(Secret, name);
      await waitFor("it is gone", async () => (await space.get(Secret, name))?.metadata.uid !== metadata.uid);
      // What the operator writes comes again, and is held again.
      if (what !== "of a user") await untilHeld(space, name);
    });

    test(`adds no writes at a restart, and removes the finalizer of a Secret (${what}) when it is turned off`, async () => {
      await using space = await openSpace();
      await space.create(Secret, user());
      const first = await startWith(space, [login(held)]);
      await space.create(Sample, sample({ other: "settings" }));
      await untilHeld(space, name);
      await first.quiet();
      await first.operator.stop();
      const second = await startWith(space, [login(held)]);
      await waitFor("it is reconciled", () => second.events.length > 0);
      await second.quiet();
      assert.equal(writesOf(second), []);
      await second.operator.stop();
      await using third = await startWith(space, [login()]);
      await untilHeld(space, name, 0);
      await third.quiet();
      await remove(space, "Background");
      await space.untilGone(Sample, "one");
    });
  }

  test("adds the finalizer in the write that creates an object, and by one patch for a referenced object", async () => {
    await using space = await openSpace();
    await space.create(Secret, user());
    await using running = await startWith(space, [loginOf(held), refOf({ ...held, name: "theirs" })]);
    await space.create(Sample, sample({ other: "settings" }));
    await untilHeld(space, "settings");
    await untilHeld(space, "one-login");
    await running.quiet();
    assert.equal(
      writesOf(running)
        .filter((each) => each.includes("secrets/"))
        .sort(),
      ["PATCH secrets/one-login 201", "PATCH secrets/settings 200"],
    );
  });

  test("keeps finalizers of other controllers", async () => {
    await using space = await openSpace();
    await space.create(Secret, { ...user(), metadata: { name: "settings", finalizers: ["example.com/theirs"] } });
    await using _ = await startWith(space, [refOf(held)]);
    await space.create(Sample, sample({ other: "settings" }));
    const { metadata } = await untilHeld(space, "settings");
    assert.ok(metadata.finalizers?.includes("example.com/theirs"));
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    assert.equal((await space.get(Secret, "settings"))?.metadata.finalizers, ["example.com/theirs"]);
  });

  test("keeps finalizers that another client adds before the release, which is repeated after 422", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [configMapOf("text", held)] });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    const ref = { name: "one-text", namespace: "default" };
    const finalizersOf = async () => (await page.operator.client.get(ConfigMap, ref))?.metadata.finalizers ?? [];
    const [hold = ""] = await finalizersOf();
    assert.match(hold, /^gen-operator\.dev\/held-/);
    await page.quiet();
    // The operator does not see that its finalizer moves to another index, which the patch tests.
    using _held = server.faults.holdWatches({ path: "/configmaps" });
    const finalizers = ["example.com/theirs", hold];
    await page.operator.client.mergePatch(ConfigMap, ref, { metadata: { finalizers } });
    page.requests.length = 0;
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await waitFor("the hold is removed", async () => (await finalizersOf()).length === 1);
    assert.equal(await finalizersOf(), ["example.com/theirs"]);
    assert.equal(
      page.requests.flatMap((each) => (/^PATCH .*one-text/.test(each) ? each.slice(-3) : [])),
      ["422", "200"],
    );
  });

  test("adds one finalizer for each primary that references the object", async () => {
    await using space = await openSpace();
    await space.create(Secret, user());
    await using _ = await startWith(space, [refOf(held)]);
    await space.create(Sample, sample({ other: "settings" }));
    await space.create(Sample, { ...sample({ other: "settings" }), metadata: { name: "two" } });
    await untilHeld(space, "settings", 2);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await untilHeld(space, "settings", 1);
    await space.delete(Sample, "two");
    await space.untilGone(Sample, "two");
    await untilHeld(space, "settings", 0);
  });

  for (const isRestarted of [false, true])
    test(`releases an object that its primary no longer references${isRestarted ? ", also after a restart" : ""}`, async () => {
      await using space = await openSpace();
      await space.create(Secret, user());
      await space.create(Secret, user("others"));
      const first = await startWith(space, [refOf(held)]);
      await space.create(Sample, sample({ other: "settings" }));
      await untilHeld(space, "settings");
      if (isRestarted) await first.operator.stop();
      await space.patch(Sample, "one", { spec: { other: "others" } });
      await using _ = isRestarted ? await startWith(space, [refOf(held)]) : first;
      await untilHeld(space, "others");
      await untilHeld(space, "settings", 0);
      await space.patch(Sample, "one", { spec: { other: null } });
      await untilHeld(space, "others", 0);
    });

  for (const condition of ["reconcilePrecondition", "activationCondition"] as const)
    for (const [what, name, login] of [
      ["managed", "one-login", loginOf],
      ["of a user", "settings", refOf],
    ] as const)
      test(`releases a Secret (${what}) when its ${condition} becomes false`, async () => {
        await using space = await openSpace();
        await space.create(Secret, user());
        const isFirst = (({ primary }: { primary: Sample }) => primary.spec.value === "first") as never;
        await using _ = await startWith(space, [login({ ...held, [condition]: isFirst })]);
        await space.create(Sample, sample({ other: "settings" }));
        await untilHeld(space, name);
        await space.patch(Sample, "one", { spec: { value: "second" } });
        if (what === "managed" && condition === "reconcilePrecondition") await space.untilGone(Secret, name);
        else await untilHeld(space, name, 0);
      });

  test("holds every object of a read-only bulk dependent", async () => {
    await using space = await openSpace();
    const secrets = informerSource({
      resource: Secret,
      name: "secrets",
      mapper: ({ metadata }: DataObject) =>
        metadata.annotations?.["of"] === undefined ? [] : [`${metadata.namespace}/one`],
    });
    const login = refOf({ ...held, ref: undefined, eventSource: "secrets", bulk: {} } as never);
    await using _ = await startWith(space, [login], { eventSources: () => [secrets as never] });
    for (const name of ["a", "b"])
      await space.create(Secret, { ...user(), metadata: { name, annotations: { of: "one" } } });
    await space.create(Sample, sample());
    for (const name of ["a", "b"]) await untilHeld(space, name);
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    for (const name of ["a", "b"]) await untilHeld(space, name, 0);
  });

  test(
    "keeps a Secret across a restart during the deletion of its namespace",
    async () => {
      await using space = await openSpace();
      await using service = await startAccountService();
      const first = await startWith(space, [loginOf(held), accountWith(service)]);
      await space.create(Sample, sample());
      await untilValues(service, "first");
      await first.quiet();
      await first.operator.stop();
      await space.client.delete(Namespace, { name: space.namespace });
      await space.until(Secret, "one-login", isTerminating);
      await using _ = await startWith(space, [loginOf(held), accountWith(service)]);
      await waitFor(
        "the namespace is gone",
        async () => (await space.client.get(Namespace, { name: space.namespace })) === undefined,
        { timeoutMs: 45_000 },
      );
      assert.is(service.accounts.size, 0);
    },
    COLLECTING,
  );

  test("releases the object when cleanupTimeoutMs expires", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await space.create(Secret, user());
    await using _ = await startWith(space, [refOf(held), accountWith(service, { delete: fails as never })], {
      cleanupTimeoutMs: 2_000,
    });
    await space.create(Sample, sample({ other: "settings" }));
    await untilHeld(space, "settings");
    await untilValues(service, "first");
    await remove(space, "Background");
    await space.untilGone(Sample, "one");
    await untilHeld(space, "settings", 0);
  });

  test("releases the object when another client removes the finalizer of its primary", async () => {
    await using space = await openSpace();
    await using service = await startAccountService();
    await space.create(Secret, user());
    await using running = await startWith(space, [refOf(held), accountWith(service, { delete: fails as never })]);
    await space.create(Sample, sample({ other: "settings" }));
    await untilHeld(space, "settings");
    await untilValues(service, "first");
    await remove(space, "Background");
    await waitFor("the cleanup fails", () => running.events.some(({ kind, error }) => kind === "cleanup" && error));
    await space.patch(Sample, "one", { metadata: { finalizers: null } });
    await untilHeld(space, "settings", 0);
  });
});
