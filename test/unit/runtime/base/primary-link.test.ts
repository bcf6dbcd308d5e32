import type { KubernetesObject, ObjectMeta, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import {
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  factsOf,
  isWrittenBy,
  labelValueOf,
  LINK_PROOF,
  linksOf,
  linksTo,
  namedLinkOf,
  PRIMARY_UID,
  provenLinkOf,
  selectorOf,
  sharesDependent,
  sharesPrimary,
  type LinkReading,
} from "#runtime/base/primary-link.js";
import { ProofKey } from "#runtime/base/proof-key.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const LABEL = "gen-operator.dev/controller";

suite("controller label", (test) => {
  test("is a valid label value, unique for each controller name", () => {
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

  test("is selected for one controller or for all that share a watch, in addition to a custom selector", () => {
    assert.is(selectorOf(["page"]), `${LABEL}=page`);
    assert.is(selectorOf(["b", "a", "b"]), `${LABEL} in (a,b)`);
    assert.is(selectorOf(["page"], "app=web,tier"), `${LABEL}=page,app=web,tier`);
  });

  test("identifies the writer, with the annotation of earlier versions as the fallback", () => {
    const long = "x".repeat(100);
    assert.is(isWrittenBy({ labels: { [LABEL]: labelValueOf(long) } }, long), true);
    assert.is(isWrittenBy({ labels: { [LABEL]: "other" }, annotations: { [LABEL]: "page" } }, "page"), false);
    assert.is(isWrittenBy({ annotations: { [LABEL]: long } }, long), true);
    assert.is(isWrittenBy({ labels: { app: "web" } }, "page"), undefined);
  });

  test("distinguishes dependents of the same name, unless the label was removed", () => {
    const annotations = { "gen-operator.dev/dependent": "map" };
    const desired = { annotations, labels: { [LABEL]: "page" } };
    assert.ok(sharesDependent(desired, desired));
    assert.ok(sharesDependent(desired, { annotations }));
    assert.not(sharesDependent(desired, { annotations, labels: { [LABEL]: "book" } }));
    assert.not(sharesDependent(desired, { labels: { [LABEL]: "page" } }));
  });
});

suite("primary annotations", (test) => {
  const name = { "gen-operator.dev/primary-name": "one", "gen-operator.dev/primary-type": "Page.example.com" };
  const desired = { annotations: { ...name, "gen-operator.dev/primary-namespace": "home" } };

  test("default to the namespace of the object if the namespace annotation was removed", () => {
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

suite("linksOf", (test) => {
  const key = new ProofKey(Buffer.alloc(32, 1));
  const page = { kind: "Page", group: "example.com", scope: "Namespaced" } as ResourceDefinition;
  const site = { ...page, kind: "Site", scope: "Cluster" } as ResourceDefinition;
  const primaryOf = (kind: string, namespace?: string) => ({
    ...{ apiVersion: "example.com/v1", kind },
    metadata: { name: "one", uid: "u1", ...(namespace && { namespace }) },
  });
  const objectOf = (namespace: string | undefined, metadata: Partial<ObjectMeta>) => ({
    ...{ apiVersion: "v1", kind: "ConfigMap" },
    metadata: { name: "x", ...(namespace && { namespace }), ...metadata },
  });
  const ownedBy = (kind: string, uid: string) => ({
    ownerReferences: [{ apiVersion: "example.com/v2", kind, name: "one", uid }],
  });
  const isLinked = (
    object: KubernetesObject,
    primary: KubernetesObject,
    reading: Partial<LinkReading> & Pick<LinkReading, "primary">,
  ) => linksOf(object, { isElsewhere: false, ...reading }).includes(provenLinkOf(primary));

  test("accepts an owner reference with the uid of the primary, in its namespace only", () => {
    const primary = primaryOf("Page", "home");
    assert.ok(isLinked(objectOf("home", ownedBy("Page", "u1")), primary, { primary: page }));
    assert.not(isLinked(objectOf("home", ownedBy("Page", "u2")), primary, { primary: page }));
    assert.not(isLinked(objectOf("away", ownedBy("Page", "u1")), primary, { primary: page }));
    assert.not(isLinked(objectOf("home", ownedBy("Page", "u1")), primary, { primary: page, isElsewhere: true }));
  });

  test("accepts an owner reference to a cluster-scoped primary in a configured namespace or with a proof", () => {
    const primary = primaryOf("Site");
    const owner = ownedBy("Site", "u1");
    assert.not(isLinked(objectOf("away", owner), primary, { primary: site }));
    assert.ok(isLinked(objectOf("away", owner), primary, { primary: site, namespaces: ["away"] }));
    assert.ok(isLinked(objectOf(undefined, owner), primary, { primary: site }));
    const proof = key.sign(factsOf({ name: "x", namespace: "away" }, "u1"));
    const proven = objectOf("away", { ...owner, annotations: { [LINK_PROOF]: proof } });
    assert.not(isLinked(proven, primary, { primary: site }));
    assert.ok(isLinked(proven, primary, { primary: site, key: () => key }));
    assert.not(
      isLinked(objectOf("away", { ...proven.metadata, namespace: "other" }), primary, {
        primary: site,
        key: () => key,
      }),
    );
  });

  test("accepts annotations by uid in home and configured namespaces, elsewhere only with a valid proof", () => {
    const place = fc.constantFrom("home", "stated", "away", undefined);
    const forged = fc.constantFrom("nothing", "uid", "no uid", "name", "item", "proof", "no proof");
    fc.assert(
      fc.property(place, fc.boolean(), forged, (namespace, hasItem, forgery) => {
        const primary = primaryOf("Page", "home");
        const item = hasItem ? { [DEPENDENT_ITEM]: "k" } : {};
        const { annotations } = linksTo(primary);
        const honest = { ...annotations, [DEPENDENT_NAME]: "a", ...item };
        const facts = factsOf({ name: "x", ...(namespace && { namespace }), annotations: honest }, "u1");
        const signed: { [name: string]: string } = { ...honest, [LINK_PROOF]: key.sign(facts) };
        if (forgery === "uid") signed[PRIMARY_UID] = "u2";
        if (forgery === "no uid") delete signed[PRIMARY_UID];
        if (forgery === "name") signed[DEPENDENT_NAME] = "b";
        if (forgery === "item") signed[DEPENDENT_ITEM] = "other";
        if (forgery === "proof") signed[LINK_PROOF] = key.sign([...facts, ""]);
        if (forgery === "no proof") delete signed[LINK_PROOF];
        const needsNoProof = namespace === "home" || namespace === "stated";
        const expected = forgery !== "uid" && forgery !== "no uid" && (needsNoProof || forgery === "nothing");
        const object = objectOf(namespace, { annotations: signed });
        const reading = { primary: page, namespaces: ["stated"], key: () => key };
        assert.is(isLinked(object, primary, reading), expected);
        // An object that only names the primary is found by that, so that it can be reported, or linked anew; another uid is another primary.
        const isNamed = linksOf(object, { ...reading, isElsewhere: false }).includes(namedLinkOf(primary));
        assert.is(isNamed, !expected && !(forgery === "uid" && needsNoProof));
      }),
    );
  });
});
