// What runs of a workflow come to, worked out one dependent after another: a model that knows nothing of concurrency.

/** A dependent of a random workflow; needs are indexes of those before it. */
export interface NodeShape {
  readonly isBulk: boolean;
  readonly dependsOn: readonly number[];
  /** What it waits for only if that is wanted. */
  readonly optional: readonly number[];
  /** Only those of bulk dependents, and of bulk dependents. */
  readonly itemsDependOn: readonly number[];
}

/** What the functions of a dependent say in a run. */
export interface NodeMood {
  readonly isActive: boolean;
  readonly isWanted: boolean;
  readonly isReady: boolean;
  readonly isGone: boolean;
  /** What fails: computing what is desired, or every write and removal. */
  readonly failure: "none" | "desired" | "changes";
  readonly keys: readonly string[];
  readonly value: number;
}

/** The objects of each dependent, by their keys; that of one that is not bulk has none. */
export type ModelStore = Map<string, number>[];

type Standing = "ready" | "unready" | "waiting" | "condemned" | "inactive";

/** The key of the object of a dependent that is not bulk. */
export const SINGLE = "";

/** Changes `store` as one run does; tells whether anything changed. */
export function playRun(shapes: readonly NodeShape[], moods: readonly NodeMood[], store: ModelStore): boolean {
  const before = JSON.stringify(store.map((things) => [...things].sort()));
  const run = new ModelRun(shapes, moods, store);
  shapes.forEach((_, index) => run.reconcile(index));
  [...shapes.keys()].reverse().forEach((index) => run.delete(index));
  [...shapes.keys()].reverse().forEach((index) => run.sweep(index));
  return before !== JSON.stringify(store.map((things) => [...things].sort()));
}

class ModelRun {
  readonly shapes: readonly NodeShape[];
  readonly moods: readonly NodeMood[];
  readonly store: ModelStore;
  readonly #standings: Standing[] = [];
  readonly #readyItems: Set<string>[] = [];
  readonly #hasItems: boolean[] = [];
  readonly #isGone: boolean[] = [];
  /** Items that were to be deleted and are not gone. */
  readonly #kept: Set<string>[] = [];

  constructor(shapes: readonly NodeShape[], moods: readonly NodeMood[], store: ModelStore) {
    this.shapes = shapes;
    this.moods = moods;
    this.store = store;
  }

  reconcile(index: number): void {
    const mood = this.moods[index]!;
    const { dependsOn, optional, itemsDependOn } = this.shapes[index]!;
    this.#readyItems[index] = new Set();
    this.#kept[index] = new Set();
    this.#hasItems[index] = false;
    const isAbsent = (each: number) => ["condemned", "inactive"].includes(this.#standings[each]!);
    if ([...dependsOn, ...itemsDependOn].some(isAbsent)) this.#standings[index] = "condemned";
    else if (
      !dependsOn.every((each) => this.#standings[each] === "ready") ||
      !optional.every((each) => this.#standings[each] === "ready" || isAbsent(each)) ||
      !itemsDependOn.every((each) => this.#hasItems[each])
    )
      this.#standings[index] = "waiting";
    else if (!mood.isActive) this.#standings[index] = "inactive";
    else if (!mood.isWanted) this.#standings[index] = "condemned";
    else if (mood.failure === "desired") this.#standings[index] = "waiting";
    else this.#standings[index] = this.#write(index) ? "ready" : "unready";
  }

  delete(index: number): void {
    const standing = this.#standings[index]!;
    const { isActive, isGone } = this.moods[index]!;
    this.#isGone[index] = standing === "inactive";
    if (standing !== "condemned") return;
    const needing = this.#needing(index);
    if (!needing.all.every((each) => this.#isGone[each])) return;
    if (!needing.optional.every((each) => this.#isGone[each] || this.#standings[each] === "ready")) return;
    if (!needing.items.every((each) => this.#isGone[each] || this.#hasItems[each])) return;
    if (!isActive) {
      this.#isGone[index] = true;
      return;
    }
    this.#hasItems[index] = true;
    const things = this.store[index]!;
    let areGone = things.size > 0 || isGone;
    if (!this.shapes[index]!.isBulk) areGone = this.#remove(index, SINGLE) && isGone;
    else
      for (const key of things.keys()) {
        const isKept = needing.items.some((each) => this.#kept[each]!.has(key));
        if (!isKept && this.#remove(index, key) && isGone) continue;
        areGone = false;
        this.#kept[index]!.add(key);
      }
    this.#isGone[index] = areGone;
  }

  sweep(index: number): void {
    const needing = this.#needing(index).items;
    const { keys } = this.moods[index]!;
    if (!["ready", "unready"].includes(this.#standings[index]!) || needing.length === 0) return;
    for (const key of [...this.store[index]!.keys()]) {
      if (keys.includes(key)) continue;
      const holds = (each: number) => this.#kept[each]!.has(key) || (!this.#isGone[each] && this.store[each]!.has(key));
      if (needing.some(holds)) continue;
      if (!this.#remove(index, key) || !this.moods[index]!.isGone) this.#kept[index]!.add(key);
    }
  }

  #write(index: number): boolean {
    const { keys, isReady, isGone, value, failure } = this.moods[index]!;
    const { isBulk, itemsDependOn } = this.shapes[index]!;
    const things = this.store[index]!;
    let isWhole = true;
    this.#hasItems[index] = isBulk;
    if (isBulk && this.#needing(index).items.length === 0)
      for (const key of [...things.keys()].filter((each) => !keys.includes(each))) {
        const isRemoved = this.#remove(index, key);
        if (!isRemoved || !isGone) this.#kept[index]!.add(key);
        if (!isRemoved) isWhole = false;
      }
    for (const key of isBulk ? keys : [SINGLE]) {
      const isHeldBack = !itemsDependOn.every((each) => this.#readyItems[each]!.has(key));
      if (!isHeldBack && failure !== "changes") things.set(key, value);
      const isDone = !isHeldBack && things.get(key) === value && isReady;
      if (isDone) this.#readyItems[index]!.add(key);
      else isWhole = false;
    }
    return isWhole;
  }

  #remove(index: number, key: string): boolean {
    if (!this.store[index]!.has(key)) return true;
    if (this.moods[index]!.failure === "changes") return false;
    return this.store[index]!.delete(key);
  }

  #needing(index: number): Record<"all" | "optional" | "items", number[]> {
    const thoseWith = (list: "dependsOn" | "optional" | "itemsDependOn") =>
      [...this.shapes.keys()].filter((each) => this.shapes[each]![list].includes(index));
    return { all: thoseWith("dependsOn"), optional: thoseWith("optional"), items: thoseWith("itemsDependOn") };
  }
}
