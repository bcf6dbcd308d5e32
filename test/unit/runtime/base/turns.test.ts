import fc from "../../../support/fast-check.js";
import { Turns } from "#runtime/base/wait.js";
import { assert, suite } from "../../../support/suite.js";

const wanted = new AbortController().signal;

/** Turns on a clock that only work moves. */
function createTurns() {
  let now = 0;
  const turns = new Turns(() => now);
  return { turns, work: (ms: number) => void (now += ms) };
}

suite("Turns", (test) => {
  test("finishes work that fits into one turn synchronously", () => {
    const { turns, work } = createTurns();
    const visited: number[] = [];
    const visit = (item: number) => {
      work(1);
      visited.push(item);
    };
    assert.is(turns.visit([1, 2, 3].values(), visit, wanted), undefined);
    assert.equal(visited, [1, 2, 3]);
  });

  test("visits all items once in order, starts nothing after 10 ms in a turn, and yields in between", async () => {
    const costs = fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(fc.array(costs, { minLength: 1, maxLength: 3 }), async (streams) => {
        const { turns, work } = createTurns();
        const visited = streams.map((): number[] => []);
        let spent = 0;
        let isDone = false;
        const eachRound = () => {
          spent = 0;
          if (!isDone) setImmediate(eachRound);
        };
        eachRound();
        const each = streams.map((stream, index) =>
          turns.visit(
            stream.entries(),
            ([position, cost]) => {
              visited[index]!.push(position);
              // Nothing begins in a turn that has lasted for long enough.
              assert.ok(spent < 10, `${spent} ms in one turn`);
              spent += cost;
              work(cost);
            },
            wanted,
          ),
        );
        await Promise.all(each);
        isDone = true;
        assert.equal(
          visited,
          streams.map((stream) => [...stream.keys()]),
        );
      }),
      { numRuns: 100 },
    );
  });

  test("alternates between streams, so that a long one does not starve a short one", async () => {
    const { turns, work } = createTurns();
    const order: string[] = [];
    const follow = (name: string, count: number) => {
      const visit = () => {
        order.push(name);
        work(10);
      };
      return turns.visit(Array.from({ length: count }).keys(), visit, wanted);
    };
    await Promise.all([follow("many", 10), follow("few", 2)]);
    assert.equal(order.slice(0, 5), ["many", "many", "few", "many", "few"]);
    assert.is(order.length, 12);
  });

  test("stops visiting once the signal is aborted", async () => {
    const { turns, work } = createTurns();
    const visited: number[] = [];
    const over = new AbortController();
    const visit = (item: number) => {
      work(10);
      visited.push(item);
    };
    const rest = turns.visit([1, 2, 3].values(), visit, over.signal);
    over.abort();
    await rest;
    assert.equal(visited, [1]);
  });

  test("rejects if a visit in a later turn throws", async () => {
    const { turns, work } = createTurns();
    const visit = (item: number) => {
      work(10);
      if (item === 2) throw new Error("no");
    };
    const rest = turns.visit([1, 2].values(), visit, wanted);
    let failure: unknown;
    await Promise.resolve(rest).catch((error: unknown) => (failure = error));
    assert.is((failure as Error).message, "no");
  });
});
