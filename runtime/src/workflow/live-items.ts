import type { DependentReconciler, FindRun, KnownItems, Live } from "./dependents/dependent-reconciler.js";

/** The live items of a bulk dependent in one run. To find them takes as long as there are many, so that is not done for each of them. */
export class LiveItems implements KnownItems {
  readonly #reconciler: DependentReconciler;
  readonly #run: FindRun;
  #known: ReadonlyMap<string, Live> | undefined;
  /** The items that were written or removed since then. */
  readonly #changed = new Set<string>();

  constructor(reconciler: DependentReconciler, run: FindRun) {
    this.#reconciler = reconciler;
    this.#run = run;
  }

  /** All items as they were found last. */
  get known(): ReadonlyMap<string, Live> {
    return (this.#known ??= this.#reconciler.findItems(this.#run));
  }

  /** Finds all items again. */
  findAll(): ReadonlyMap<string, Live> {
    this.#known = undefined;
    this.#changed.clear();
    return this.known;
  }

  get(key: string): Live | undefined {
    const known = this.known.get(key);
    if (known !== undefined && this.#reconciler.findAgain !== undefined)
      return this.#reconciler.findAgain(known, this.#run);
    return this.#changed.has(key) ? this.findAll().get(key) : known;
  }

  /** Takes note that an item was written or removed, or may have been. */
  change(key: string): void {
    this.#changed.add(key);
  }
}
