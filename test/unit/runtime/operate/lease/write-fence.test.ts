import fc from "../../../../support/fast-check.js";
import { WriteFence } from "#runtime/operate/leader-elector.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";

function createFence() {
  const now = { monotonicMs: 0, wallMs: 1e12 };
  const fence = new WriteFence(() => ({ ...now }));
  const pass = (ms: number) => {
    now.monotonicMs += ms;
    now.wallMs += ms;
  };
  const failure = () => {
    try {
      fence.check({ method: "PATCH", path: "/api/v1/namespaces/home/configmaps/one?fieldManager=shop" });
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  return { now, fence, pass, failure };
}

suite("WriteFence", (test) => {
  test("rejects writes before it is opened, with the path but without the query", () => {
    const { failure } = createFence();
    const said =
      "PATCH /api/v1/namespaces/home/configmaps/one was not sent, because this replica is not the leader: it has not become the leader";
    assert.is(failure(), said);
  });

  test("accepts writes until exactly 10 s after the last renewal was sent, regardless of its latency", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(9_999), fc.nat(5_000)), { maxLength: 8 }), (renewals) => {
        const { now, fence, pass, failure } = createFence();
        let since = { ...now };
        fence.open(since, 10_000, () => {});
        for (const [afterMs, latencyMs] of renewals) {
          pass(Math.min(afterMs, since.monotonicMs + 9_999 - now.monotonicMs));
          const sent = { ...now };
          pass(Math.min(latencyMs, since.monotonicMs + 9_999 - now.monotonicMs));
          fence.extend(sent, 10_000);
          since = sent;
          assert.is(failure(), "");
        }
        pass(since.monotonicMs + 9_999 - now.monotonicMs);
        assert.is(failure(), "");
        pass(1);
        assert.match(failure(), /its Lease was not renewed for 10000 ms/);
      }),
      { numRuns: runs(200) },
    );
  });

  test("stays closed after its deadline, even if a late response arrives", () => {
    const { now, fence, pass, failure } = createFence();
    fence.open({ ...now }, 10_000, () => {});
    pass(9_000);
    const sent = { ...now };
    pass(1_000);
    assert.not.equal(failure(), "");
    fence.extend(sent, 10_000);
    assert.not.equal(failure(), "");
  });

  for (const jumpMs of [-30_000, -1_001, 1_001, 3_600_000])
    test(`closes if the wall clock jumps by ${jumpMs} ms`, () => {
      const { now, fence, pass, failure } = createFence();
      fence.open({ ...now }, 10_000, () => {});
      pass(10);
      now.wallMs += jumpMs;
      assert.match(failure(), /its wall clock and monotonic clock differ by \d+ s/);
    });

  test("stays open while the wall clock is slewed by 900 ms in 9 s", () => {
    const { now, fence, pass, failure } = createFence();
    fence.open({ ...now }, 10_000, () => {});
    pass(9_000);
    now.wallMs += 900;
    assert.is(failure(), "");
  });

  test("notifies once that it is closed, by a check or by shut()", () => {
    const { now, fence, pass } = createFence();
    const told: string[] = [];
    fence.open({ ...now }, 10_000, (reason) => told.push(reason));
    pass(10_000);
    assert.is(fence.leftMs + fence.leftMs, 0);
    fence.shut("again");
    assert.equal(told, ["its Lease was not renewed for 10000 ms"]);
  });

  test("accepts writes again if it is reopened", () => {
    const { now, fence, pass, failure } = createFence();
    fence.open({ ...now }, 10_000, () => {});
    fence.shut("it was stopped");
    assert.match(failure(), /is not the leader: it was stopped$/);
    pass(50);
    fence.open({ ...now }, 10_000, () => {});
    assert.is(failure(), "");
  });
});
