// The sample with resources outside of Kubernetes, compiled, against its console and an API server; the same on the embedded and on the
// real one.
import type { AddressInfo } from "node:net";
import { keyOf } from "@gen-operator/runtime";
import { ConfigMap, Tenant, Zone } from "#external/src/generated/index.js";
import { startWebhook } from "#external/src/webhook.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { eventsOf, openWorld, startServer, untilQuiet } from "./external-run.js";

suite("external sample", (test) => {
  const server = shared(startServer);

  test("creates, updates and deletes the account, users and subscription of a tenant", async () => {
    await using world = await openWorld(await server());
    const { client, console } = world;
    const tenant = await world.tenant("one", { users: { ann: "admin", bob: "reader" } });
    const created = await world.until(Tenant, "one", ({ status }) => status?.users === 2);
    assert.equal(Object.keys(created.status?.userIds ?? {}).sort(), ["ann", "bob"], "the reconciler leaves them alone");
    assert.is(created.metadata.finalizers?.length, 1);
    const [account] = console.all("accounts").values();
    assert.is(account?.["owner"], keyOf(tenant.metadata));
    const { id, mac, ...rest } = (await world.stateOf("one"))?.data ?? {};
    assert.equal([id, rest], [account?.id, {}]);
    assert.ok(mac, "the id has a proof");
    const settings = await world.until(ConfigMap, "one-settings", () => true);
    assert.equal(settings.data, { account: account?.id, plan: "free" });

    const users = { bob: "admin", cid: "reader" };
    await client.mergePatch(Tenant, tenant.metadata, { spec: { plan: "team", users: { ann: null, ...users } } });
    await world.until(ConfigMap, "one-settings", ({ data }) => data?.["plan"] === "team");
    const changed = await world.until(Tenant, "one", ({ status }) => status?.userIds?.["cid"] !== undefined);
    assert.equal(Object.keys(changed.status?.userIds ?? {}).sort(), ["bob", "cid"]);
    assert.is(changed.status?.userIds?.["bob"], created.status?.userIds?.["bob"]);
    assert.equal(world.valuesOf("users", "name"), ["bob", "cid"]);
    assert.equal(world.valuesOf("users", "role"), ["admin", "reader"]);
    await waitFor("the plan is the new one", () => world.valuesOf("subscriptions", "plan").join() === "team");

    await client.delete(Tenant, tenant.metadata);
    await world.untilGone(Tenant, "one");
    for (const collection of ["accounts", "users", "subscriptions"]) assert.is(console.all(collection).size, 0);
    assert.is(await client.get(ConfigMap, settings.metadata), undefined);
    assert.is(await world.stateOf("one"), undefined);
    const deletions = console.changes.filter((change) => /^DELETE (accounts|users)/.test(change));
    assert.match(deletions.at(-1) ?? "", /accounts/, "what needs the account goes before it");
    assert.is(console.changes.filter((change) => change.startsWith("POST")).length, 5);
  });

  test("creates, updates and deletes the records, registration and servers of a zone", async () => {
    await using world = await openWorld(await server());
    const { client, console } = world;
    const zone = await world.zone("home", { hasReplica: true, records: { www: "10.0.0.1", mail: "10.0.0.2" } });
    const key = keyOf(zone.metadata);
    const created = await world.until(Zone, "home", ({ status }) => status?.servers?.length === 2);
    await world.untilCount("records", 2);
    assert.equal([...console.all("servers").keys()].sort(), [`${key}/main`, `${key}/replica`]);
    assert.ok(console.all("registrations").has(created.status?.registrationId ?? ""));
    const records = { www: "10.0.0.3", mail: null, ftp: "10.0.0.4" };
    await client.mergePatch(Zone, zone.metadata, { spec: { region: "east", records } });
    await waitFor(
      "the records are the new ones",
      () => world.valuesOf("records", "address").join() === "10.0.0.3,10.0.0.4",
    );
    await waitFor("both servers moved", () => world.valuesOf("servers", "region").join() === "east,east");
    await client.mergePatch(Zone, zone.metadata, { spec: { hasReplica: false } });
    await world.until(Zone, "home", ({ status }) => status?.servers?.length === 1);
    assert.equal([...console.all("servers").keys()], [`${key}/main`]);
    await client.delete(Zone, zone.metadata);
    await world.untilGone(Zone, "home");
    for (const collection of ["zones", "records", "registrations", "servers"])
      assert.is(console.all(collection).size, 0, collection);
  });

  test("replaces the zone and registration when the domain changes, and deletes the old ones", async () => {
    await using world = await openWorld(await server());
    const { client, console } = world;
    const zone = await world.zone("home", { records: { www: "10.0.0.1" } });
    const { status } = await world.until(Zone, "home", (each) => each.status?.registrationId !== undefined);
    await world.untilCount("records", 1);
    await client.mergePatch(Zone, zone.metadata, { spec: { domain: "away.example.com" } });
    await world.until(Zone, "home", (each) => {
      const { registrationId } = each.status ?? {};
      return registrationId !== undefined && registrationId !== status?.registrationId;
    });
    await waitFor("the old ones are gone", () => ["zones", "records"].every((name) => console.all(name).size === 1));
    assert.equal([...console.all("zones").keys()], ["away.example.com"]);
    assert.equal([...console.all("records").keys()], ["www.away.example.com"]);
    assert.equal(world.valuesOf("registrations", "domain"), ["away.example.com"]);
    await client.delete(Zone, zone.metadata);
    await world.untilGone(Zone, "home");
    for (const collection of ["zones", "records", "registrations", "servers"])
      assert.is(console.all(collection).size, 0, collection);
  });

  test("deletes an account only after the ConfigMap that references it is deleted", async () => {
    await using world = await openWorld(await server());
    const { client, console } = world;
    const tenant = await world.tenant("held", {});
    const settings = await world.until(ConfigMap, "held-settings", () => true);
    await client.mergePatch(ConfigMap, settings.metadata, { metadata: { finalizers: ["example.com/held"] } });
    await client.delete(Tenant, tenant.metadata);
    await world.until(ConfigMap, "held-settings", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await untilQuiet(world.run);
    assert.is(console.all("accounts").size, 1);
    await client.mergePatch(ConfigMap, settings.metadata, { metadata: { finalizers: null } });
    await world.untilGone(Tenant, "held");
    assert.is(console.all("accounts").size, 0);
  });

  test("ignores the records of a zone without spec.records", async () => {
    await using world = await openWorld(await server());
    const { client } = world;
    const zone = await world.zone("home", {});
    await world.until(Zone, "home", ({ status }) => status?.servers?.length === 1);
    await client.mergePatch(Zone, zone.metadata, { spec: { records: { www: "10.0.0.1" } } });
    await world.untilCount("records", 1);
    await client.mergePatch(Zone, zone.metadata, { spec: { records: null } });
    await untilQuiet(world.run);
    assert.equal(world.valuesOf("records", "address"), ["10.0.0.1"]);
    await client.mergePatch(Zone, zone.metadata, { spec: { records: {} } });
    await world.untilCount("records", 0);
  });

  test("restores resources that were modified or deleted in the console after the next poll", async () => {
    await using world = await openWorld(await server());
    const { console } = world;
    await world.tenant("one", { users: { ann: "admin" } });
    const zone = await world.zone("home", { records: { www: "10.0.0.1" } });
    const tenant = await world.until(Tenant, "one", ({ status }) => status?.users === 1);
    await world.until(Zone, "home", ({ status }) => status?.servers?.length === 1);
    await world.untilCount("records", 1);
    await console.change("accounts", tenant.status?.accountId ?? "", { plan: "theirs" });
    await console.change("users", tenant.status?.userIds?.["ann"] ?? "", undefined);
    await console.change("zones", zone.spec.domain, undefined);
    await console.change("records", `www.${zone.spec.domain}`, { address: "theirs" });
    await console.change("servers", `${keyOf(zone.metadata)}/main`, { region: "theirs" });
    await waitFor("the account is as desired", () => world.valuesOf("accounts", "plan").join() === "free");
    await waitFor("the zone is there", () => console.all("zones").size === 1);
    await waitFor("the record is as desired", () => world.valuesOf("records", "address").join() === "10.0.0.1");
    await waitFor("the server is as desired", () => world.valuesOf("servers", "region").join() === "west");
    const { status } = await world.until(
      Tenant,
      "one",
      (each) => each.status?.userIds?.["ann"] !== tenant.status?.userIds?.["ann"],
    );
    assert.equal([...console.all("users").keys()], [status?.userIds?.["ann"]], "the new id is kept");
  });

  test("reconciles on a webhook event of the console, and restores the desired state", async () => {
    await using world = await openWorld(await server());
    const { console } = world;
    const webhook = await startWebhook(0);
    try {
      console.webhookUrl = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}`;
      const tenant = await world.tenant("one");
      const key = keyOf(tenant.metadata);
      await world.untilCount("subscriptions", 1);
      await world.until(Tenant, "one", ({ status }) => status?.accountId !== undefined);
      await console.change("subscriptions", key, { renewsAt: "2030-01-01" });
      await world.until(Tenant, "one", ({ status }) => status?.renewsAt === "2030-01-01");
      // The status is there before the reconcile ends, which the event tells.
      await waitFor("what was pushed is a reason", () =>
        eventsOf(world.run, tenant).some(({ reasons }) =>
          reasons.some((each) => each.kind === "secondary" && each.source === "subscription"),
        ),
      );
      await console.change("subscriptions", key, { plan: "team" });
      await waitFor("the plan is as desired", () => world.valuesOf("subscriptions", "plan").join() === "free");
      assert.equal(world.valuesOf("subscriptions", "renewsAt"), ["2030-01-01"], "what is not desired stays");
      await console.change("subscriptions", key, undefined);
      await world.untilCount("subscriptions", 1);
    } finally {
      webhook.close();
    }
  });

  test("changes nothing after a restart", async () => {
    await using world = await openWorld(await server());
    const { console, run } = world;
    const tenant = await world.tenant("one", { users: { ann: "admin", bob: "reader" } });
    const zone = await world.zone("home", { hasReplica: true, records: { www: "10.0.0.1" } });
    await world.until(Tenant, "one", ({ status }) => status?.users === 2);
    await world.until(Zone, "home", ({ status }) => status?.servers?.length === 2);
    await untilQuiet(run);
    const changes = [...console.changes];
    await run.operator.stop();
    const again = await world.start();
    for (const object of [tenant, zone]) {
      const [event] = await waitFor("a reconcile", () => {
        const events = eventsOf(again, object);
        return events.length > 0 ? events : undefined;
      });
      const kinds = Object.values(event!.workflow!.dependents).map(({ kind }) => kind);
      assert.ok(
        kinds.every((kind) => kind === "unchanged"),
        JSON.stringify(event!.workflow!.dependents),
      );
    }
    await untilQuiet(again);
    // The key that proves the ids is read once.
    assert.equal(again.requests, ["GET /api/v1/namespaces/default/secrets/gen-operator-proof-key"]);
    assert.equal(console.changes, changes);
    assert.is(changes.filter((change) => change.startsWith("POST")).length, 9);
  });

  test("isolates the resources of different primaries", async () => {
    await using world = await openWorld(await server());
    const { client, console } = world;
    const users = { ann: "admin" };
    const [one] = [await world.tenant("one", { users }), await world.tenant("two", { users })];
    const [home] = [
      await world.zone("home", { records: { www: "1" } }),
      await world.zone("away", { records: { www: "2" } }),
    ];
    for (const name of ["one", "two"]) await world.until(Tenant, name, ({ status }) => status?.users === 1);
    for (const name of ["home", "away"]) await world.until(Zone, name, ({ status }) => status?.servers?.length === 1);
    await world.untilCount("records", 2);
    assert.is(new Set(world.valuesOf("users", "account")).size, 2);
    await client.delete(Tenant, one.metadata);
    await client.delete(Zone, home.metadata);
    await world.untilGone(Tenant, "one");
    await world.untilGone(Zone, "home");
    assert.equal(world.valuesOf("accounts", "owner"), [`${world.namespace}/two`]);
    for (const collection of ["users", "subscriptions", "zones", "records", "registrations", "servers"])
      assert.is(console.all(collection).size, 1, collection);
    await untilQuiet(world.run);
    assert.equal(failuresOf(world.run.events), []);
  });
});
