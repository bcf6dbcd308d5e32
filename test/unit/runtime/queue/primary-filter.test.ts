import type { DecodedResource, KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { assert, suite } from "../../../support/suite.js";
import { createBed } from "./controller-bed.js";

const DELETING = { deletionTimestamp: "2026-11-21T00:00:00Z" };

suite("predicates of the primary", (test) => {
  test("ignore updates with an unchanged generation, except a deletion or another uid", async () => {
    const { observe, settle, started } = createBed();
    const given: [Partial<KubernetesObject["metadata"]>, number][] = [
      [{ generation: 1 }, 1],
      [{ generation: 1, labels: { a: "b" } }, 1],
      [{ generation: 2 }, 2],
      [{ generation: 1, uid: "u2" }, 3],
      [{ generation: 1, uid: "u2", ...DELETING }, 4],
      [{ generation: 1, uid: "u2", ...DELETING, labels: { a: "b" } }, 4],
    ];
    for (const [metadata, count] of given) {
      observe(metadata);
      await settle();
      assert.is(started.length, count, JSON.stringify(metadata));
    }
  });

  test("accept every update of an object without a generation", async () => {
    const { observe, settle, started } = createBed();
    for (let index = 0; index < 3; index++) {
      observe({ generation: undefined });
      await settle();
    }
    assert.is(started.length, 3);
  });

  test("ignore a generation that the last reconcile has seen, and accept newer ones", async () => {
    const { observe, settle, started, hold } = createBed();
    const finish = hold();
    observe({ generation: 1 });
    await settle();
    observe({ generation: 2 });
    observe({ generation: 2 });
    await finish();
    assert.is(started.length, 2);
    observe({ generation: 2 });
    await finish();
    assert.is(started.length, 2);
  });

  test("accept an update in which another client removed what the controller wrote", async () => {
    const isUndone = ({ object }: DecodedResource) => object.metadata.finalizers === undefined;
    const { observe, settle, started } = createBed({ isUndone });
    observe({ generation: 1, finalizers: ["page"] });
    await settle();
    observe({ generation: 1 });
    await settle();
    assert.is(started.length, 2);
  });

  test("accept every update with generationAware: false or defaultFilters: false", async () => {
    for (const definition of [{ generationAware: false }, { defaultFilters: false }]) {
      const { observe, settle, started } = createBed(definition);
      for (let index = 0; index < 2; index++) {
        observe({ generation: 1 });
        await settle();
      }
      assert.is(started.length, 2, JSON.stringify(definition));
    }
  });

  test("combine custom filters with the default filter, or use them alone without it", async () => {
    const hasLabel = ({ metadata }: KubernetesObject) => metadata.labels !== undefined;
    for (const [defaultFilters, count] of [
      [true, 2],
      [false, 3],
    ] as const) {
      const filters = { onUpdate: (primary: KubernetesObject) => hasLabel(primary) };
      const { observe, settle, started } = createBed({ filters, defaultFilters });
      for (const metadata of [
        { generation: 1 },
        { generation: 2 },
        { generation: 2, labels: {} },
        { generation: 2, labels: {} },
      ]) {
        observe(metadata);
        await settle();
      }
      assert.is(started.length, count);
    }
  });

  test("apply onAdd to new primaries and generic to all events, but always drop the state of deleted ones", async () => {
    const isWanted = ({ metadata }: KubernetesObject) => metadata.labels?.["wanted"] === "true";
    const wanted = { labels: { wanted: "true" } };
    for (const filters of [{ onAdd: isWanted }, { generic: isWanted }]) {
      const { observe, observeDeletion, settle, started, controller } = createBed({
        filters,
        onAllEvents: true,
      });
      observe({ name: "two" });
      await settle();
      assert.is(started.length, 0);
      observe(wanted);
      await settle();
      assert.is(started.length, 1);
      observe({ labels: {} });
      await settle();
      observeDeletion();
      await settle();
      assert.is(controller.counts().states, 0);
      assert.is(started.length, "onAdd" in filters ? 3 : 1);
    }
  });

  test("accept a new deletionTimestamp once despite onAdd and onUpdate, unless generic rejects it", async () => {
    for (const [filters, count] of [
      [{ onAdd: () => false, onUpdate: () => false }, 1],
      [{ generic: () => false }, 0],
    ] as const)
      for (const isKnownBefore of [true, false]) {
        const { observe, settle, started } = createBed({ filters, defaultFilters: false });
        for (const metadata of [...(isKnownBefore ? [{}] : []), DELETING, DELETING]) {
          observe({ generation: 1, ...metadata });
          await settle();
        }
        assert.is(started.length, count, JSON.stringify({ count, isKnownBefore }));
      }
  });

  test("accept the event and log an error if a filter throws", async () => {
    const filters = {
      onAdd: () => {
        throw new Error("broken");
      },
    };
    const { observe, settle, started, lines } = createBed({ filters });
    observe();
    await settle();
    assert.is(started.length, 1);
    assert.equal([lines[0]?.level, lines[0]?.message], ["error", "a filter failed, and the event passes: broken"]);
  });
});
