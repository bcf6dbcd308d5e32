import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { LateWrites } from "#runtime/reconcile/late-writes.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { assert, suite } from "../../../support/suite.js";

const pageOf = (uid: string) => ({ metadata: { name: uid, uid } }) as KubernetesObject;
const WRITER = {};
const [one, two] = [pageOf("one"), pageOf("two")];

suite("LateWrites", (test) => {
  test("reports an aborted write as in flight for 10 s", () => {
    const clock = new VirtualClock();
    const writes = new LateWrites({ clock });
    assert.equal([writes.remainingMs(one), writes.hasAny(WRITER)], [0, false]);
    writes.note(one, WRITER);
    clock.advance(4_000);
    writes.note(two, WRITER);
    assert.equal([writes.remainingMs(one), writes.remainingMs(two)], [6_000, 10_000]);
    assert.equal([writes.hasAny(WRITER), writes.hasAny({})], [true, false]);
    writes.note(one, WRITER);
    clock.advance(10_000);
    assert.equal([writes.remainingMs(one), writes.remainingMs(two), writes.hasAny(WRITER)], [0, 0, false]);
  });

  test("reports writes of the previous process as in flight for 10 s, except for new primaries", () => {
    const clock = new VirtualClock();
    clock.advance(1_000);
    const writes = new LateWrites({ clock, startedAt: clock.now() });
    writes.noteNew(two);
    clock.advance(3_000);
    assert.equal([writes.remainingMs(one), writes.remainingMs(two), writes.hasAny(WRITER)], [7_000, 0, false]);
    writes.note(two, WRITER);
    clock.advance(6_000);
    assert.equal([writes.remainingMs(one), writes.remainingMs(two)], [1_000, 4_000]);
    clock.advance(1_000);
    assert.is(writes.remainingMs(one), 0);
  });
});
