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

suite("comparison with a golden", (test) => {
  const golden = normalised(list(110), list(110, 110));

  test("a list may be later than the last write of the scenario where others write", () => {
    const answered = normalised(list(115), list(115, 115));
    assert.equal(differencesOf(golden, answered, { isShared: true }), []);
  });

  test("a list is as late as recorded where nobody else writes", () => {
    const answered = normalised(list(110), list(115, 115));
    const path = "2/body/metadata/resourceVersion";
    assert.equal(differencesOf(golden, answered), [{ path, golden: "R2", answered: "after R2" }]);
  });

  test("a list is never earlier than recorded", () => {
    for (const earlier of [100, 105]) {
      const differences = differencesOf(golden, normalised(list(earlier), list(110)), { isShared: true });
      assert.equal(
        differences.map(({ path }) => path),
        ["1/body/metadata/resourceVersion"],
      );
    }
  });

  test("the pages of a list have one version, however late", () => {
    const differences = differencesOf(golden, normalised(list(115), list(117, 115)), { isShared: true });
    const answered = "after R2, unlike the first page";
    assert.equal(differences, [{ path: "2/body/metadata/resourceVersion", golden: "R2", answered }]);
  });

  test("an object has exactly the version that was recorded", () => {
    const single = (version: number): StepOutcome => ({ step: "GET $cm/a", body: object(version) });
    const differences = differencesOf(normalised(single(1), single(2)), normalised(single(1), single(1)), {
      isShared: true,
    });
    assert.ok(differences.some(({ path }) => path === "2/body/metadata/resourceVersion"));
  });
});
