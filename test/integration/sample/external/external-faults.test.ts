// What goes wrong between an operator and a service outside of Kubernetes: the sample, compiled, against its console and an API server.
import { messageOf } from "#runtime/base/logger.js";
import { ConfigMap, Tenant, Zone } from "#external/src/generated/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { isThorough, ONLY_THOROUGH } from "../../../support/runs.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { isRealApiServer } from "../../../support/api/api-server.js";
import { creationsIn, eventsOf, openWorld, startServer, untilQuiet } from "./external-run.js";

/** For what waits until requests are given up. */
const SLOW = { timeoutMs: 60_000 };

suite("external sample, faults", (test) => {
  if (!isThorough && !isRealApiServer) return test.skip("all tests", ONLY_THOROUGH);
  const server = shared(startServer);

  test("continues independent dependents while the console is down, and the others afterwards", async () => {
    await using world = await openWorld(await server());
    const { console, run } = world;
    await console.stop();
    const tenant = await world.tenant("one", { users: { ann: "admin" } });
    const zone = await world.zone("home");
    await world.until(ConfigMap, "one-notes", () => true);
    for (const object of [tenant, zone]) {
      const failed = await waitFor("it fails", () => eventsOf(run, object).find(({ error }) => error !== undefined));
      const failures = Object.entries(failed.workflow!.dependents).filter(([, { kind }]) => kind === "failed");
      assert.ok(failures.length > 0);
      assert.is(failed.workflow!.dependents["notes"]?.kind ?? "created", "created");
    }
    const health = run.operator.controller("tenant").health()["account"];
    assert.is(health?.status, "unhealthy");
    await console.start();
    await world.until(Tenant, "one", ({ status }) => status?.users === 1);
    await world.until(Zone, "home", ({ status }) => status?.registrationId !== undefined);
    assert.ok(Object.values(creationsIn(world)).every((count) => count === 1));
  });

  test("starts while the console refuses reads, and recovers with it", async () => {
    await using world = await openWorld(await server());
    const { console, run } = world;
    const zone = await world.zone("home", { records: { www: "10.0.0.1" } });
    await world.tenant("one");
    for (const collection of ["accounts", "subscriptions", "records"]) await world.untilCount(collection, 1);
    await world.until(Zone, "home", ({ status }) => status?.registrationId !== undefined);
    await untilQuiet(run);
    const changes = [...console.changes];
    await run.operator.stop();
    await console.stop();
    await console.start();
    console.faults.set("GET zones", "refused");
    const again = await world.start();
    const failed = await waitFor("a reconcile", () => eventsOf(again, zone)[0]);
    assert.is(failed.workflow?.dependents["domain"]?.kind, "failed");
    assert.is(failed.workflow?.dependents["main"]?.kind, "unchanged");
    console.faults.clear();
    await waitFor("it is reconciled", () => eventsOf(again, zone).find(({ error }) => error === undefined));
    assert.equal(console.changes, changes);
  });

  test("fails only dependents of the failing collection, and retries them", async () => {
    await using world = await openWorld(await server());
    const { console, run } = world;
    console.faults.set("POST users", "refused");
    const tenant = await world.tenant("one", { users: { ann: "admin" } });
    const failed = await waitFor("it fails", () => eventsOf(run, tenant).find(({ error }) => error !== undefined));
    assert.match(messageOf(failed.error), /POST \/users was answered with 500/);
    const { users, ...others } = failed.workflow!.dependents;
    assert.is(users?.kind, "failed");
    assert.ok(Object.values(others).every(({ kind }) => kind === "created"));
    console.faults.clear();
    await world.until(Tenant, "one", ({ status }) => status?.users === 1);
    assert.equal(creationsIn(world), { accounts: 1, users: 1, subscriptions: 1 });
  });

  test(
    "creates nothing twice if a response is lost, late or missing",
    async () => {
      for (const fault of ["lost", "slow", "silent"] as const) {
        await using world = await openWorld(await server());
        const { console } = world;
        for (const collection of ["accounts", "users", "registrations"])
          console.faults.set(`POST ${collection}`, fault);
        await world.tenant("one", { users: { ann: "admin", bob: "reader" } });
        await world.zone("home");
        await world.untilCount("accounts", 1);
        await world.untilCount("registrations", 1);
        if (fault !== "slow")
          await waitFor("it is tried again", () => world.run.events.some(({ error }) => error !== undefined));
        await world.untilCount("users", 2);
        console.faults.clear();
        await world.until(Tenant, "one", ({ status }) => status?.users === 2);
        await world.until(Zone, "home", ({ status }) => status?.registrationId !== undefined);
        assert.equal(
          creationsIn(world),
          { accounts: 1, users: 2, subscriptions: 1, zones: 1, servers: 1, registrations: 1 },
          fault,
        );
      }
    },
    SLOW,
  );

  test("keeps the finalizer until the console is back, then deletes external resources", async () => {
    await using world = await openWorld(await server());
    const { client, console, run } = world;
    const tenant = await world.tenant("one", { users: { ann: "admin" } });
    await world.until(Tenant, "one", ({ status }) => status?.users === 1);
    await console.stop();
    await client.delete(Tenant, tenant.metadata);
    await waitFor("the deletion fails", () => eventsOf(run, tenant).some(({ error }) => error !== undefined));
    const waiting = await client.get(Tenant, tenant.metadata);
    assert.is(waiting?.metadata.finalizers?.length, 1);
    assert.is(console.all("users").size, 1);
    await console.start();
    await world.untilGone(Tenant, "one");
    for (const collection of ["accounts", "users", "subscriptions"]) assert.is(console.all(collection).size, 0);
  });

  test("finds the external resources of a deleted tenant after a restart during an outage", async () => {
    await using world = await openWorld(await server());
    const { client, console, run } = world;
    const tenant = await world.tenant("one", { users: { ann: "admin" } });
    await world.until(Tenant, "one", ({ status }) => status?.users === 1);
    await run.operator.stop();
    await client.delete(Tenant, tenant.metadata);
    // The servers are known by an event source, without which the controller of zones does not start.
    for (const collection of ["accounts", "users", "subscriptions"]) console.faults.set(`GET ${collection}`, "refused");
    const again = await world.start();
    await waitFor("the deletion fails", () => eventsOf(again, tenant).some(({ error }) => error !== undefined));
    assert.is((await client.get(Tenant, tenant.metadata))?.metadata.finalizers?.length, 1);
    console.faults.clear();
    await world.untilGone(Tenant, "one");
    for (const collection of ["accounts", "users", "subscriptions"]) assert.is(console.all(collection).size, 0);
  });

  test("restores deleted ids in ConfigMap and status, and creates nothing twice", async () => {
    await using world = await openWorld(await server());
    const { client, console, run } = world;
    const tenant = await world.tenant("one", { users: { ann: "admin" } });
    const { status } = await world.until(Tenant, "one", (each) => each.status?.users === 1);
    const state = await waitFor("the id is kept", () => world.stateOf("one"));
    await untilQuiet(run);
    const changes = [...console.changes];
    await client.delete(ConfigMap, state.metadata);
    const kept = await waitFor("the id is kept again", () => world.stateOf("one"));
    assert.equal(kept.data, state.data);
    assert.is.not(kept.metadata.uid, state.metadata.uid);
    await client.jsonPatch(Tenant, tenant.metadata, {
      subresource: "status",
      operations: [{ op: "remove", path: "/status/userIds" }],
    });
    await client.mergePatch(Tenant, tenant.metadata, {
      metadata: { labels: { touched: "yes" } },
      spec: { plan: "team" },
    });
    await world.until(Tenant, "one", (each) => each.status?.userIds?.["ann"] === status?.userIds?.["ann"]);
    await untilQuiet(run);
    const creations = (list: readonly string[]) => list.filter((change) => !change.startsWith("PUT"));
    assert.equal(creations(console.changes), creations(changes));
  });
});
