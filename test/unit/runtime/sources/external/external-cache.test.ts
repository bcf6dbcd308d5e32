// JOSDK's ExternalResourceCachingEventSourceTest; the titles in brackets are its own.
import type { ObjectKey } from "#runtime/base/kubernetes-object.js";
import { HealthRecord, createEventGate } from "#runtime/sources/event-source.js";
import { ExternalCache, kubernetesResource, singleResource } from "#runtime/sources/external-cache.js";
import { cachingInboundSource } from "#runtime/sources/caching-inbound-source.js";
import { perPrimaryPollingSource, pollingSource } from "#runtime/sources/polling-sources.js";
import { assert, suite } from "../../../../support/suite.js";
import { primaryOf } from "../source-context.js";
import type { EventFilters } from "#runtime/cache/resource-view.js";

interface Sample {
  readonly name: string;
  readonly value: string;
}

const a1 = { name: "a", value: "1" };
const a2 = { name: "a", value: "2" };
const b1 = { name: "b", value: "1" };

function createCache(filters: EventFilters<Sample> = {}) {
  return new ExternalCache<Sample>(({ name }) => name, createEventGate(filters, new HealthRecord("test")));
}

/** A cache with a grace, and its time. */
function createPatient(graceMs = 30_000) {
  const clock = { now: 0 };
  const gate = createEventGate<Sample>({}, new HealthRecord("test"));
  return { cache: new ExternalCache<Sample>(({ name }) => name, gate, { graceMs, time: () => clock.now }), clock };
}

suite("external cache with grace", (test) => {
  const fetchInto = (cache: ExternalCache<Sample>, ...resources: readonly Sample[]) =>
    cache.replace("x", resources, cache.now);

  test("keeps a missing resource until a second, later fetch lacks it too", () => {
    const { cache } = createPatient();
    fetchInto(cache, a1, b1);
    const begun = cache.now;
    assert.is(fetchInto(cache, b1), false);
    assert.equal([cache.of("x"), cache.isUnsure("x"), cache.isUnsure()], [[a1, b1], true, true]);
    assert.is(cache.replace("x", [b1], begun), false, "it began before the other ended");
    assert.is(fetchInto(cache, a1, b1), false);
    assert.is(cache.isUnsure("x"), false, "it was there all the time");
    fetchInto(cache, b1);
    assert.is(fetchInto(cache, b1), true);
    assert.equal([cache.of("x"), cache.isUnsure()], [[b1], false]);
  });

  test("keeps a created resource until a fetch returns it, or 30 s and two fetches without it", () => {
    const { cache, clock } = createPatient();
    fetchInto(cache);
    cache.recordCreated("x", a1);
    clock.now = 29_999;
    for (let time = 0; time < 3; time++) assert.is(fetchInto(cache), false);
    assert.equal(cache.of("x"), [a1]);
    clock.now = 30_000;
    assert.is(fetchInto(cache), false);
    assert.is(fetchInto(cache), true);
    assert.equal(cache.of("x"), []);
    cache.recordCreated("x", a1);
    fetchInto(cache, a1);
    fetchInto(cache);
    assert.is(fetchInto(cache), true, "it was confirmed");
  });

  test("keeps an updated resource while fetches return earlier states, and accepts any other state", () => {
    const { cache, clock } = createPatient();
    const [a3, a4] = ["3", "4"].map((value) => ({ name: "a", value })) as [Sample, Sample];
    fetchInto(cache, a1);
    cache.recordUpdated("x", a2, a1);
    cache.recordUpdated("x", a3, a2);
    for (const stale of [a1, a2, a1]) assert.is(fetchInto(cache, stale), false);
    assert.equal(cache.of("x"), [a3]);
    fetchInto(cache, a3);
    assert.is(fetchInto(cache, a1), true, "once confirmed, an earlier state is a change of somebody");
    cache.recordUpdated("x", a2, a1);
    assert.is(fetchInto(cache, a4), true);
    assert.equal(cache.of("x"), [a4]);
    cache.recordUpdated("x", a1, a4);
    clock.now = 30_000;
    assert.is(fetchInto(cache, a4), true, "the update had no effect");
  });

  test("hides a deleted resource until a fetch lacks it or the grace is over", () => {
    const { cache, clock } = createPatient();
    fetchInto(cache, a1);
    cache.recordDeleted("x", a1);
    assert.is(fetchInto(cache, a1), false);
    assert.is(fetchInto(cache, a2), false, "it is being deleted");
    assert.equal(cache.of("x"), []);
    clock.now = 30_000;
    assert.is(fetchInto(cache, a2), true);
    cache.recordDeleted("x", a2);
    fetchInto(cache);
    assert.is(fetchInto(cache, a1), true, "it was created anew");
    cache.recordDeleted("x", a1);
    cache.recordCreated("x", a2);
    for (const lists of [[a1], []]) assert.is(fetchInto(cache, ...lists), false);
    assert.equal(cache.of("x"), [a2]);
  });

  test("confirms the absence of a primary in a full fetch twice, and then drops it", () => {
    const { cache } = createPatient();
    cache.replaceAll(new Map([["x", [a1]]]), cache.now);
    assert.equal(cache.replaceAll(new Map(), cache.now), []);
    assert.equal(cache.of("x"), [a1]);
    assert.equal(cache.replaceAll(new Map(), cache.now), ["x"]);
    assert.is(cache.has("x"), false);
    cache.recordCreated("y", a1);
    cache.recordDeleted("y", a1);
    assert.equal(cache.replaceAll(new Map(), cache.now), []);
    assert.equal(cache.replaceAll(new Map([["y", [a1]]]), cache.now), [], "it is deleted although a list shows it");
  });

  test("accepts pushed resources immediately", () => {
    const { cache } = createPatient();
    cache.recordCreated("x", a1);
    assert.is(cache.delete("x", "a"), true);
    cache.recordCreated("x", a1);
    assert.is(cache.replace("x", []), true);
    fetchInto(cache, a1);
    cache.recordUpdated("x", a2, a1);
    assert.is(cache.put("x", a1), true);
    assert.is(fetchInto(cache, a2), true);
  });

  test("accepts every fetch immediately without a grace", () => {
    const { cache } = createPatient(0);
    cache.recordCreated("x", a1);
    assert.is(fetchInto(cache), true);
    assert.equal([cache.of("x"), cache.isUnsure()], [[], false]);
  });
});

suite("external cache", (test) => {
  test("reports a new resource as a change (receivedNewResource)", () => {
    const cache = createCache();
    assert.is(cache.has("home/one"), false);
    assert.is(cache.replace("home/one", [a1]), true);
    assert.equal(cache.of("home/one"), [a1]);
    assert.equal(cache.of("home/two"), []);
  });

  test("reports a changed resource, but not an equal one (notPropagatesEventIfTheResourceIsNotChanged)", () => {
    const cache = createCache();
    cache.replace("home/one", [a1]);
    assert.is(cache.replace("home/one", [{ ...a1 }]), false);
    assert.is(cache.replace("home/one", [a2]), true);
    assert.is(cache.put("home/one", { ...a2 }), false);
    assert.equal(cache.of("home/one"), [a2]);
  });

  test("reports the deletion of a known resource (propagatesEventOnDeleteIfThereIsPrimaryUidInCache)", () => {
    const cache = createCache();
    cache.replace("home/one", [a1, b1]);
    assert.is(cache.delete("home/one", "c"), false);
    assert.is(cache.delete("home/one", "a"), true);
    assert.equal(cache.of("home/one"), [b1]);
    assert.is(cache.replace("home/one", []), true);
    assert.is(cache.replace("home/one", []), false);
    assert.is(cache.replace("home/two", []), false, "unknown");
    assert.is(cache.delete("home/two", "a"), false, "unknown");
  });

  test("distinguishes resources of a primary by id (handleMultipleResources)", () => {
    const cache = createCache();
    assert.is(cache.replace("home/one", [a1, b1]), true);
    assert.equal(cache.of("home/one"), [a1, b1]);
    assert.is(cache.replace("home/one", [b1, a1]), false, "the order does not matter");
    assert.is(cache.put("home/one", a2), true);
    assert.equal(cache.of("home/one"), [a2, b1], "sorted by id, whatever was put last");
  });

  test("deletes resources missing in a full fetch (deleteImplicitMultipleResourcesHandledOnPartial)", () => {
    const cache = createCache();
    const first = new Map([
      ["home/one", [a1, b1]],
      ["home/two", [a1]],
      ["home/three", [a1]],
    ]);
    assert.equal(cache.replaceAll(first), ["home/one", "home/two", "home/three"]);
    assert.equal(cache.replaceAll(new Map([...first, ["home/one", [a1]]])), ["home/one"]);
    assert.equal(cache.replaceAll(new Map([["home/one", [a1]]])), ["home/two", "home/three"]);
    assert.equal(cache.of("home/two"), []);
  });

  test("reports a change if one resource passes (canFilterOnAddEvents, canFilterOnDeleteEvents, filtersUpdateEvents)", () => {
    const isOne = ({ value }: Sample) => value === "1";
    const add = createCache({ onAdd: isOne });
    assert.equal([add.replace("x", [a2]), add.replace("y", [a2, b1])], [false, true]);
    assert.equal(add.of("x"), [a2], "it is known all the same");
    const update = createCache({ onUpdate: (resource, old) => isOne(old) && !isOne(resource) });
    update.replace("x", [a1]);
    assert.equal([update.replace("x", [a2]), update.replace("x", [a1])], [true, false]);
    const removal = createCache({ onDelete: isOne });
    removal.replace("x", [a2, b1]);
    assert.equal([removal.replace("x", [b1]), removal.replace("x", [])], [false, true]);
    removal.replaceAll(new Map([["x", [a2]]]));
    assert.equal(removal.replaceAll(new Map()), [], "an implicit deletion is filtered, too");
  });

  test("applies a generic filter to all changes (genericFilteringEvents)", () => {
    const cache = createCache({ generic: () => false });
    assert.equal([cache.replace("x", [a1]), cache.replace("x", [a2]), cache.replace("x", [])], [false, false, false]);
  });

  test("returns snapshots (returnedResourcesAreASnapshot)", () => {
    const cache = createCache();
    cache.replace("x", [a1]);
    const before = cache.of("x");
    cache.replace("x", [a2, b1]);
    assert.equal(before, [a1]);
  });

  test("stores an own creation unless the resource is known, and reports no change for it later", () => {
    const cache = createCache();
    cache.recordCreated("x", a1);
    assert.equal(cache.of("x"), [a1]);
    assert.is(cache.replace("x", [a1]), false);
    cache.recordCreated("x", a2);
    assert.equal(cache.of("x"), [a1]);
  });

  test("stores an own update only if the known state is the previous one (recentUpdateIgnoredForUnknown)", () => {
    const cache = createCache();
    cache.recordUpdated("x", a2, a1);
    assert.equal(cache.of("x"), [], "unknown");
    cache.replace("x", [a1]);
    cache.recordUpdated("x", a2, { ...a1 });
    assert.equal(cache.of("x"), [a2]);
    cache.recordUpdated("x", { name: "a", value: "3" }, a1);
    assert.equal(cache.of("x"), [a2], "something else came meanwhile");
    assert.is(cache.replace("x", [a2]), false);
  });

  test("keeps own changes that follow the start of a fetch", () => {
    const cache = createCache();
    cache.replace("x", [a1, b1]);
    const since = cache.now;
    cache.recordUpdated("x", a2, a1);
    cache.recordDeleted("x", b1);
    cache.recordCreated("y", a1);
    assert.equal(cache.replaceAll(new Map([["x", [a1, b1]]]), since), []);
    assert.equal([cache.of("x"), cache.of("y")], [[a2], [a1]]);
    assert.is(cache.replace("x", [a1, b1], since), false, "nor does another one");
    assert.equal(cache.of("x"), [a2]);
  });

  test("accepts a fetch that began after an own change", () => {
    const cache = createCache();
    cache.recordCreated("x", a1);
    cache.recordCreated("y", a1);
    assert.equal(cache.replaceAll(new Map([["x", [b1]]]), cache.now), ["y", "x"]);
    assert.equal([cache.of("x"), cache.of("y")], [[b1], []]);
  });

  test("rejects two resources of a primary with the same id and keeps its state", () => {
    const cache = createCache();
    cache.replace("x", [a1]);
    assert.throws(
      () => cache.replaceAll(new Map([["x", [a2, a1]]])),
      /primary "x" has two resources with the id "a"; idOf has to tell them apart/,
    );
    assert.equal(cache.of("x"), [a1]);
  });

  test("ignores a duplicate resource in a list", () => {
    const cache = createCache();
    cache.replaceAll(new Map([["x", [a1, b1, { ...a1 }]]]));
    assert.equal(cache.of("x"), [a1, b1]);
  });

  test("rejects a key that is not a string and keeps its state", () => {
    const cache = createCache();
    const key = 5 as unknown as ObjectKey;
    const message = 'a primary is named by number; a key is "namespace/name" or "name"';
    assert.throws(
      () =>
        cache.replaceAll(
          new Map([
            ["x", [a1]],
            [key, [a1]],
          ]),
        ),
      message,
    );
    assert.throws(() => cache.put(key, a1), message);
    assert.throws(() => cache.replace(key, [a1]), message);
    assert.equal([cache.has("x"), cache.has(key)], [false, false]);
  });

  test("rejects a source without idOf or fetch", () => {
    const sources = { pollingSource, perPrimaryPollingSource, cachingInboundSource };
    for (const [kind, create] of Object.entries(sources) as [string, (options: object) => unknown][]) {
      const options = { name: "prices", intervalMs: 1, idOf: singleResource, fetch: () => new Map() };
      const wrong = { ...options, idOf: undefined };
      assert.throws(() => create(wrong), 'event source "prices" has undefined for idOf; it needs a function', kind);
      assert.throws(() => create({ ...options, fetch: "f" }), 'has "f" for fetch; it needs a function', kind);
    }
  });

  test("provides singleResource and kubernetesResource as idOf", () => {
    assert.is(singleResource(a1), singleResource(b1));
    assert.is(kubernetesResource(primaryOf("home/one")), "home/one");
  });
});
