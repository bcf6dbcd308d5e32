import fc from "../../../../support/fast-check.js";
import { LeaseLock, holderOf, termOf } from "#runtime/operate/lease-lock.js";
import { LeaderElection } from "#runtime/operate/leader-election.js";
import { createConnection } from "#runtime/client/connection.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { ElectorOptions } from "#runtime/operate/leader-elector.js";
import { keptIn } from "../../../../support/runtime/kept-in.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";
import { VirtualClock } from "../../../../support/runtime/virtual-clock.js";
import { LeaseServer, passTime, Replica, settled, TERMS } from "./lease-world.js";

function openWorld(names: readonly string[] = ["a", "b"]) {
  const time = new VirtualClock();
  const server = new LeaseServer();
  const replicas = names.map((name) => new Replica(name, server, time));
  const pass = (ms: number, onStep?: () => void) => passTime(time, ms, onStep);
  return { time, server, replicas, pass };
}

const gone = async () => true;

suite("permission check for the Lease", (test) => {
  /** The pauses after checks that get no answer. */
  async function pausesOf(count: number, times: { readonly retryPeriodMs: number }): Promise<readonly number[]> {
    const pauses: number[] = [];
    const logger = {
      debug() {},
      info() {},
      warn: (fields: object) => void pauses.push((fields as { retryAfterMs: number }).retryAfterMs),
      error() {},
    };
    const { retryPeriodMs } = times;
    const renewDeadlineMs = 25 * retryPeriodMs;
    const settings = { namespace: "home", leaseDurationMs: 2 * renewDeadlineMs, renewDeadlineMs, retryPeriodMs };
    const election = new LeaderElection({ settings, controller: "page", logger });
    const connection = createConnection({ url: "http://127.0.0.1:1" });
    election.decide(connection);
    const leadership = election.createLeadership(connection, { onLost() {}, count: undefined })!;
    const stopping = new AbortController();
    const checked = leadership.checkPermissions(stopping.signal).catch(() => {});
    await waitFor("it is repeated", () => pauses.length === count);
    stopping.abort();
    await checked;
    await leadership.end();
    return pauses;
  }

  test("retries with growing pauses while the API server does not respond", async () => {
    const pauses = await pausesOf(5, { retryPeriodMs: 20 });
    assert.ok(pauses[4]! >= 16 * 20, `${pauses}`);
  });

  test("retries after at most 30 s, however long retryPeriod is", async () => {
    const [pause = 0] = await pausesOf(1, { retryPeriodMs: 60_000 });
    assert.ok(pause >= 15_000 && pause <= 30_000, `${pause}`);
  });
});

suite("LeaseLock", (test) => {
  test("leaves no listeners of its reads in the signal of the candidacy", async () => {
    const { signal: ending } = new AbortController();
    const client = { get: async () => undefined } as unknown as ElectorOptions["client"];
    const lock = new LeaseLock({ client, terms: TERMS, clock: new VirtualClock(), ending });
    for (let time = 0; time < 3; time++) await lock.read();
    assert.is(keptIn(ending), 0);
  });
});

suite("Elector", (test) => {
  test("acquires a missing Lease immediately and renews it every 2 s", async () => {
    const { server, replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(200);
    assert.is(a.elector.isLeading, true);
    assert.is(a.elector.term, 0);
    await pass(60_000, () => assert.is(a.mayWrite, true));
    assert.is(new Set(server.holders).size, 1);
    assert.ok(server.holders.length >= 25 && server.holders.length <= 32, `${server.holders.length} renewals`);
  });

  test("acquires a released Lease as soon as it observes the release", async () => {
    const { server, replicas, pass } = openWorld();
    await pass(5_000);
    const [leader, other] = [...replicas].sort((one) => (one.mayWrite ? -1 : 1)) as [Replica, Replica];
    assert.is(other.mayWrite, false);
    const released = leader.elector.release(gone);
    assert.is(leader.mayWrite, false, "no write leaves after the call");
    await pass(500);
    assert.is(await released, true);
    assert.is(other.mayWrite, true);
    assert.is(termOf(server.lease!), 1);
    assert.equal(leader.lost, [], "a release is no loss");
  });

  test("does not release the Lease while a write is in flight, and the standby waits until it expires", async () => {
    const { server, replicas, pass } = openWorld();
    await pass(5_000);
    const [leader, other] = [...replicas].sort((one) => (one.mayWrite ? -1 : 1)) as [Replica, Replica];
    const released = leader.elector.release(async () => false);
    await settled();
    assert.is(await released, false);
    assert.is(holderOf(server.lease), `${leader.name}-1`);
    await pass(12_000, () => assert.is(other.mayWrite, false));
    await pass(6_000);
    assert.is(other.mayWrite, true);
  });

  test("waits for leaseDuration since the last observed change, regardless of wall clocks", async () => {
    const { replicas, pass } = openWorld();
    await pass(5_000);
    const [leader, other] = [...replicas].sort((one) => (one.mayWrite ? -1 : 1)) as [Replica, Replica];
    other.wallOffsetMs = 3_600_000;
    await pass(60_000, () => assert.is(other.mayWrite, false));
    assert.is(leader.mayWrite, true);
    leader.pause();
    await pass(12_000, () => assert.is(other.mayWrite, false));
    await pass(8_000);
    assert.is(other.mayWrite, true);
    leader.resume();
    assert.is(leader.mayWrite, false, "it was silent for too long");
    await pass(100);
    assert.is(leader.lost.length, 1);
    assert.match(leader.lost[0]!, /was not renewed for/);
  });

  for (const [what, change, reason] of [
    [
      "clears the holder",
      { holderIdentity: "" },
      /holderIdentity of Lease "home\/shop-leader" was removed by another client/,
    ],
    ["sets another holder", { holderIdentity: "c-1" }, /Lease "home\/shop-leader" was acquired by "c-1"/],
    [
      "raises leaseTransitions",
      { leaseTransitions: 7 },
      /leaseTransitions of Lease "home\/shop-leader" was set to 7 by another client/,
    ],
  ] as const)
    test(`stops writing as soon as another client ${what} of its Lease`, async () => {
      const { server, replicas, pass } = openWorld(["a"]);
      const [a] = replicas as [Replica];
      await pass(5_000);
      server.write({ ...server.lease!, spec: { ...server.lease!.spec, ...change } }, false);
      await pass(50);
      assert.is(a.mayWrite, false);
      assert.is(a.lost.length, 1);
      assert.match(a.lost[0]!, reason);
    });

  test("continues writing if another client changes a label of its Lease", async () => {
    const { server, replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    const { metadata } = server.lease!;
    server.write({ ...server.lease!, metadata: { ...metadata, labels: { team: "a" } } }, false);
    await pass(30_000, () => assert.is(a.mayWrite, true));
    assert.equal(server.lease!.metadata.labels, { team: "a" });
  });

  test("recreates a deleted Lease immediately, and stops if another replica was faster", async () => {
    const { server, replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    server.remove();
    await pass(500, () => assert.is(a.mayWrite, true));
    assert.is(holderOf(server.lease), "a-1");
    assert.is(termOf(server.lease!), 0);
    await pass(10_000, () => assert.is(a.mayWrite, true));
    server.remove();
    server.write({ metadata: { name: "shop-leader", namespace: "home" }, spec: { holderIdentity: "c-1" } }, true);
    await pass(50);
    assert.is(a.mayWrite, false);
  });

  test("detects a foreign change of the Lease after its watch was closed", async () => {
    const { server, replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    for (const end of server.watchEnds.splice(0)) end();
    await pass(3_000);
    server.write({ ...server.lease!, spec: { ...server.lease!.spec, holderIdentity: "" } }, false);
    await pass(50);
    assert.is(a.mayWrite, false);
  });

  test("keeps leading while each renewal takes 4.6 s of a renewDeadline of 10 s", async () => {
    const { replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    a.latencyMs = 2_300;
    await pass(60_000, () => assert.is(a.mayWrite, true));
    assert.equal(a.lost, []);
  });

  test("leads with leaseTransitions at the maximum int32", async () => {
    const { server, replicas, pass } = openWorld(["a"]);
    const spec = { holderIdentity: "", leaseTransitions: 2 ** 31 - 1 };
    server.write({ metadata: { name: "shop-leader", namespace: "home" }, spec }, true);
    await pass(20_000);
    assert.is((replicas as [Replica])[0].mayWrite, true);
    assert.is(termOf(server.lease!), 2 ** 31 - 1);
  });

  test("does not write after the machine was suspended, even if its monotonic clock stood still", async () => {
    const { replicas, pass } = openWorld();
    await pass(5_000);
    const leader = replicas.find(({ mayWrite }) => mayWrite)!;
    leader.pause();
    await pass(30_000);
    leader.resume({ wasSuspended: true });
    assert.is(leader.mayWrite, false);
    await pass(100);
    assert.match(leader.lost.join(), /wall clock and monotonic clock differ by 3\d s/);
  });

  test("stops leading within renewDeadline of sending the last acknowledged renewal if responses are lost", async () => {
    const { time, replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    a.network = "loses answers";
    const sentAtMost = time.now();
    let lastWriteAt = 0;
    await pass(15_000, () => void (a.mayWrite && (lastWriteAt = time.now())));
    assert.ok(lastWriteAt > sentAtMost + 6_000, "it tries for as long as it may");
    assert.ok(lastWriteAt <= sentAtMost + TERMS.renewDeadlineMs, `${lastWriteAt - sentAtMost} ms`);
    assert.is(a.lost.length, 1);
  });

  test("reports why the Lease could not be renewed when it stops leading", async () => {
    const { replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    a.network = "forbids writes";
    await pass(15_000);
    assert.match(
      a.lost.join(),
      /not renewed for 10\d* ms; Lease "home\/shop-leader" could not be renewed: 403: leases/,
    );
  });

  test("reports no leader and why the Lease cannot be acquired after it has expired", async () => {
    const { replicas, pass } = openWorld();
    await pass(5_000);
    const [leader, other] = [...replicas].sort((one) => (one.mayWrite ? -1 : 1)) as [Replica, Replica];
    const shown = () => [other.elector.leader, other.elector.problem];
    other.network = "forbids writes";
    leader.pause();
    await pass(12_000, () => assert.equal(shown(), [`${leader.name}-1`, undefined]));
    await pass(8_000);
    const problem = 'Lease "home/shop-leader" could not be acquired or watched: 403: leases is forbidden';
    assert.equal(shown(), [undefined, problem]);
    other.network = "works";
    await pass(5_000);
    assert.equal(shown(), [`${other.name}-1`, undefined]);
  });

  test("continues leading after a renewal whose response was lost", async () => {
    const { server, replicas, pass } = openWorld(["a"]);
    const [a] = replicas as [Replica];
    await pass(5_000);
    a.network = "loses answers";
    await pass(3_000);
    a.network = "works";
    await pass(20_000, () => assert.is(a.mayWrite, true));
    assert.equal([...new Set(server.holders)], ["a-1"]);
  });

  test("recreates a deleted Lease before a standby can acquire it", async () => {
    const { server, replicas, pass } = openWorld();
    await pass(5_000);
    const [leader, other] = [...replicas].sort((one) => (one.mayWrite ? -1 : 1)) as [Replica, Replica];
    server.remove();
    await pass(30_000, () => assert.equal([leader.mayWrite, other.mayWrite], [true, false]));
    assert.is(holderOf(server.lease), `${leader.name}-1`);
  });

  test("continues from the highest observed leaseTransitions if another client clears the Lease", async () => {
    for (const names of [["a"], ["a", "b"]])
      for (const cleared of [{}, { spec: {} }]) {
        const { server, replicas, pass } = openWorld(names);
        const terms = () => replicas.flatMap(({ elector: { term } }) => term ?? []);
        await pass(5_000);
        server.write({ ...server.lease!, spec: { ...server.lease!.spec, leaseTransitions: 41 } }, false);
        const standAgain = async () => {
          await pass(100);
          assert.equal(terms(), [], "the leader stops");
          for (const each of replicas) if (each.lost.splice(0).length > 0) each.standAgain();
          await pass(20_000);
        };
        await standAgain();
        assert.equal(terms(), [42], "it goes on with what somebody has written");
        server.write({ metadata: server.lease!.metadata, ...cleared }, false);
        await standAgain();
        assert.ok(terms().length === 1 && terms()[0]! >= 43, `${terms()} comes after 42`);
      }
  });

  test("never writes concurrently with another replica under any faults, and elects one leader in the end", async () => {
    const networks = ["works", "loses requests", "loses answers", "refuses"] as const;
    const replica = fc.nat(2);
    const event = fc.oneof(
      fc.record({ kind: fc.constant("pause" as const), replica }),
      fc.record({ kind: fc.constant("resume" as const), replica, wasSuspended: fc.boolean() }),
      fc.record({ kind: fc.constant("network" as const), replica, network: fc.constantFrom(...networks) }),
      fc.record({ kind: fc.constant("latency" as const), replica, ms: fc.constantFrom(1, 50, 900, 4_000, 20_000) }),
      fc.record({ kind: fc.constant("date" as const), replica, ms: fc.integer({ min: -9_000, max: 9_000 }) }),
      fc.record({ kind: fc.constant("release" as const), replica }),
    );
    const happening = fc.record({ event, thenMs: fc.integer({ min: 1, max: 120 }).map((each) => each * 100) });
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 3, maxLength: 14 }), async (happenings) => {
        const { replicas, pass } = openWorld(["a", "b", "c"]);
        const check = () => {
          const writing = replicas.filter(({ mayWrite }) => mayWrite).map(({ name }) => name);
          if (writing.length > 1) throw new Error(`${writing.join(" and ")} write`);
          for (const each of replicas)
            if (each.lost.length > 0) {
              each.lost.length = 0;
              each.standAgain();
            }
        };
        await pass(1_000, check);
        const releases: Promise<unknown>[] = [];
        for (const { event: each, thenMs } of happenings) {
          const of = replicas[each.replica]!;
          if (each.kind === "pause") of.pause();
          else if (each.kind === "resume") of.resume(each);
          else if (each.kind === "network") of.network = each.network;
          else if (each.kind === "latency") of.latencyMs = each.ms;
          else if (each.kind === "date") of.wallOffsetMs += each.ms;
          else if (!of.isPaused) releases.push(of.elector.release(gone).then(() => of.standAgain()));
          await pass(thenMs, check);
        }
        for (const each of replicas) {
          each.resume();
          each.network = "works";
          each.latencyMs = 5;
        }
        await pass(90_000, check);
        await Promise.all(releases);
        assert.is(replicas.filter(({ mayWrite }) => mayWrite).length, 1);
        for (const each of replicas) await each.elector.stop();
      }),
      { numRuns: runs(60) },
    );
  });
});
