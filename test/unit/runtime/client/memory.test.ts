// What objects leave behind that come and go.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { createBed, SUCCESS } from "../queue/controller-bed.js";

const CYCLES = 100_000;
const AT_ONCE = 1000;
// What V8 itself keeps more or less of, such as compiled code; a single forgotten entry of each cycle would be more than this.
const SLACK_BYTES = 5 * 1024 * 1024;

function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

function objectOf(cycle: number, version: number): KubernetesObject {
  const labels = { group: `group-${cycle % 7}`, cycle: `${cycle}` };
  const named = { name: `a-${cycle}`, namespace: "x", uid: `u-${cycle}`, resourceVersion: `${version}`, labels };
  return { apiVersion: "v1", kind: "ConfigMap", metadata: named };
}

const indexes = { labels: ({ metadata }: KubernetesObject) => Object.values(metadata.labels ?? {}) };

/** A view in which objects are created, changed and deleted, by itself and by others. */
function createCycles(cache: ResourceCache) {
  const view = new ResourceView(builtinDefinition("v1", "ConfigMap"), indexes);
  view.attach(cache);
  let [told, version] = [0, 0];
  view.onChange(() => void told++);
  const write = (cycle: number, isEchoed: boolean) => {
    const key = `x/a-${cycle}`;
    const entry = { object: objectOf(cycle, ++version) };
    view.beginWrite(key)({ entry, isOwn: true });
    if (isEchoed) cache.observe({ object: objectOf(cycle, version) });
  };
  const cycle = (index: number) => {
    write(index, true);
    view.get(`x/a-${index}`);
    // Every third one is changed again by us, every other one by somebody, and of every fifth one the last echo never comes.
    if (index % 3 === 0) write(index, index % 5 !== 0);
    if (index % 2 === 0) cache.observe({ object: objectOf(index, ++version) });
    if (index % 4 === 0) view.beginDeletion(`x/a-${index}`, `u-${index}`)({ isGone: true });
    cache.observeDeletion(objectOf(index, ++version));
  };
  const counts = () => ({ ...cache.counts, ownWrites: view.ownWrites, known: [...view.keys()].length });
  return { cycle, counts, told: () => told };
}

const NOTHING = { observed: 0, pending: 0, ownDeletions: 0, indexed: 0, held: 0, ownWrites: 0, known: 0 };

suite("memory", (test) => {
  const caches = {
    "a cache": () => new ResourceCache(),
    "a bounded cache": () => new ResourceCache({ bound: { maxObjects: 10, fetch: async () => undefined } }),
  };
  for (const [name, createCache] of Object.entries(caches))
    test.thorough(
      `keeps nothing in ${name}, its indexes and windows after 100,000 objects were created and deleted`,
      () => {
        const { cycle, counts, told } = createCycles(createCache());
        const run = (from: number, to: number) => {
          for (let index = from; index < to; index++) cycle(index);
        };
        run(0, AT_ONCE);
        const before = heapUsed();
        run(AT_ONCE, CYCLES);
        assert.equal(counts(), NOTHING);
        assert.ok(told() > CYCLES / 2);
        const growth = heapUsed() - before;
        assert.ok(growth < SLACK_BYTES, `the heap grew by ${growth} bytes`);
      },
      { timeoutMs: 60_000 },
    );

  test.thorough(
    "keeps nothing in a controller after 100,000 primaries were reconciled and deleted",
    async () => {
      const bed = createBed({ rateLimit: { maxReconciliations: 10, withinMs: 1000 } });
      bed.respond(() => ({ ...SUCCESS, rescheduleAfterMs: 60_000 }));
      const run = async (from: number, to: number) => {
        for (let start = from; start < to; start += AT_ONCE) {
          const names = Array.from({ length: AT_ONCE }, (_, index) => `a-${start + index}`);
          for (const name of names) bed.observe({ name, uid: name });
          while (bed.controller.counts().queued + bed.controller.counts().running > 0) await bed.settle();
          for (const name of names) bed.observeDeletion(`home/${name}`);
          while (bed.controller.counts().queued + bed.controller.counts().running > 0) await bed.settle();
          // The records of the bed are not what is measured.
          for (const record of [bed.started, bed.events, bed.released, bed.lines]) record.length = 0;
        }
      };
      // As long as one waits for its time, the clock is not cleared.
      bed.observe({ name: "stays" });
      await run(0, AT_ONCE);
      const before = heapUsed();
      await run(AT_ONCE, CYCLES);
      assert.equal(bed.controller.counts(), { states: 1, timers: 1, queued: 0, running: 0 });
      const growth = heapUsed() - before;
      assert.ok(growth < SLACK_BYTES, `the heap grew by ${growth} bytes`);
    },
    { timeoutMs: 60_000 },
  );
});
