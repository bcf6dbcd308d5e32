// The items of one bulk dependent in one run. Each is a step of its own, that waits only for the items of its key in other dependents; while
// it waits it takes no place from others.
import { TerminalError } from "../base/errors.js";
import { Semaphore } from "../base/semaphore.js";
import { bulkOutcome, isGoneItem, isReadyItem } from "./bulk-outcome.js";
import type { DependentDriver, DriverRun, Live } from "./dependents/driver.js";
import { ask, createTarget, deleteObject, reconcileObject, releaseOrThrow, type Target } from "./object-steps.js";
import { takeStep, type Step, type StepSurroundings } from "./step.js";
import { createDependentError } from "./workflow-error.js";
import type { DependentOutcome } from "./workflow-result.js";

const MOST_AT_ONCE = 10;
const NOT_RETURNED = "desired() does not return it";

/** What the items of a dependent need of the run. */
export interface BulkSurroundings {
  readonly around: StepSurroundings;
  /** Returns what functions are called with in a step. */
  runIn(step: Step): DriverRun;
  /** The dependents of which its items need the item of their key. */
  needed(): readonly BulkRun[];
  /** The dependents whose items need its item of their key. */
  dependents(): readonly BulkRun[];
}

/** An item that should exist. */
interface Item {
  readonly target: Target;
  /** Why it cannot be written. */
  readonly problem?: unknown;
}

/** The items of a bulk dependent in one run. */
export class BulkRun {
  /** Whether its live items are not known, because it counts as absent. */
  isInactive = false;
  /** Whether it is known which items should exist. */
  isReconciled = false;
  readonly #node: Target;
  readonly #run: DriverRun;
  readonly #surroundings: BulkSurroundings;
  readonly #around: StepSurroundings;
  /** The keys of the items that should exist, with what becomes of them. */
  readonly #wanted = new Map<string, Promise<DependentOutcome>>();
  /** The keys of the items that must not exist, with what becomes of them. */
  readonly #unwanted = new Map<string, Promise<DependentOutcome>>();
  /** What became of each item in the end. */
  readonly #outcomes = new Map<string, DependentOutcome>();
  /** What the postcondition said that was asked about the whole, because there was no item to ask about. */
  #isMetEmpty = true;

  /** `node` is the dependent itself. */
  constructor(node: Target, run: DriverRun, surroundings: BulkSurroundings) {
    const { around } = surroundings;
    this.#node = node;
    this.#run = run;
    this.#surroundings = surroundings;
    const places = new Semaphore(node.definition.bulk?.maxConcurrency ?? MOST_AT_ONCE);
    this.#around = { ...around, places: [places, ...around.places] };
  }

  get name(): string {
    return this.#node.definition.name;
  }

  /** Makes the items what `desired` returned, by their keys; of what is only read, waits for those that are there. */
  async reconcile(desired: ReadonlyMap<string, unknown> | undefined, onKnown: () => void): Promise<void> {
    const live = this.#driver.findItems(this.#run);
    if (desired === undefined && live.size === 0) {
      // Somebody else has to make one, unless the condition says that it is not so.
      const isStated = this.#node.definition.readyPostcondition !== undefined;
      this.#isMetEmpty = isStated && (await this.#askEmpty("readyPostcondition"));
    }
    const items = desired === undefined ? [...live.keys()].map((key) => this.#itemOf(key)) : this.#complete(desired);
    const wanted = new Set(items.map(({ target }) => target.item));
    const extra = [...live].filter(([key]) => !wanted.has(key));
    // What items of others need goes in the end, when those are gone.
    const isSweptLater = this.#surroundings.dependents().length > 0;
    const deletions = isSweptLater ? undefined : this.#deleteItems(extra, NOT_RETURNED, () => []);
    for (const item of items) {
      const work = async () => {
        const missing = await this.#missingFor(item);
        await deletions;
        return this.#reconcileItem(item, missing);
      };
      this.#wanted.set(item.target.item!, this.#settle(item.target, work));
    }
    this.isReconciled = true;
    onKnown();
    await Promise.all([...this.#wanted.values(), deletions]);
  }

  /** Deletes all items, each when those that need it are gone. */
  async delete(because: string, onKnown: () => void): Promise<void> {
    const items = [...this.#driver.findItems(this.#run)];
    const deletions = this.#deleteItems(items, because, (key) => this.#keepersOf(key));
    onKnown();
    if (items.length === 0) this.#isMetEmpty = await this.#askEmpty("deletePostcondition");
    await deletions;
  }

  /** Deletes the items that are not wanted and that no item of others needs any more; for the end of a run. */
  async sweep(): Promise<void> {
    const extra = [...this.#driver.findItems(this.#run)].filter(([key]) => !this.#wanted.has(key));
    await this.#deleteItems(extra, NOT_RETURNED, (key) =>
      this.#surroundings
        .dependents()
        .filter((each) => each.#hasLive(key))
        .map(({ name }) => labelOf(name, key)),
    );
  }

  /** What became of the dependent, which is told by its items; `because` if it must not exist. */
  outcome(because?: string): DependentOutcome {
    if (!this.#isMetEmpty)
      return because === undefined
        ? { kind: "waiting", for: [this.name] }
        : { kind: "deleted", isGone: false, because };
    return bulkOutcome(this.name, { items: this.#outcomes, wanted: [...this.#wanted.keys()], because });
  }

  get #driver(): DependentDriver {
    return this.#node.driver;
  }

  async #askEmpty(name: "readyPostcondition" | "deletePostcondition"): Promise<boolean> {
    const { around, runIn } = this.#surroundings;
    return takeStep(this.#node.definition, around, async (step) => ask(name, this.#node, { run: runIn(step), step }));
  }

  #complete(desired: ReadonlyMap<string, unknown>): Item[] {
    const keys = new Map<string, string>();
    return [...desired].map(([key, each]) => {
      const item = this.#itemOf(key);
      try {
        const wanted = this.#driver.complete(this.#run, each, key);
        const other = keys.get(wanted.id);
        if (other !== undefined) throw new TerminalError(`it is ${wanted.id}, and so is the item "${other}"`);
        keys.set(wanted.id, key);
        item.target.wanted = wanted;
        return item;
      } catch (problem) {
        return { ...item, problem };
      }
    });
  }

  #itemOf(key: string): Item {
    return { target: createTarget(this.#node.definition, this.#driver, key) };
  }

  async #reconcileItem({ target, problem }: Item, missing: readonly string[]): Promise<DependentOutcome> {
    if (problem !== undefined) throw problem;
    if (missing.length > 0) return { kind: "waiting", for: missing };
    return takeStep(target.definition, this.#around, (step) =>
      reconcileObject(target, this.#surroundings.runIn(step), step),
    );
  }

  async #deleteItems(
    items: readonly (readonly [key: string, live: Live])[],
    because: string,
    keepersOf: (key: string) => readonly string[] | Promise<readonly string[]>,
  ): Promise<void> {
    const deletions = items.map(([key, known]) => {
      const target = createTarget(this.#node.definition, this.#driver, key);
      const work = async (): Promise<DependentOutcome> => {
        const keepers = await keepersOf(key);
        if (keepers.length > 0) return { kind: "waiting", for: keepers };
        return takeStep(target.definition, this.#around, (step) =>
          deleteObject(target, { run: this.#surroundings.runIn(step), step, because, known }),
        ).catch((error: unknown) => releaseOrThrow(target, this.#run, error));
      };
      const deletion = this.#settle(target, work);
      this.#unwanted.set(key, deletion);
      return deletion;
    });
    await Promise.all(deletions);
  }

  async #settle({ item: key = "" }: Target, work: () => Promise<DependentOutcome>): Promise<DependentOutcome> {
    let outcome: DependentOutcome;
    try {
      outcome = await work();
    } catch (error) {
      outcome = { kind: "failed", error: createDependentError(this.name, error, key) };
    }
    this.#outcomes.set(key, outcome);
    return outcome;
  }

  /** Names what an item needs and does not get in this run, as soon as that is known. */
  async #missingFor({ target: { item: key = "" } }: Item): Promise<string[]> {
    const missing: string[] = [];
    for (const needed of this.#surroundings.needed()) {
      const outcome = await needed.#wanted.get(key);
      if (outcome === undefined || !isReadyItem(outcome)) missing.push(labelOf(needed.name, key));
    }
    return missing;
  }

  /** Names what keeps an item from being deleted in this run, as soon as that is known. */
  async #keepersOf(key: string): Promise<string[]> {
    const keepers: string[] = [];
    for (const dependent of this.#surroundings.dependents()) {
      const outcome = await dependent.#unwanted.get(key);
      if (outcome !== undefined && !isGoneItem(outcome)) keepers.push(labelOf(dependent.name, key));
    }
    return keepers;
  }

  #hasLive(key: string): boolean {
    if (this.isInactive) return false;
    const outcome = this.#outcomes.get(key);
    if (outcome !== undefined && isGoneItem(outcome)) return false;
    return outcome?.kind === "deleted" || this.#driver.findItems(this.#run).has(key);
  }
}

function labelOf(name: string, key: string): string {
  return `${name}[${key}]`;
}
