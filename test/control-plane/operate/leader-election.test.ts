// Replicas as processes, beside a real API server, with what goes wrong between them. The scenarios run at once, each in a namespace of
// its own, as each takes as long as a Lease.
import { waitFor } from "#apiserver/wait-for.js";
import { holderOf, termOf } from "#runtime/operate/lease-lock.js";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { installCrd } from "../../support/api/api-server.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import type { ControlPlane } from "../../support/machine/control-plane.js";
import { measureLostTime } from "../../support/runtime/lost-time.js";
import { assert, shared, suite } from "../../support/suite.js";
import { pageCrd } from "../../integration/runtime/page-operator.js";
import { churn, openStage, untilLeading, untilText, type Replica, type Stage } from "./replica.js";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const RENEW_DEADLINE_MS = 10_000;
const lost = measureLostTime();
/** How much later than the process the proxy may see what it sent, on a machine that runs nine such stages at once. */
const slackSince = (at: number) => 1_000 + lost.since(at);

const lastOf = (requests: readonly { readonly at: number }[]) => requests.at(-1)?.at ?? -Infinity;
// The first one creates the Lease.
const isTaken = ({ status }: { readonly status?: number }) => status === 200 || status === 201;
const lastRenewalOf = (replica: Replica) => lastOf(replica.renewals().filter(isTaken));
/** Fails unless everything that one wrote came before everything that the other one wrote. */
const assertApart = (first: Replica, second: Replica) => {
  const began = second.writes()[0]?.at ?? Infinity;
  assert.ok(lastOf(first.writes()) < began, `${Math.round(lastOf(first.writes()) - began)} ms interleave`);
};
/** Fails if a replica wrote later than the deadline after its last renewal. */
const assertStoppedInTime = (replica: Replica) => {
  const renewedAt = lastRenewalOf(replica);
  const lateMs = lastOf(replica.writes()) - renewedAt;
  assert.ok(lateMs <= RENEW_DEADLINE_MS + slackSince(renewedAt), `${Math.round(lateMs)} ms`);
};
const saidBy = (replica: Replica, pattern: RegExp) => replica.log.some(({ message }) => pattern.test(message));

type Scenario = (stage: Stage, plane: ControlPlane) => Promise<void>;

const scenarios: { readonly [title: string]: Scenario } = {
  async "SIGTERM: releases the Lease, exits with 0, and the standby leads before the lease expires"(stage) {
    await using leader = await stage.startLeader();
    await using other = await stage.startReplica();
    await untilText(stage, "first");
    await waitFor("it stands by", () => saidBy(other, /^standing by/), { timeoutMs: 30_000 });
    await using _ = churn(stage);
    await sleep(1_000);
    leader.kill("SIGTERM");
    assert.is(await leader.ended, 0);
    await untilLeading(other);
    const release = leader.renewals().at(-1)!;
    assert.match(release.body, /"holderIdentity":""/);
    assert.is(leader.proxy.requests.filter(({ at }) => at > release.at).length, 0);
    const taken = other.renewals().find(({ status }) => status === 200)!;
    // A Lease that is not released ends after 15 s.
    const takenMs = taken.answeredAt! - release.answeredAt!;
    assert.ok(takenMs < 4_000 + slackSince(release.at), `${Math.round(takenMs)} ms`);
    assertApart(leader, other);
    assert.is(termOf((await stage.lease())!), 1);
  },

  async "SIGKILL: the standby leads in the next term and applies an edit within 20 s"(stage) {
    await using leader = await stage.startLeader();
    await using other = await stage.startReplica();
    await untilText(stage, "first");
    await waitFor("it stands by", () => saidBy(other, /^standing by/), { timeoutMs: 30_000 });
    const before = termOf((await stage.lease())!);
    leader.kill("SIGKILL");
    const killedAt = performance.now();
    await stage.setText("second");
    await untilText(stage, "second");
    const convergedMs = performance.now() - killedAt;
    assert.ok(convergedMs < 20_000 + lost.since(killedAt), `${Math.round(convergedMs)} ms`);
    assert.is(termOf((await stage.lease())!), before + 1);
    assert.is(other.writes().length > 0, true);
  },

  async "lost Lease renewals: the leader stops writing before the deadline and exits with 1, without overlap"(stage) {
    await using leader = await stage.startLeader();
    await using other = await stage.startReplica();
    await using _ = churn(stage);
    await sleep(3_000);
    leader.proxy.treat(({ method, path }) => (method !== "GET" && path.includes("/leases") ? "drop" : "pass"));
    assert.is(await leader.ended, 1);
    await untilLeading(other);
    await waitFor("the other writes", () => other.writes().length > 3, { timeoutMs: 30_000 });
    assert.ok(lastOf(leader.writes()) > lastRenewalOf(leader) + 2_000, "it writes while it may");
    assertStoppedInTime(leader);
    assertApart(leader, other);
    assert.ok(
      saidBy(leader, /^lost leadership: its Lease was not renewed for \d+ ms(; Lease .+ could not be renewed: .+)?$/),
    );
  },

  async "lost leadership: does not retry writes that got 503 with Retry-After"(stage) {
    await using leader = await stage.startLeader({ election: 'onLoss: "standby"' });
    await untilText(stage, "first");
    leader.proxy.treat(({ method, path }) => {
      if (method === "GET") return "pass";
      return path.includes("/leases") ? { status: 503 } : { status: 503, retryAfterSeconds: 4 };
    });
    await stage.setText("second");
    await waitFor("it has lost", () => saidBy(leader, /^lost leadership/), { timeoutMs: 30_000 });
    const lostAt = performance.now();
    assert.ok(leader.writes().length > 0);
    await sleep(10_000);
    assert.is(leader.writes().filter(({ at }) => at > lostAt + slackSince(lostAt)).length, 0);
    leader.proxy.treat(() => "pass");
    await untilText(stage, "second");
  },

  async "SIGSTOP for 30 s: sends no write after SIGCONT and exits with 1"(stage) {
    await using leader = await stage.startLeader();
    await using other = await stage.startReplica();
    await using _ = churn(stage);
    await sleep(2_000);
    leader.kill("SIGSTOP");
    await sleep(30_000);
    await waitFor("the other has taken over", () => other.writes().length > 0, { timeoutMs: 30_000 });
    const wokenAt = performance.now();
    leader.kill("SIGCONT");
    assert.is(await leader.ended, 1);
    assert.equal(
      [...leader.writes(), ...leader.renewals()].filter(({ at }) => at > wokenAt).map(({ path }) => path),
      [],
    );
    assertApart(leader, other);
  },

  async "Lease requests that hang for 60 s: exits with 1 at the renew deadline"(stage) {
    await using leader = await stage.startLeader();
    await using _ = churn(stage);
    await sleep(2_000);
    leader.proxy.treat(({ path }) => (path.includes("/leases") ? { holdAnswerMs: 60_000 } : "pass"));
    assert.is(await leader.ended, 1);
    // Far from the 60 s, and with all the time that a busy machine takes to end a process.
    const gaveUpMs = leader.endedAt! - lastRenewalOf(leader);
    assert.ok(gaveUpMs < RENEW_DEADLINE_MS + 20_000 + slackSince(lastRenewalOf(leader)), `${Math.round(gaveUpMs)} ms`);
    assertStoppedInTime(leader);
  },

  async "SIGTERM during a hanging reconcile: keeps the Lease and exits with 1"(stage) {
    await using leader = await stage.startLeader({
      reconcile: "() => new Promise(() => {})",
      options: "stopTimeoutMs: 2_000",
    });
    await untilText(stage, "first");
    const holder = holderOf(await stage.lease());
    leader.kill("SIGTERM");
    assert.is(await leader.ended, 1);
    assert.is(holderOf(await stage.lease()), holder);
  },

  async "clock skew of 1 h: a candidate does not take over the Lease"(stage) {
    await using leader = await stage.startLeader();
    const before = "{ const now = Date.now; Date.now = () => now() + 3_600_000; }";
    await using candidate = await stage.startReplica({ before });
    await waitFor("it stands by", () => saidBy(candidate, /^standing by/), { timeoutMs: 30_000 });
    const holder = holderOf(await stage.lease());
    await sleep(20_000);
    assert.is(holderOf(await stage.lease()), holder);
    assert.is(candidate.renewals().length, 0);
    assert.is(leader.endedAt, undefined);
  },

  async "missing permission for the Lease: the start fails and names verbs and namespace"(stage, plane) {
    const { namespace } = stage;
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await apiRequestOrThrow(plane, `POST ${accounts}`, { body: { metadata: { name: "operator" } } });
    const { status } = await apiRequestOrThrow<{ status: { token: string } }>(
      plane,
      `POST ${accounts}/operator/token`,
      { body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} } },
    );
    await using replica = await stage.startReplica({ token: status.token });
    assert.is(await replica.ended, 1);
    assert.is(
      replica.log.at(-1)?.message,
      `leader election needs to get, watch, create and update leases.coordination.k8s.io in namespace "${namespace}" (Lease "page-leader"), ` +
        "which the identity of this operator may not; grant it by a Role, or turn leader election off (leaderElection: false)",
    );
    assert.is(replica.writes().length, 0);
  },

  async "event loop blocked for 12 s: logs the primary, and reconciles it last after the restart"(stage, plane) {
    await createPage(plane, stage, "bad");
    const options = blocking(12_000);
    await using first = await stage.startReplica(options);
    assert.is(await first.ended, 1);
    const bad = `"${stage.namespace}/bad"`;
    assert.ok(
      saidBy(
        first,
        new RegExp(
          `^the event loop was blocked for 1[0-9]\\.\\d s: the reconciler \\(primary ${bad}, controller "page"\\)`,
        ),
      ),
      JSON.stringify(first.log),
    );
    assert.match(JSON.stringify((await stage.lease())!.metadata.annotations), `${stage.namespace}/bad`);
    await stage.setText("second");
    await using second = await stage.startReplica(options);
    await untilText(stage, "second");
    assert.ok(
      saidBy(second, new RegExp(`^primary ${bad} of controller "page" is reconciled last`)),
      JSON.stringify(second.log),
    );
  },

  async "hanging reconcile: the watchdog names it and ends the process with 1"(stage, plane) {
    await createPage(plane, stage, "bad");
    await using replica = await stage.startReplica({
      ...blocking(100_000),
      options: 'watchdog: { timeoutMs: 2_000, onHang: "exit" }',
    });
    assert.is(await replica.ended, 1);
    assert.ok(
      saidBy(
        replica,
        new RegExp(`^the main thread has hung for \\d+ s: the reconciler \\(primary "${stage.namespace}/bad"`),
      ),
      JSON.stringify(replica.log),
    );
  },

  async "leaders in two namespaces: the first reports writes of the second"(stage, plane) {
    await using first = await stage.startLeader();
    await untilText(stage, "first");
    // Until then a write may be one of the leader before.
    await sleep(62_000);
    const election = `namespace: "${stage.namespace}-other"`;
    await apiRequestOrThrow(plane, "POST /api/v1/namespaces", {
      body: { metadata: { name: `${stage.namespace}-other` } },
    });
    await using _second = await stage.startLeader({ election, reconcile: updating("theirs") });
    const isReported = () =>
      saidBy(first, /^Page "[^"]+\/one" was written at \S+ by field manager "page", and not by this process: another/);
    await waitFor("it is reported", isReported, { timeoutMs: 30_000 });
    // Nobody is stopped, as both may have a right to their objects.
    assert.is(first.endedAt, undefined);
  },
};

const updating = (text: string) =>
  `async () => (await import(${JSON.stringify(import.meta.resolve("#runtime/index.js"))})).updateStatus({ text: "${text}" })`;

/** The options of a replica whose reconciler blocks for the page "bad". */
const blocking = (ms: number) => ({
  reconcile: `({ primary }) => {
    if (primary.metadata.name === "bad") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms});
  }`,
});

async function createPage(plane: ControlPlane, { namespace }: Stage, name: string): Promise<void> {
  const body = { apiVersion: "example.com/v1", kind: "Page", metadata: { name }, spec: { text: name } };
  await apiRequestOrThrow(plane, `POST /apis/example.com/v1/namespaces/${namespace}/pages`, { body });
}

suite("leader election between processes", (test) => {
  const server = shared(() => borrowControlPlane());
  // All begin with the first test that waits for its own.
  let outcomes: Map<string, Promise<unknown>> | undefined;
  const begin = async () => {
    const plane = await server();
    await installCrd(plane, pageCrd);
    return new Map(
      Object.entries(scenarios).map(([title, play], index) => {
        const played = openStage(plane, `stage-${index}`).then((stage) => play(stage, plane));
        return [
          title,
          played.then(
            () => undefined,
            (error: unknown) => error,
          ),
        ] as const;
      }),
    );
  };
  for (const title of Object.keys(scenarios))
    test(
      title,
      async () => {
        outcomes ??= await begin();
        const error = await outcomes.get(title);
        if (error !== undefined) throw error;
      },
      { timeoutMs: 120_000 },
    );
});
