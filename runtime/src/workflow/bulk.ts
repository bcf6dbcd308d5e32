// The items of one bulk dependent in one run. Each item is a step of its own. It waits only for the items of its key in other dependents, and
// takes no place while it waits.
import { TerminalError } from "../base/errors.js";
import { Semaphore } from "../base/semaphore.js";
import { turns } from "../base/clock.js";
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
  /** The bulk dependents that this one names in itemsDependOn. */
  needed(): readonly BulkRun[];
  /** The bulk dependents that name this one in itemsDependOn. */
  dependents(): readonly BulkRun[];
}

/** An item to write, to wait for, or to delete. */
interface Item {
  readonly target: Target;
  /** Why the item cannot be written. */
  readonly problem?: unknown;
  /** The live object of an item to delete. */
  readonly known?: Live;
}

/** The step of all items of one kind. */
interface ItemWork {
  /** Waits for other items; returns the names of those that keep the item of this key from its step. Default: none. */
  readonly blockersOf?: ((key: string) => Promise<readonly string[]>) | undefined;
  act(item: Item, run: DriverRun, step: Step): Promise<DependentOutcome>;
  /** Returns the outcome of an item whose step failed, or throws. Default: it failed. */
  onFailure?(item: Item, error: unknown): DependentOutcome;
}

/** The items of a bulk dependent in one run. */
export class BulkRun {
  /** Whether its activation condition does not hold, so that its live items are unknown. */
  isInactive = false;
  /** Whether the wanted items are known. */
  isReconciled = false;
  readonly #node: Target;
  readonly #run: DriverRun;
  readonly #surroundings: BulkSurroundings;
  readonly #places: Semaphore;
  /** The keys of the items that should exist. */
  readonly #wanted = new Set<string>();
  /** The keys of the items that must not exist. */
  readonly #unwanted = new Set<string>();
  /** The outcomes of all items that are done. */
  readonly #outcomes = new Map<string, DependentOutcome>();
  /** The callbacks that wait for the outcome of an item. */
  readonly #listeners = new Map<string, ((outcome: DependentOutcome) => void)[]>();
  /** Whether the postcondition holds that was asked once, without an item, because there are no items. */
  #isMetEmpty = true;

  /** `node` is the dependent itself. */
  constructor(node: Target, run: DriverRun, surroundings: BulkSurroundings) {
    this.#node = node;
    this.#run = run;
    this.#surroundings = surroundings;
    this.#places = new Semaphore(node.definition.bulk?.maxConcurrency ?? MOST_AT_ONCE);
  }

  get name(): string {
    return this.#node.definition.name;
  }

  /** Writes the items that `desired` returned, by their keys; of a read-only dependent, asks whether the live items are ready. */
  async reconcile(desired: ReadonlyMap<string, unknown> | undefined, onKnown: () => void): Promise<void> {
    const completed = desired === undefined ? undefined : await this.#complete(desired);
    const live = this.#driver.findItems(this.#run);
    if (desired === undefined && live.size === 0) {
      // A read-only set without items is not ready, unless its readyPostcondition holds without an item.
      const isStated = this.#node.definition.readyPostcondition !== undefined;
      this.#isMetEmpty = isStated && (await this.#askEmpty("readyPostcondition"));
    }
    const items = completed ?? [...live.keys()].map((key) => ({ target: this.#targetOf(key) }));
    for (const { target } of items) this.#wanted.add(target.item!);
    // Items that others may still need are deleted at the end of the run.
    const isSweptLater = this.#surroundings.dependents().length > 0;
    const deletions = isSweptLater ? undefined : this.#deleteItems(this.#extraOf(live), NOT_RETURNED);
    this.isReconciled = true;
    onKnown();
    await deletions;
    const needed = this.#surroundings.needed();
    await this.#settleAll(items, {
      blockersOf: needed.length === 0 ? undefined : (key) => this.#missingFor(key, needed),
      act: ({ target }, run, step) => reconcileObject(target, run, step),
    });
  }

  /** Deletes all items, each after the items that need it. */
  async delete(because: string, onKnown: () => void): Promise<void> {
    const items = [...this.#driver.findItems(this.#run)];
    const dependents = this.#surroundings.dependents();
    const keepersOf = dependents.length === 0 ? undefined : (key: string) => this.#keepersOf(key, dependents);
    const deletions = this.#deleteItems(items, because, keepersOf);
    onKnown();
    if (items.length === 0) this.#isMetEmpty = await this.#askEmpty("deletePostcondition");
    await deletions;
  }

  /** Deletes, at the end of a run, the unwanted items that no item of other dependents needs. */
  async sweep(): Promise<void> {
    await this.#deleteItems(this.#extraOf(this.#driver.findItems(this.#run)), NOT_RETURNED, async (key) =>
      this.#surroundings
        .dependents()
        .filter((each) => each.#hasLive(key))
        .map(({ name }) => labelOf(name, key)),
    );
  }

  /** Returns the outcome of the dependent, from those of its items; `because` says why it must not exist. */
  outcome(because?: string): DependentOutcome {
    if (!this.#isMetEmpty)
      return because === undefined
        ? { kind: "waiting", for: [this.name] }
        : { kind: "deleted", isGone: false, because };
    return bulkOutcome(this.name, { items: this.#outcomes, wanted: this.#wanted, because });
  }

  get #driver(): DependentDriver {
    return this.#node.driver;
  }

  async #askEmpty(name: "readyPostcondition" | "deletePostcondition"): Promise<boolean> {
    const { around, runIn } = this.#surroundings;
    return takeStep(this.#node.definition, around, async (step) => ask(name, this.#node, { run: runIn(step), step }));
  }

  async #complete(desired: ReadonlyMap<string, unknown>): Promise<Item[]> {
    const keys = new Map<string, string>();
    const items: Item[] = [];
    for (const [key, each] of desired) {
      const target = this.#targetOf(key);
      try {
        const wanted = this.#driver.complete(this.#run, each, key);
        const other = keys.get(wanted.id);
        if (other !== undefined) throw new TerminalError(`it is ${wanted.id}, and so is the item "${other}"`);
        keys.set(wanted.id, key);
        target.wanted = wanted;
        items.push({ target });
      } catch (problem) {
        items.push({ target, problem });
      }
      const pause = turns.pause();
      if (pause !== undefined) await pause;
    }
    return items;
  }

  #targetOf(key: string): Target {
    return createTarget(this.#node.definition, this.#driver, key);
  }

  #extraOf(live: ReadonlyMap<string, Live>): (readonly [key: string, live: Live])[] {
    return [...live].filter(([key]) => !this.#wanted.has(key));
  }

  async #deleteItems(
    live: readonly (readonly [key: string, live: Live])[],
    because: string,
    blockersOf?: ItemWork["blockersOf"],
  ): Promise<void> {
    for (const [key] of live) this.#unwanted.add(key);
    const items = live.map(([key, known]) => ({ target: this.#targetOf(key), known }));
    await this.#settleAll(items, {
      blockersOf,
      act: ({ target, known }, run, step) => deleteObject(target, { run, step, because, known: known! }),
      onFailure: ({ target }, error) => releaseOrThrow(target, this.#run, error),
    });
  }

  // There may be thousands of items, mostly as desired: only those that have a place, or wait for other items, cost promises.
  async #settleAll(items: readonly Item[], work: ItemWork): Promise<void> {
    const settling = new Set<Promise<void>>();
    for (const item of items) {
      const turn = isStartedAtOnce(item, work) ? this.#places.acquire() : undefined;
      if (turn !== undefined) await turn;
      const settled = this.#settle(item, work).then(() => void settling.delete(settled));
      settling.add(settled);
      const pause = turns.pause();
      if (pause !== undefined) await pause;
    }
    await Promise.all(settling);
  }

  async #settle(item: Item, work: ItemWork): Promise<void> {
    const { item: key = "" } = item.target;
    let outcome: DependentOutcome;
    try {
      outcome = await this.#outcomeOf(item, work);
    } catch (error) {
      outcome = { kind: "failed", error: createDependentError(this.name, error, key) };
    }
    this.#outcomes.set(key, outcome);
    for (const tell of this.#listeners.get(key) ?? []) tell(outcome);
  }

  async #outcomeOf(item: Item, work: ItemWork): Promise<DependentOutcome> {
    const { target, problem } = item;
    const { around, runIn } = this.#surroundings;
    if (problem !== undefined) throw problem;
    if (!isStartedAtOnce(item, work)) {
      const blockers = await work.blockersOf!(target.item!);
      if (blockers.length > 0) return { kind: "waiting", for: blockers };
      await this.#places.acquire();
    }
    const places = [new TakenPlace(this.#places), ...around.places];
    const taken = takeStep(target.definition, { ...around, places }, (step) => work.act(item, runIn(step), step));
    return work.onFailure === undefined ? taken : taken.catch((error: unknown) => work.onFailure!(item, error));
  }

  /** Waits for the outcome of an item. */
  async #awaitOutcome(key: string): Promise<DependentOutcome> {
    const known = this.#outcomes.get(key);
    if (known !== undefined) return known;
    const listeners = this.#listeners.get(key) ?? [];
    this.#listeners.set(key, listeners);
    return new Promise((resolve) => listeners.push(resolve));
  }

  /** Waits for the items that an item needs; returns the names of those that are not ready. */
  async #missingFor(key: string, needed: readonly BulkRun[]): Promise<string[]> {
    const missing: string[] = [];
    for (const each of needed)
      if (!each.#wanted.has(key) || !isReadyItem(await each.#awaitOutcome(key))) missing.push(labelOf(each.name, key));
    return missing;
  }

  /** Waits for the deletions of the items that need an item; returns the names of those that are not gone. */
  async #keepersOf(key: string, dependents: readonly BulkRun[]): Promise<string[]> {
    const keepers: string[] = [];
    for (const each of dependents)
      if (each.#unwanted.has(key) && !isGoneItem(await each.#awaitOutcome(key))) keepers.push(labelOf(each.name, key));
    return keepers;
  }

  #hasLive(key: string): boolean {
    if (this.isInactive) return false;
    const outcome = this.#outcomes.get(key);
    if (outcome !== undefined && isGoneItem(outcome)) return false;
    return outcome?.kind === "deleted" || this.#driver.findItems(this.#run).has(key);
  }
}

function isStartedAtOnce({ problem }: Item, { blockersOf }: ItemWork): boolean {
  return blockersOf === undefined && problem === undefined;
}

/** A place that was taken before the step began. The step acquires it again only for its next attempt. */
class TakenPlace {
  readonly #places: Semaphore;
  #isTaken = true;

  constructor(places: Semaphore) {
    this.#places = places;
  }

  acquire(signal?: AbortSignal): Promise<void> | undefined {
    if (!this.#isTaken) return this.#places.acquire(signal);
    this.#isTaken = false;
    return undefined;
  }

  release(): void {
    this.#places.release();
  }
}

function labelOf(name: string, key: string): string {
  return `${name}[${key}]`;
}
