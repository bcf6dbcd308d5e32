import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { StuckPrimaries } from "#runtime/reconcile/primary-events.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { assert, suite } from "../../../support/suite.js";

const FINALIZER = "pages.example.com/finalizer";
const SECOND = 1_000;
const logger = { debug() {}, info() {}, warn() {}, error() {} };

function pageOf(name: string, rest: object = {}): KubernetesObject {
  const metadata = { name, namespace: "home", uid: `uid-${name}`, finalizers: [FINALIZER], ...rest };
  return { apiVersion: "example.com/v1", kind: "Page", metadata };
}

const deletedOf = (name: string) => pageOf(name, { deletionTimestamp: "2026-11-29T00:00:00Z" });

function createStuck(pages: readonly KubernetesObject[] = []) {
  const clock = new VirtualClock();
  const reported: string[] = [];
  const state = { pages, isFailing: false, lists: 0 };
  const stuck = new StuckPrimaries({
    ...{ controller: "page", finalizer: FINALIZER, selector: "shard=a", clock, logger },
    definition: { apiVersion: "example.com/v1", kind: "Page", plural: "pages" } as never,
    events: { record: ({ about }, { reason }) => void reported.push(`${reason} ${about.metadata.name}`) },
    signal: new AbortController().signal,
    async *list() {
      state.lists++;
      if (state.isFailing) throw new Error("503");
      yield state.pages;
    },
    isSelected: ({ metadata }) => metadata.labels?.["shard"] === "a",
    isGone: () => Promise.resolve(false),
    leftOf: () => [],
    linked: () => [],
  });
  return {
    ...{ clock, reported, state, stuck },
    wait: async (ms: number) => {
      // A check goes on in later turns, and schedules the next one.
      for (const end = clock.now() + ms; clock.now() < end;) {
        clock.advance(Math.min(SECOND, end - clock.now()));
        await new Promise(setImmediate);
      }
    },
    leave: (page: KubernetesObject) => stuck.onDeleted(page, { isReleased: false, external: () => [] }),
  };
}

suite("StuckPrimaries", (test) => {
  test("lists with growing pauses while an unselected primary that is not being deleted has the finalizer", async () => {
    const { stuck, state, reported, wait } = createStuck([pageOf("one")]);
    await stuck.start();
    await wait(3_600 * SECOND);
    assert.equal(reported, []);
    assert.ok(state.lists > 5 && state.lists < 15, `${state.lists} lists in an hour`);
    assert.equal(stuck.all, []);
    state.pages = [deletedOf("one")];
    await wait(600 * SECOND);
    assert.equal(reported, ["NotSelected one"]);
    assert.is(stuck.all.length, 1);
    state.pages = [];
    await wait(600 * SECOND);
    assert.equal(stuck.all, []);
  });

  test("lists once if every primary with the finalizer is selected", async () => {
    const { stuck, state, wait } = createStuck([
      pageOf("one", { labels: { shard: "a" } }),
      pageOf("two", { finalizers: [] }),
    ]);
    await stuck.start();
    await wait(3_600 * SECOND);
    assert.is(state.lists, 1);
  });

  test("lists again after the list at startup failed", async () => {
    const { stuck, state, reported, wait } = createStuck([deletedOf("one")]);
    state.isFailing = true;
    await stuck.start();
    state.isFailing = false;
    await wait(15 * SECOND);
    assert.equal(reported, ["NotSelected one"]);
  });

  test("does not postpone a check when more primaries leave the selector", async () => {
    const { state, reported, wait, leave } = createStuck([deletedOf("one")]);
    leave(pageOf("one"));
    for (let count = 0; count < 30; count++) {
      leave(pageOf(`other-${count}`));
      await wait(SECOND);
    }
    assert.equal(reported, ["NotSelected one"]);
    assert.ok(state.lists >= 2 && state.lists <= 4, `${state.lists} lists`);
  });

  test("checks within 10 s after a primary leaves the selector, despite other unselected primaries", async () => {
    const { stuck, state, reported, wait, leave } = createStuck([pageOf("other")]);
    await stuck.start();
    await wait(3_600 * SECOND);
    leave(pageOf("one"));
    state.pages = [pageOf("other"), deletedOf("one")];
    await wait(11 * SECOND);
    assert.equal(reported, ["NotSelected one"]);
  });
});
