import {
  type LeaseSpec,
  acquiredSpec,
  checkLeaderElection,
  createIdentity,
  leaseTermsOf,
  releasedSpec,
} from "#runtime/operate/lease-lock.js";
import { assert, suite } from "../../../../support/suite.js";

suite("leader election settings", (test) => {
  const refused: readonly (readonly [settings: object, message: string])[] = [
    [{ leaseDurationMs: 0 }, "leaseDuration is 0 ms, and has to be above 0"],
    [{ retryPeriodMs: Number.NaN }, "retryPeriod is NaN ms, and has to be above 0"],
    [{ leaseDurationMs: 15_500 }, "leaseDuration is 15500 ms, but a Lease counts in whole seconds"],
    [
      { leaseDurationMs: 10_000 },
      "leaseDuration (10000 ms) has to be above renewDeadline (10000 ms): otherwise another replica begins to write before this one has stopped",
    ],
    [
      { renewDeadlineMs: 2_400 },
      "renewDeadline (2400 ms) has to be above 1.2 times retryPeriod (2000 ms): otherwise the time is up before the first renewal",
    ],
    [
      { name: "Shop_Leader" },
      'name is "Shop_Leader", and has to be one of a Kubernetes object: lower-case letters, digits, "-" and "."',
    ],
    [
      { namespace: "a.b" },
      'namespace is "a.b", and has to be the name of a namespace: lower-case letters, digits and "-"',
    ],
  ];
  for (const [settings, message] of refused)
    test(`reject ${JSON.stringify(settings)} with a reason`, () => {
      let said = "";
      try {
        checkLeaderElection(settings);
      } catch (error) {
        said = (error as Error).message;
      }
      assert.is(said, `leaderElection: ${message}`);
    });

  test("default to those of controller-runtime, a name from the first controller and the pod namespace", () => {
    checkLeaderElection({});
    assert.equal(leaseTermsOf({}, { controller: "Web_Page", namespace: "home" }), {
      ref: { name: "web-page-leader", namespace: "home" },
      ...{ leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 },
    });
    assert.throws(
      () => leaseTermsOf({}, { controller: "page" }),
      /^leader election needs the namespace of its Lease: set leaderElection\.namespace, because the connection has no namespace$/,
    );
  });

  test("give each candidate a unique identity that starts with the pod name", () => {
    const [one, other] = [createIdentity({ POD_NAME: "shop-1" }), createIdentity({ POD_NAME: "shop-1" })];
    assert.match(one, /^shop-1_[0-9a-f-]{36}$/);
    assert.not.equal(one, other);
  });
});

suite("Lease", (test) => {
  const now = new Date("2026-11-23T12:00:00.125Z");
  const later = new Date("2026-11-23T12:00:02.000Z");
  const acquire = (spec: LeaseSpec | undefined, identity = "a", at = now) =>
    acquiredSpec(spec, { identity, durationMs: 15_000, now: at });

  test("starts with 0 leaseTransitions and adds one for every other holder", () => {
    const first = acquire(undefined);
    assert.equal(first, {
      holderIdentity: "a",
      leaseDurationSeconds: 15,
      acquireTime: "2026-11-23T12:00:00.125000Z",
      renewTime: "2026-11-23T12:00:00.125000Z",
      leaseTransitions: 0,
    });
    const renewed = acquire(first, "a", later);
    assert.equal(renewed, { ...first, renewTime: "2026-11-23T12:00:02.000000Z" });
    assert.is(acquire(renewed, "b", later).leaseTransitions, 1);
    assert.is(acquire(releasedSpec(renewed, later), "b", later).leaseTransitions, 1);
    assert.is(acquire({}, "b").leaseTransitions, 1);
  });

  test("has no holder and a duration of 1 s after a release, and keeps foreign fields", () => {
    const spec = { ...acquire(undefined), strategy: "OldestEmulationVersion" };
    assert.equal(releasedSpec(spec, later), {
      ...spec,
      holderIdentity: "",
      leaseDurationSeconds: 1,
      acquireTime: "2026-11-23T12:00:02.000000Z",
      renewTime: "2026-11-23T12:00:02.000000Z",
    });
  });
});
