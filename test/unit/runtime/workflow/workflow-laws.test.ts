// Random workflows over several runs, beside a model that does one thing after another.
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";
import { createWorkflow, FakeCluster, type FakeDependent } from "./fake-cluster.js";
import { playRun, SINGLE, type ModelStore, type NodeMood, type NodeShape } from "./workflow-model.js";

const KEYS = ["x", "y", "z"];
const MOST_AT_ONCE = 4;
const MOST_NODES = 50;

const moods: fc.Arbitrary<NodeMood> = fc.record({
  isActive: often(9),
  isWanted: often(5),
  isReady: often(9),
  isGone: often(3),
  failure: fc.constantFrom(...Array(12).fill("none"), "desired", "changes"),
  keys: fc.subarray(KEYS),
  value: fc.nat(1),
});

function often(times: number): fc.Arbitrary<boolean> {
  return fc.nat(times).map((drawn) => drawn > 0);
}

/** What one run is played with: what functions say, how long changes take, and what somebody else deletes before which change. */
interface Round {
  readonly moods: readonly NodeMood[];
  readonly pauses: readonly number[];
  readonly deletions: readonly (readonly [beforeChange: number, node: number])[];
}

interface Play {
  readonly shapes: readonly NodeShape[];
  readonly rounds: readonly Round[];
}

const plays: fc.Arbitrary<Play> = fc
  .oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: MOST_NODES }))
  .chain((size) => {
    const shapes = fc.tuple(
      ...[...Array(size).keys()].map((index) =>
        fc
          .tuple(often(2), needsOf(index), needsOf(index), needsOf(index))
          .map(([isBulk, dependsOn, optional, items]) => ({ isBulk, dependsOn, optional, items })),
      ),
    );
    const round = fc.record({
      moods: fc.array(moods, { minLength: size, maxLength: size }),
      pauses: fc.array(fc.nat(5), { minLength: 1, maxLength: 7 }),
      deletions: fc.array(fc.tuple(fc.nat(20), fc.nat(size - 1)), { maxLength: 4 }),
    });
    return fc.record({ shapes: shapes.map(shapesOf), rounds: fc.array(round, { minLength: 2, maxLength: 5 }) });
  });

function needsOf(index: number): fc.Arbitrary<number[]> {
  if (index === 0) return fc.constant([]);
  return fc.uniqueArray(fc.nat(index - 1), { maxLength: 2 });
}

type DrawnNode = { isBulk: boolean; dependsOn: number[]; optional: number[]; items: number[] };

function shapesOf(drawn: readonly DrawnNode[]): NodeShape[] {
  return drawn.map(({ isBulk, dependsOn, optional, items }) => {
    const itemsDependOn = isBulk ? items.filter((each) => drawn[each]!.isBulk && !dependsOn.includes(each)) : [];
    const isFree = (each: number) => !dependsOn.includes(each) && !itemsDependOn.includes(each);
    return { isBulk, dependsOn, optional: optional.filter(isFree), itemsDependOn };
  });
}

const nameOf = (index: number) => `n${index}`;

/** The workflow of a play, in which every function says what the mood of the moment is. */
class Stage {
  readonly cluster = new FakeCluster();
  readonly shapes: readonly NodeShape[];
  moods: readonly NodeMood[] = [];
  /** What happened in this run, besides what the cluster records. */
  readonly events: string[] = this.cluster.history;
  readonly workflow;

  constructor({ shapes }: Play) {
    this.shapes = shapes;
    const dependents = shapes.map((_, index) => this.#dependentOf(index));
    this.workflow = createWorkflow(dependents, this.cluster, { maxConcurrency: MOST_AT_ONCE });
  }

  begin({ moods, pauses }: Pick<Round, "moods" | "pauses">): void {
    this.moods = moods;
    this.cluster.pauses = pauses;
    this.cluster.failures.clear();
    moods.forEach(({ failure }, index) => {
      if (failure !== "changes") return;
      for (const key of [SINGLE, ...KEYS]) this.cluster.failures.set(this.idOf(index, key), new Error("no"));
    });
    this.events.length = 0;
  }

  idOf(index: number, key: string): string {
    return this.shapes[index]!.isBulk ? `${nameOf(index)}[${key}]` : nameOf(index);
  }

  /** The objects as the model has them. */
  get store(): ModelStore {
    return this.shapes.map((_, index) => {
      const things = [...this.cluster.of(nameOf(index)).values()];
      return new Map(things.map(({ item = SINGLE, value }) => [item, (value as { value: number }).value]));
    });
  }

  #dependentOf(index: number): FakeDependent {
    const { isBulk, dependsOn, optional, itemsDependOn } = this.shapes[index]!;
    const mood = () => this.moods[index]!;
    return {
      name: nameOf(index),
      dependsOn: [
        ...dependsOn.map(nameOf),
        ...optional.map((each) => ({ name: nameOf(each), optional: true as const })),
      ],
      ...(isBulk ? { bulk: { maxConcurrency: 2 }, itemsDependOn: itemsDependOn.map(nameOf) } : {}),
      desired: ({ secondary }: { secondary: object }) => {
        const seen = secondary as Record<string, object | undefined>;
        const isSeen = (each: number) => Object.keys(seen[nameOf(each)] ?? {}).length > 0;
        for (const each of optional.filter(isSeen)) this.events.push(`sees ${nameOf(each)} ${nameOf(index)}`);
        this.events.push(`desired ${nameOf(index)}`);
        if (mood().failure === "desired") throw new Error("no idea");
        const value = { value: mood().value };
        return isBulk ? Object.fromEntries(mood().keys.map((key) => [key, value])) : value;
      },
      activationCondition: () => mood().isActive,
      reconcilePrecondition: () => mood().isWanted,
      readyPostcondition: ({ item = SINGLE }) => {
        this.events.push(`ready ${mood().isReady} ${this.idOf(index, item)}`);
        return mood().isReady;
      },
      deletePostcondition: () => mood().isGone,
    };
  }
}

/** Checks that nothing is computed or written before what it needs is ready in this run. */
function checkReadiness(stage: Stage): void {
  const { shapes, moods, events } = stage;
  const ready = new Set<string>();
  const check = (id: string, needed: string) => assert.ok(ready.has(needed), `${id} comes after ${needed}`);
  for (const event of events) {
    const [what, ...rest] = event.split(" ");
    if (event.startsWith("ready true ")) ready.add(rest[1]!);
    if (what !== "desired" && what !== "write") continue;
    const { index, key } = parseId(rest[0]!);
    for (const needed of shapes[index]!.dependsOn)
      for (const each of shapes[needed]!.isBulk ? moods[needed]!.keys : [SINGLE])
        check(event, stage.idOf(needed, each));
    for (const needed of shapes[index]!.optional) {
      if (!events.includes(`desired ${nameOf(needed)}`)) {
        assert.not(events.includes(`sees ${nameOf(needed)} ${nameOf(index)}`), `${event} sees what is not wanted`);
        continue;
      }
      for (const each of shapes[needed]!.isBulk ? moods[needed]!.keys : [SINGLE])
        check(event, stage.idOf(needed, each));
    }
    if (what === "write") for (const needed of shapes[index]!.itemsDependOn) check(event, stage.idOf(needed, key));
  }
}

/** Checks, before an object is removed, that nothing is there any more that needs it. */
function checkRemoval({ shapes, moods, events, store }: Stage, id: string): void {
  const { index, key } = parseId(id);
  const isUnwanted = !events.includes(`desired ${nameOf(index)}`);
  shapes.forEach(({ dependsOn, optional, itemsDependOn }, other) => {
    if (!moods[other]!.isActive) return;
    const isUsing = optional.includes(index) && !events.includes(`desired ${nameOf(other)}`);
    if (isUnwanted && isUsing)
      assert.is(store[other]!.size, 0, `${nameOf(other)} goes, or on without it, before ${id}`);
    if (isUnwanted && dependsOn.includes(index)) assert.is(store[other]!.size, 0, `${nameOf(other)} goes before ${id}`);
    if (itemsDependOn.includes(index)) assert.not(store[other]!.has(key), `${nameOf(other)}[${key}] goes before ${id}`);
  });
}

function parseId(id: string): { readonly index: number; readonly key: string } {
  const [, index, key = SINGLE] = /^n(\d+)(?:\[(.)\])?$/.exec(id)!;
  return { index: Number(index), key };
}

/** Plays one run, and checks what holds in every one. */
async function play(
  stage: Stage,
  { deletions = [], ...round }: Omit<Round, "deletions"> & Partial<Round>,
): Promise<void> {
  const { cluster, workflow } = stage;
  stage.begin(round);
  let changes = 0;
  cluster.onChange = (what, id) => {
    for (const [at, node] of deletions) {
      if (at !== changes) continue;
      const things = cluster.of(nameOf(node));
      for (const each of [...things.keys()].slice(0, 1)) things.delete(each);
    }
    changes++;
    if (what === "remove") checkRemoval(stage, id);
  };
  const result = await workflow.reconcile();
  assert.equal(
    [...result.errors.values()].filter((error) => !/: (no idea|no)$/.test((error as Error).message.split(";")[0]!)),
    [],
    "nothing fails but what is to fail",
  );
  checkReadiness(stage);
  assert.ok(cluster.mostAtOnce <= MOST_AT_ONCE);
}

/** Runs until nothing changes any more, and checks that every run comes to what the model does. */
async function converge(stage: Stage, round: Round): Promise<void> {
  const model = stage.store;
  for (let runs = 0; ; runs++) {
    const isChanged = playRun(stage.shapes, round.moods, model);
    await play(stage, { moods: round.moods, pauses: round.pauses });
    assert.equal(stage.store, model);
    const changes = stage.events.filter((event) => /^(written|removed) /.test(event));
    if (changes.length === 0) {
      assert.not(isChanged, "the model has nothing left to do either");
      return;
    }
    assert.ok(runs <= stage.shapes.length + 2, "it converges");
  }
}

async function cleanUp(stage: Stage, { pauses }: Round): Promise<void> {
  const allGood = { isActive: true, isWanted: true, isReady: true, isGone: true, failure: "none", value: 0 } as const;
  stage.begin({ moods: stage.shapes.map(() => ({ ...allGood, keys: [] })), pauses });
  stage.cluster.onChange = (_, id) => checkRemoval(stage, id);
  const result = await stage.workflow.cleanup();
  assert.ok(result.isReady);
  assert.equal(stage.cluster.ids, []);
}

suite("workflow invariants", (test) => {
  test(
    "keep order and limits in any sequence of runs, and converge to the model",
    async () => {
      const property = fc.asyncProperty(plays, async (each) => {
        const stage = new Stage(each);
        for (const round of each.rounds.slice(0, -1)) await play(stage, round);
        const last = each.rounds.at(-1)!;
        await converge(stage, last);
        await cleanUp(stage, last);
      });
      await fc.assert(property, { numRuns: 200 });
    },
    { timeoutMs: 120_000 },
  );
});
