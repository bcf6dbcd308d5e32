// The sample of bulk dependents, compiled, against an API server; the same on the embedded and on the real one.
import { Deployment, Fleet, fleetController, Service, type FleetInput } from "#bulk/generated/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../support/suite.js";
import { spacesOf, type Space, type TestOperator } from "../runtime/space.js";

const openSpace = spacesOf({ crds: ["fixtures/samples/bulk/crds/fleets.example.com.yaml"], simulate: true });
// The real garbage collector learns of new kinds every 30 s.
const COLLECTED = { timeoutMs: 60_000 };

type Members = NonNullable<FleetInput["spec"]["members"]>;

const membersOf = (...names: readonly string[]): Members => names.map((name) => ({ name }));
const createFleet = (space: Space, members: Members) =>
  space.create(Fleet, { metadata: { name: "main" }, spec: { image: "nginx:1.29", members } });
const setMembers = (space: Space, members: Members) => space.patch(Fleet, "main", { spec: { members } });
/** Waits until the fleet says this of its members. */
const untilStates = (space: Space, states: { readonly [name: string]: string }) =>
  space.until(Fleet, "main", ({ status }) => {
    const stated = (status?.members ?? []).map(({ name, state }) => `${name} ${state}`);
    return (
      stated.sort().join() ===
      Object.entries(states)
        .map((each) => each.join(" "))
        .sort()
        .join()
    );
  });
const readyOf = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, "Ready"]));
const namesIn = async (space: Space, kind: typeof Deployment | typeof Service) =>
  (await space.list<Deployment | Service>(kind as typeof Deployment)).map(({ metadata }) => metadata.name).sort();
/** The writes of the operator besides those of the fleet, as `METHOD plural/name`. */
const writesOf = ({ requests }: TestOperator) =>
  requests
    .filter((request) => !request.includes("/fleets/"))
    .map((request) => request.replace(/ \d+$/, "").replace(/\/.*\/(\w+\/[\w-]+)$/, "$1"));

suite("bulk sample", (declareTest) => {
  // Operators that start and rollouts take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown, timeoutMs = 60_000) => declareTest(title, body, { timeoutMs });
  const thorough = (title: string, body: () => unknown, timeoutMs = 60_000) =>
    declareTest.thorough(title, body, { timeoutMs });

  thorough("creates the objects of each member and reports its state in the status", async () => {
    await using space = await openSpace();
    await using running = await space.start([fleetController]);
    await createFleet(space, [{ name: "east", replicas: 3 }, { name: "north" }, { name: "west", replicas: 0 }]);
    const { status } = await untilStates(space, readyOf("east", "north", "west"));
    assert.equal([status?.memberCount, status?.readyCount], [3, 3]);
    const names = ["main--east", "main--north", "main--west"];
    assert.equal(await namesIn(space, Deployment), names);
    assert.equal(await namesIn(space, Service), names);
    assert.is((await space.get(Deployment, "main--east"))?.spec?.replicas, 3);
    assert.equal(writesOf(running).length, 6);
    assert.ok(running.events.every(({ error, workflow }) => error === undefined && workflow?.error === undefined));
  });

  thorough("gives fleets distinct object names, even if their concatenated names are equal", async () => {
    await using space = await openSpace();
    await using running = await space.start([fleetController]);
    for (const [name, ...members] of [
      ["a", "b-c"],
      ["a-b", "c"],
      ["a--b", "c"],
    ] as const)
      await space.create(Fleet, { metadata: { name }, spec: { image: "nginx:1.29", members: membersOf(...members) } });
    for (const name of ["a", "a-b", "a--b"]) await space.until(Fleet, name, ({ status }) => status?.readyCount === 1);
    assert.equal(await namesIn(space, Deployment), ["a--b--c", "a--b-c", "a-b--c"]);
    assert.equal(failuresOf(running.events), []);
  });

  thorough("creates the Service of a member once its own Deployment is ready", async () => {
    await using space = await openSpace();
    await using running = await space.start([fleetController]);
    await createFleet(space, [{ name: "east" }, { name: "north", paused: true }, { name: "west" }]);
    const fleet = await untilStates(space, { east: "Ready", north: "Starting", west: "Ready" });
    assert.equal(
      fleet.status?.members?.map(({ message }) => message),
      [undefined, "0 of 1 pods are ready", undefined],
    );
    await running.quiet();
    assert.equal(await namesIn(space, Service), ["main--east", "main--west"]);
    const { deployments, services } = running.events.at(-1)!.workflow!.dependents;
    assert.equal(services?.items?.["north"], { kind: "waiting", for: ["deployments[north]"] });
    assert.equal(
      Object.entries(deployments?.items ?? {}).map(([key, item]) => [key, "isReady" in item && item.isReady]),
      [
        ["east", true],
        ["north", false],
        ["west", true],
      ],
    );
    await setMembers(space, membersOf("east", "north", "west"));
    await untilStates(space, readyOf("east", "north", "west"));
    assert.equal(await namesIn(space, Service), ["main--east", "main--north", "main--west"]);
  });

  test("deletes the Service, then the Deployment of a removed member, and writes no other members", async () => {
    await using space = await openSpace();
    await using running = await space.start([fleetController]);
    await createFleet(space, membersOf("east", "west"));
    await untilStates(space, readyOf("east", "west"));
    await running.quiet();
    running.requests.length = 0;
    await setMembers(space, membersOf("north", "west"));
    await untilStates(space, readyOf("north", "west"));
    await space.untilGone(Deployment, "main--east");
    await running.quiet();
    const writes = writesOf(running);
    assert.equal(
      writes.filter((write) => write.startsWith("DELETE")),
      ["DELETE services/main--east", "DELETE deployments/main--east"],
    );
    assert.equal(
      writes.filter((write) => write.startsWith("PATCH")),
      ["PATCH deployments/main--north", "PATCH services/main--north"],
    );
    await setMembers(space, []);
    const { status } = await space.until(Fleet, "main", ({ status }) => status?.memberCount === 0);
    assert.is(status?.readyCount, 0);
    await waitFor("nothing is left", async () => (await namesIn(space, Deployment)).length === 0);
    assert.equal(await namesIn(space, Service), []);
  });

  thorough("fails only the member in conflict and reports the reason", async () => {
    await using space = await openSpace();
    await using running = await space.start([fleetController]);
    const template = {
      metadata: { labels: { app: "other" } },
      spec: { containers: [{ name: "other", image: "other" }] },
    };
    const spec = { selector: { matchLabels: { app: "other" } }, template };
    await space.create(Deployment, { metadata: { name: "main--north" }, spec });
    await createFleet(space, membersOf("east", "north", "west"));
    const fleet = await untilStates(space, { east: "Ready", north: "Failed", west: "Ready" });
    const failed = fleet.status?.members?.find(({ name }) => name === "north");
    assert.match(failed?.message ?? "", /Deployment "[\w-]+\/main--north" already exists/);
    assert.equal(await namesIn(space, Service), ["main--east", "main--west"]);
    assert.equal(failuresOf(running.events), [], "it is in the result alone");
    await space.delete(Deployment, "main--north");
    await setMembers(space, [{ name: "east" }, { name: "north" }, { name: "west", replicas: 2 }]);
    await untilStates(space, readyOf("east", "north", "west"));
    assert.is((await space.get(Deployment, "main--north"))?.metadata.ownerReferences?.[0]?.name, "main");
  });

  thorough("restores modified and deleted objects, and writes nothing else", async () => {
    await using space = await openSpace();
    await using running = await space.start([fleetController]);
    await createFleet(space, membersOf("east", "north", "west"));
    await untilStates(space, readyOf("east", "north", "west"));
    await running.quiet();
    running.requests.length = 0;
    await space.delete(Service, "main--north");
    await space.until(Service, "main--north", () => true);
    await space.patch(Deployment, "main--east", {
      spec: { template: { spec: { containers: [{ name: "server", image: "hacked" }] } } },
    });
    await space.until(
      Deployment,
      "main--east",
      ({ spec }) => spec?.template.spec?.containers[0]?.image === "nginx:1.29",
    );
    await untilStates(space, readyOf("east", "north", "west"));
    await running.quiet();
    assert.equal(new Set(writesOf(running)), new Set(["PATCH services/main--north", "PATCH deployments/main--east"]));
  });

  thorough("writes at most 4 Deployments of a large fleet concurrently", async () => {
    await using space = await openSpace();
    const spans: { from: number; to: number }[] = [];
    await using _running = await space.start([fleetController], {
      onRequest: ({ method, path, durationMs }) => {
        const to = performance.now();
        if (method === "PATCH" && path.includes("/deployments/")) spans.push({ from: to - durationMs, to });
      },
    });
    const names = Array.from({ length: 24 }, (_, index) => `member-${index}`);
    await createFleet(space, membersOf(...names));
    await untilStates(space, readyOf(...names));
    assert.is(spans.length, names.length);
    const atOnce = spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length);
    assert.ok(Math.max(...atOnce) <= 4, `${Math.max(...atOnce)} at once`);
    assert.ok(Math.max(...atOnce) > 1, "not one after the other");
  });

  thorough("makes no request after a restart if everything is as desired", async () => {
    await using space = await openSpace();
    {
      await using first = await space.start([fleetController]);
      await createFleet(space, [{ name: "east", replicas: 2 }, { name: "west" }]);
      await untilStates(space, readyOf("east", "west"));
      await first.quiet();
    }
    {
      await using second = await space.start([fleetController]);
      await waitFor("the fleet is reconciled again", () => second.events.length > 0);
      await second.quiet();
      assert.equal(second.requests, []);
    }
    // What changed meanwhile is found by the next one.
    await setMembers(space, membersOf("north", "west"));
    {
      await using third = await space.start([fleetController]);
      await untilStates(space, readyOf("north", "west"));
      await third.quiet();
      assert.equal(await namesIn(space, Deployment), ["main--north", "main--west"]);
      await setMembers(space, []);
      await space.until(Fleet, "main", ({ status }) => status?.memberCount === 0);
      await third.quiet();
    }
    await using last = await space.start([fleetController]);
    await waitFor("the fleet is reconciled again", () => last.events.length > 0);
    await last.quiet();
    assert.equal(last.requests, [], "of an empty fleet, too");
  });

  thorough(
    "deletes all members with their fleet",
    async () => {
      await using space = await openSpace();
      await using running = await space.start([fleetController]);
      await createFleet(space, membersOf("east", "west"));
      await untilStates(space, readyOf("east", "west"));
      await space.delete(Fleet, "main");
      await space.untilGone(Fleet, "main");
      const isEmpty = async () =>
        [...(await namesIn(space, Deployment)), ...(await namesIn(space, Service))].length === 0;
      await waitFor("nothing is left", isEmpty, COLLECTED);
      assert.equal(failuresOf(running.events), []);
    },
    90_000,
  );
});
