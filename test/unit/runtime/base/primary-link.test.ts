import { isWrittenBy, labelValueOf, selectorOf, sharesDependent, sharesPrimary } from "#runtime/base/primary-link.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const LABEL = "gen-operator.dev/controller";

suite("the label of a controller", (test) => {
  test("is a valid value for every name, and another one for another name", () => {
    const name = fc.oneof(
      fc.string(),
      fc.string({ minLength: 60, maxLength: 70 }),
      fc.constantFrom("web-page", "a.b_c"),
    );
    fc.assert(
      fc.property(name, name, (one, other) => {
        assert.match(labelValueOf(one), /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/);
        assert.is(labelValueOf(one) === labelValueOf(other), one === other);
      }),
    );
    const long = "x".repeat(63);
    assert.is(labelValueOf(long), long);
    assert.not.equal(labelValueOf(`${long}a`), labelValueOf(`${long}b`));
  });

  test("is selected for one controller, or for all that share a watch in a stable order, beside the user's selector", () => {
    assert.is(selectorOf(["page"]), `${LABEL}=page`);
    assert.is(selectorOf(["b", "a", "b"]), `${LABEL} in (a,b)`);
    assert.is(selectorOf(["page"], "app=web,tier"), `${LABEL}=page,app=web,tier`);
  });

  test("says who wrote an object, as the annotation of earlier versions does where there is no label", () => {
    const long = "x".repeat(100);
    assert.is(isWrittenBy({ labels: { [LABEL]: labelValueOf(long) } }, long), true);
    assert.is(isWrittenBy({ labels: { [LABEL]: "other" }, annotations: { [LABEL]: "page" } }, "page"), false);
    assert.is(isWrittenBy({ annotations: { [LABEL]: long } }, long), true);
    assert.is(isWrittenBy({ labels: { app: "web" } }, "page"), undefined);
  });

  test("tells dependents of one name apart, unless somebody took it off", () => {
    const annotations = { "gen-operator.dev/dependent": "map" };
    const desired = { annotations, labels: { [LABEL]: "page" } };
    assert.ok(sharesDependent(desired, desired));
    assert.ok(sharesDependent(desired, { annotations }));
    assert.not(sharesDependent(desired, { annotations, labels: { [LABEL]: "book" } }));
    assert.not(sharesDependent(desired, { labels: { [LABEL]: "page" } }));
  });
});

suite("the annotations of a primary", (test) => {
  const name = { "gen-operator.dev/primary-name": "one", "gen-operator.dev/primary-type": "Page.example.com" };
  const desired = { annotations: { ...name, "gen-operator.dev/primary-namespace": "home" } };

  test("mean its own namespace where somebody took the namespace off an object", () => {
    assert.ok(sharesPrimary(desired, { namespace: "home", annotations: name }));
    assert.not(sharesPrimary(desired, { namespace: "away", annotations: name }));
    assert.not(sharesPrimary(desired, { annotations: name }));
    assert.not(
      sharesPrimary(desired, { namespace: "home", annotations: { ...name, "gen-operator.dev/primary-name": "two" } }),
    );
    assert.ok(sharesPrimary({ annotations: name }, { namespace: "home", annotations: name }));
    assert.not(sharesPrimary({ annotations: name }, { namespace: "home", annotations: desired.annotations }));
  });
});
