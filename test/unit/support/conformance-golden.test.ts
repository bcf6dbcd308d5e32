import { differencesOf } from "#test/support/conformance/conformance-golden.js";
import { normaliseOutcomes } from "#test/support/conformance/conformance-normalise.js";
import type { StepOutcome } from "#test/support/conformance/conformance-play.js";
import { assert, suite } from "#test/support/suite.js";

const object = (version: number) => ({ metadata: { uid: `uid-${version}`, resourceVersion: String(version) } });

const list = (version: number, firstPageVersion?: number): StepOutcome => ({
  step: "GET $cm",
  body: { metadata: { resourceVersion: String(version) }, items: [object(100), object(110)] },
  ...(firstPageVersion === undefined ? {} : { firstPageVersion: String(firstPageVersion) }),
});

const normalised = (...outcomes: StepOutcome[]) => normaliseOutcomes(outcomes, "ns");

suite("golden comparison", (test) => {
  const golden = normalised(list(110), list(110, 110));

  test("accepts a later list version if other clients write", () => {
    const answered = normalised(list(115), list(115, 115));
    assert.equal(differencesOf(golden, answered, { isShared: true }), []);
  });

  test("rejects a later list version if no other client writes", () => {
    const answered = normalised(list(110), list(115, 115));
    const path = "2/body/metadata/resourceVersion";
    assert.equal(differencesOf(golden, answered), [{ path, golden: "R2", answered: "after R2" }]);
  });

  test("rejects an earlier list version", () => {
    for (const earlier of [100, 105]) {
      const differences = differencesOf(golden, normalised(list(earlier), list(110)), { isShared: true });
      assert.equal(
        differences.map(({ path }) => path),
        ["1/body/metadata/resourceVersion"],
      );
    }
  });

  test("rejects pages of a list with different versions", () => {
    const differences = differencesOf(golden, normalised(list(115), list(117, 115)), { isShared: true });
    const answered = "after R2, unlike the first page";
    assert.equal(differences, [{ path: "2/body/metadata/resourceVersion", golden: "R2", answered }]);
  });

  test("rejects another version of a single object", () => {
    const single = (version: number): StepOutcome => ({ step: "GET $cm/a", body: object(version) });
    const differences = differencesOf(normalised(single(1), single(2)), normalised(single(1), single(1)), {
      isShared: true,
    });
    assert.ok(differences.some(({ path }) => path === "2/body/metadata/resourceVersion"));
  });
});
