// Replicas of one operator that agree by a Lease on the one that writes.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { LEASE, type LeaderElectionSettings, holderOf, termOf } from "#runtime/operate/lease-lock.js";
import type { LeadershipState } from "#runtime/operate/leader-election.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { configMapOf, createPage, createPageOperator, setText, startPageServer, untilText } from "../page-operator.js";
import type { PageOperator, PageOperatorOptions } from "../page-operator.js";

const ref = { name: "page-leader", namespace: "default" };
const settings: LeaderElectionSettings = {
  ...{ namespace: "default", leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 300, onLoss: "standby" },
};

async function startReplica(server: ApiServer, options: PageOperatorOptions = {}): Promise<PageOperator> {
  const replica = createPageOperator(server, {
    ...options,
    operator: { leaderElection: settings, ...options.operator },
  });
  await replica.operator.start();
  return replica;
}

const isLeading = ({ operator }: PageOperator) => operator.health().leadership?.isLeading === true;
const untilLeading = (replica: PageOperator) => waitFor("it leads", () => isLeading(replica));
const writesOf = ({ requests }: PageOperator) => requests.filter((line) => !line.startsWith("GET"));
const leaseOf = (replica: PageOperator) => replica.operator.client.get({ definition: LEASE }, ref);

suite("leader election", (test) => {
  test("lets only the leader reconcile and write, while the standby is healthy and rejects writes", async () => {
    await using server = await startPageServer();
    await using leader = await startReplica(server);
    await untilLeading(leader);
    await using other = await startReplica(server);
    await createPage(leader);
    await untilText(leader, "first");
    await leader.quiet();
    assert.is(other.operator.health().status, "healthy");
    assert.is(other.operator.health().leadership?.leader, leader.operator.health().leadership?.identity);
    assert.equal(writesOf(other), []);
    assert.equal(other.events, []);
    const refused = await failureOf(() => setText(other, "second"));
    const path = "/apis/example.com/v1/namespaces/default/pages/one";
    assert.is(
      refused,
      `PATCH ${path} was not sent, because this replica is not the leader: it has not become the leader`,
    );
  });

  test("makes a replica with formerNames wait for the leader with the former name", async () => {
    await using server = await startPageServer();
    await using leader = await startReplica(server);
    await untilLeading(leader);
    await using renamed = await startReplica(server, { name: "renamed", formerNames: ["page"] });
    await createPage(leader);
    await untilText(leader, "first");
    await leader.quiet();
    assert.not(isLeading(renamed));
    assert.equal(renamed.events, []);
    await leader.operator.stop();
    await untilLeading(renamed);
    await waitFor("it reconciles", () => renamed.events.length > 0);
  });

  test("keeps a standby from reconciling when its namespaces change", async () => {
    await using server = await startPageServer();
    await using leader = await startReplica(server);
    await untilLeading(leader);
    await using other = await startReplica(server, { namespaces: ["elsewhere"] });
    await createPage(leader);
    await untilText(leader, "first");
    await other.operator.controller("page").setNamespaces(["default"]);
    await other.quiet();
    assert.equal([other.events.length, writesOf(other)], [0, []]);
    await leader.operator.stop();
    await waitFor("it reconciles", () => other.events.length > 0);
  });

  test("notifies onLeadership of each replica about gained, lost and other leadership", async () => {
    await using server = await startPageServer();
    const told: string[] = [];
    const observed = (who: string) => ({
      onLeadership: ({ isLeading: leads, leader }: LeadershipState) =>
        void told.push(`${who} ${leads ? "leads" : leader === undefined ? "knows none" : "knows another"}`),
    });
    await using first = await startReplica(server, { operator: observed("first") });
    await untilLeading(first);
    await using second = await startReplica(server, { operator: observed("second") });
    await waitFor("it knows the other", () => told.length === 2);
    await first.operator.stop();
    await untilLeading(second);
    assert.equal(told, ["first leads", "second knows another", "first knows none", "second leads"]);
  });

  test("lets the standby take over before the lease expires after the leader stopped, which sends no more requests", async () => {
    await using server = await startPageServer();
    // Without a release the other one would have to wait for three minutes.
    const long = { ...settings, leaseDurationMs: 180_000, renewDeadlineMs: 120_000 };
    await using leader = await startReplica(server, { operator: { leaderElection: long } });
    await untilLeading(leader);
    await using other = await startReplica(server, { operator: { leaderElection: long } });
    await createPage(leader);
    await untilText(leader, "first");
    await leader.quiet();
    assert.is(await leader.operator.stop(), true);
    await untilLeading(other);
    const sent = leader.requests.length;
    await setText(other, "second");
    await untilText(other, "second");
    assert.is(leader.requests.length, sent);
    const lease = await leaseOf(other);
    assert.is(termOf(lease!), 1);
    assert.is(holderOf(lease), other.operator.health().leadership?.identity);
  });

  test("increases the fencingToken with each leader, and omits it without leader election", async () => {
    await using server = await startPageServer();
    const tokens: unknown[] = [];
    const reconciler = {
      reconcile: ({ context }: { context: { fencingToken?: number } }) => void tokens.push(context.fencingToken),
    };
    for (let turn = 0; turn < 3; turn++) {
      await using replica = await startReplica(server, { reconciler });
      await untilLeading(replica);
      if (turn === 0) await createPage(replica);
      await waitFor("it has reconciled", () => tokens.length > turn);
    }
    assert.equal(tokens.slice(0, 3), [0, 1, 2]);
    await using alone = await startReplica(server, { reconciler, operator: { leaderElection: false } });
    await waitFor("it has reconciled", () => alone.events.length === 1);
    assert.is(tokens.at(-1), undefined);
  });

  test("lets only the leader poll external resources", async () => {
    await using server = await startPageServer();
    const polls = new Map<string, number>();
    const accountOf = (who: string): ExternalDependent => ({
      name: "account",
      dependsOn: [],
      idOf: ({ id }: { id: string }) => id,
      source: {
        kind: "poll",
        intervalMs: 20,
        fetch: () => {
          polls.set(who, (polls.get(who) ?? 0) + 1);
          return new Map();
        },
      },
    });
    const startNamed = (who: string) => startReplica(server, { dependents: [accountOf(who)] });
    await using leader = await startNamed("leader");
    await untilLeading(leader);
    await using other = await startNamed("other");
    await waitFor("it polls", () => (polls.get("leader") ?? 0) > 3);
    assert.is(polls.get("other"), undefined);
    await leader.operator.stop();
    await waitFor("the other polls", () => (polls.get("other") ?? 0) > 3);
    assert.ok(isLeading(other));
  });

  test("stops writing before the lease expires and returns to standby", async () => {
    await using server = await startPageServer();
    const leaseDurationMs = 6_000;
    const lostAt: number[] = [];
    await using replica = await startReplica(server, {
      operator: {
        leaderElection: { ...settings, leaseDurationMs },
        onLeadership: ({ isLeading: leads }: LeadershipState) => {
          if (!leads) lostAt.push(Date.now());
        },
      },
    });
    await untilLeading(replica);
    await createPage(replica);
    await untilText(replica, "first");
    await replica.quiet();
    const first = replica.operator.health().leadership?.identity;
    // Its writes are asked to come again, but by then it leads no more.
    const busy = { status: 503, retryAfterSeconds: 3 };
    server.faults.add({ verb: "patch", path: "/configmaps/", answer: busy });
    const unrenewed = server.faults.add({ verb: "update", path: "/leases/", answer: { status: 503 } });
    await using admin = createPageOperator(server, { operator: { leaderElection: false } });
    await setText(admin, "second");
    await waitFor("it has lost", () => !isLeading(replica));
    const { renewTime } = (await leaseOf(admin))!.spec as { renewTime: string };
    assert.ok(lostAt[0]! < Date.parse(renewTime) + leaseDurationMs, "before another replica may acquire the Lease");
    const attempts = server.requests.filter(({ path, status }) => path.includes("/configmaps/") && status === 503);
    assert.is(attempts.length, 1, "its write was not repeated");
    unrenewed.remove();
    server.faults.clear();
    await waitFor("it leads again", () => isLeading(replica), { timeoutMs: 15_000 });
    assert.not.equal(replica.operator.health().leadership?.identity, first);
    await untilText(admin, "second");
    assert.ok(replica.logs.some((line) => /^error lost leadership: its Lease was not renewed for/.test(line)));
  });

  test("reports lost leadership when another client clears the holder, and acquires the Lease again", async () => {
    await using server = await startPageServer();
    // It takes the free Lease again within milliseconds: a look at its health may miss that it led no more.
    const told: boolean[] = [];
    await using leader = await startReplica(server, {
      operator: {
        leaderElection: { ...settings, leaseDurationMs: 180_000, renewDeadlineMs: 120_000, retryPeriodMs: 60_000 },
        onLeadership: (state: LeadershipState) => void told.push(state.isLeading),
      },
    });
    await untilLeading(leader);
    await createPage(leader);
    await untilText(leader, "first");
    const admin = createPageOperator(server, { operator: { leaderElection: false } });
    await admin.operator.client.mergePatch({ definition: LEASE }, ref, { spec: { holderIdentity: "" } });
    // It renews each minute.
    await waitFor("it is told that it leads no more", () => told.includes(false));
    assert.ok(
      leader.logs.some((line) => line.includes("was removed by another client")),
      leader.logs.join("\n"),
    );
    await waitFor("it leads again", () => told.length === 3);
    assert.equal(told, [true, false, true]);
    const lease = await leaseOf(leader);
    assert.equal([holderOf(lease), termOf(lease!)], [leader.operator.health().leadership?.identity, 1]);
    await setText(admin, "second");
    await untilText(admin, "second");
    await admin.operator.stop();
  });

  test("keeps the Lease on shutdown while a reconcile is still running", async () => {
    await using server = await startPageServer();
    const reconciler = { reconcile: () => new Promise<void>(() => {}) };
    await using leader = await startReplica(server, { reconciler, operator: { stopTimeoutMs: 200 } });
    await untilLeading(leader);
    await createPage(leader);
    await waitFor("it reconciles", () => leader.operator.controller("page").counts().running === 1);
    const { identity } = leader.operator.health().leadership!;
    assert.is(await leader.operator.stop(), false);
    await using admin = createPageOperator(server, { operator: { leaderElection: false } });
    assert.is(holderOf(await leaseOf(admin)), identity);
  });

  test("keeps the Lease on shutdown while an aborted creation may still land", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("text", { deletion: "ordered", timeoutMs: 300 })];
    await using leader = await startReplica(server, { dependents });
    await untilLeading(leader);
    const held = server.faults.add({ verb: "patch", path: "/configmaps/", times: 1, delayMs: 2_000 });
    await createPage(leader);
    await waitFor("the creation is held", () => held.hits === 1);
    await untilText(leader, "first");
    await leader.quiet();
    const { identity } = leader.operator.health().leadership!;
    assert.is(await leader.operator.stop(), true);
    await using admin = createPageOperator(server, { operator: { leaderElection: false } });
    assert.is(holderOf(await leaseOf(admin)), identity);
  });

  test("fails the start without permission for Leases, and names the permission", async () => {
    await using server = await startPageServer();
    const denied = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", metadata: {} };
    const body = JSON.stringify({ ...denied, status: { allowed: false } });
    server.faults.add({ path: "/selfsubjectaccessreviews", answer: { status: 201, body } });
    await using replica = createPageOperator(server, { operator: { leaderElection: settings } });
    assert.is(
      await failureOf(() => replica.operator.start()),
      'leader election needs to get, watch, create and update leases.coordination.k8s.io in namespace "default" (Lease "page-leader"), which the ' +
        "identity of this operator may not; grant it by a Role, or turn leader election off (leaderElection: false)",
    );
  });

  test("rejects inconsistent durations and a missing namespace", async () => {
    await using server = await startPageServer();
    const make = async () => createPageOperator(server, { operator: { leaderElection: { leaseDurationMs: 2_000 } } });
    assert.match(await failureOf(make), /^leaderElection: leaseDuration \(2000 ms\) has to be above renewDeadline/);
    const unplaced = createPageOperator(server, { operator: { leaderElection: true } });
    const failure = await failureOf(() => unplaced.operator.start());
    assert.match(failure, /^leader election needs the namespace of its Lease/);
    await unplaced.operator.stop();
  });
});
