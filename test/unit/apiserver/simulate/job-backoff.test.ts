import { JobBackoff } from "#apiserver/simulate/jobs/jobs.js";
import type { Pod } from "#apiserver/simulate/pods/pod.js";
import { assert, suite } from "../../../support/suite.js";

suite("JobBackoff", (test) => {
  const pod = (uid: string, phase: string) => ({ metadata: { uid }, status: { phase } }) as Pod;
  const left = (backoff: JobBackoff, nowMs: number) => backoff.leftMs("job", { nowMs, firstMs: 100 });

  test("doubles the delay with each failure, up to 60 times the first one", () => {
    const backoff = new JobBackoff();
    const pauses = Array.from({ length: 8 }, (_, index) => {
      backoff.note("job", pod(`pod-${index}`, "Failed"), 0);
      return left(backoff, 0);
    });
    assert.equal(pauses, [100, 200, 400, 800, 1_600, 3_200, 6_000, 6_000]);
    assert.is(left(backoff, 5_900), 100);
    assert.is(left(backoff, 6_001), 0);
  });

  test("counts a Pod once and resets after a success", () => {
    const backoff = new JobBackoff();
    for (let count = 0; count < 3; count++) backoff.note("job", pod("a", "Failed"), 0);
    assert.is(left(backoff, 0), 100);
    backoff.note("job", pod("b", "Succeeded"), 0);
    assert.is(left(backoff, 0), 0);
  });

  test("counts each Job separately", () => {
    const backoff = new JobBackoff();
    backoff.note("other", pod("a", "Failed"), 0);
    assert.is(left(backoff, 0), 0);
  });
});
