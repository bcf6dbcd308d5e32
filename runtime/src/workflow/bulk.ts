// The items of one bulk dependent in one run. Each item is a step of its own. It waits only for the items of its key in other dependents, and
// takes no place while it waits.
import { yieldIfLong } from "../base/clock.js";
import { TerminalError } from "../base/errors.js";
import { Semaphore } from "../base/semaphore.js";
import { bulkOutcome, desiredItemsOf, isGoneItem, isReadyItem } from "./bulk-items.js";
import type { DriverRun, Live } from "./dependents/driver.js";
import {
  ask,
  deleteObject,
  reconcileObject,
  releaseOrThrow,
  withConditions,
  type StepRun,
  type Target,
} from "./object-steps.js";
import { takeStep, type Place, type StepSurroundings } from "./step.js";
import { createDependentError } from "./workflow-error.js";
import type { DependentOutcome } from "./workflow-result.js";

const MOST_AT_ONCE = 10;
const NOT_RETURNED = "desired() does not return it";

/** What the items of a dependent need of the run. */
export interface BulkSurroundings {
  readonly around: StepSurroundings;
  /** Returns the run as the dependent sees it. */
  run(): DriverRun;
  /** The bulk dependents that this one names in itemsDependOn. */
  needed(): readonly BulkRun[];
  /** The bulk dependents that name this one in itemsDependOn. */
  dependents(): readonly BulkRun[];
}

/** What is done with each of several items. */
interface ItemWork {
  /** Waits for other items; returns the names of those that keep the item of this key from its step. Default: none. */
  readonly blockersOf?: ((key: string) => Promise<readonly string[]>) | undefined;
  act(item: Target): Promise<DependentOutcome>;
}

/** The items of a bulk dependent in one run. */
export class BulkRun {
  /** Whether the wanted items are known. */
  isReconciled = false;
  readonly #node: Target;
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
  constructor(node: Target, surroundings: BulkSurroundings) {
    this.#node = node;
    this.#surroundings = surroundings;
    this.#places = new Semaphore(node.definition.bulk?.maxConcurrency ?? MOST_AT_ONCE);
  }

  /** Writes the items that `desired` returned, by their keys; of a read-only dependent, asks whether the live items are ready. */
  async reconcile(onKnown: () => void): Promise<void> {
    const { desired, definition } = this.#node;
    const completed = desired === undefined ? undefined : await this.#complete(desiredItemsOf(desired.object));
    const live = this.#findItems();
    // A read-only set without items is not ready, unless its readyPostcondition holds without an item.
    if (completed === undefined && live.size === 0)
      this.#isMetEmpty = definition.readyPostcondition !== undefined && (await this.#askEmpty("readyPostcondition"));
    const items = completed ?? [...live.keys()].map((key) => this.#itemOf(key));
    for (const { item } of items) this.#wanted.add(item!);
    // Items that others may still need are deleted at the end of the run.
    const isSweptLater = this.#surroundings.dependents().length > 0;
    const deletions = isSweptLater ? undefined : this.#deleteItems(this.#unwantedOf(live), NOT_RETURNED);
    this.isReconciled = true;
    onKnown();
    await deletions;
    const needed = this.#surroundings.needed();
    await this.#settleAll(items, {
      blockersOf: needed.length === 0 ? undefined : (key) => this.#missingFor(key, needed),
      act: (item) => this.#step(item, (run) => reconcileObject(item, run)),
    });
  }

  /** Deletes all items, each after the items that need it. */
  async delete(because: string, onKnown: () => void): Promise<void> {
    const items = this.#findItems();
    const dependents = this.#surroundings.dependents();
    const keepersOf = dependents.length === 0 ? undefined : (key: string) => this.#keepersOf(key, dependents);
    const deletions = this.#deleteItems(items, because, keepersOf);
    onKnown();
    if (items.size === 0) this.#isMetEmpty = await this.#askEmpty("deletePostcondition");
    await deletions;
  }

  /** Deletes, at the end of a run, the unwanted items that no item of other dependents needs. */
  async sweep(): Promise<void> {
    const dependents = this.#surroundings.dependents();
    await this.#deleteItems(this.#unwantedOf(this.#findItems()), NOT_RETURNED, async (key) =>
      dependents.filter((each) => each.#hasLive(key)).map((each) => each.#nameOf(key)),
    );
  }

  /** Returns the outcome of the dependent, from those of its items; `because` says why it must not exist. */
  outcome(because?: string): DependentOutcome {
    const { name } = this.#node.definition;
    if (this.#isMetEmpty) return bulkOutcome(name, { items: this.#outcomes, wanted: this.#wanted, because });
    return because === undefined ? { kind: "waiting", for: [name] } : { kind: "deleted", isGone: false, because };
  }

  #findItems(): ReadonlyMap<string, Live> {
    return this.#node.driver.findItems(this.#surroundings.run());
  }

  #nameOf(key: string): string {
    return `${this.#node.definition.name}[${key}]`;
  }

  async #askEmpty(name: "readyPostcondition" | "deletePostcondition"): Promise<boolean> {
    const { around, run } = this.#surroundings;
    return takeStep(this.#node.definition, around, (step) => ask(name, this.#node, { ...run(), ...step }));
  }

  /** Returns the items that can be written; the others have failed. */
  async #complete(desired: ReadonlyMap<string, unknown>): Promise<Target[]> {
    const keys = new Map<string, string>();
    const items: Target[] = [];
    for (const [key, each] of desired) {
      const item = this.#itemOf(key);
      this.#wanted.add(key);
      try {
        item.wanted = item.driver.complete(this.#surroundings.run(), each, key);
        const { id } = item.wanted;
        const other = keys.get(id);
        if (other !== undefined) throw new TerminalError(`it is ${id}, and so is the item "${other}"`);
        keys.set(id, key);
        items.push(item);
      } catch (error) {
        this.#end(item, this.#failureOf(item, error));
      }
      const pause = yieldIfLong();
      if (pause !== undefined) await pause;
    }
    return items;
  }

  #itemOf(key: string): Target {
    const { definition, driver } = this.#node;
    return { definition, driver, item: key, conditions: {} };
  }

  #unwantedOf(live: ReadonlyMap<string, Live>): ReadonlyMap<string, Live> {
    return new Map([...live].filter(([key]) => !this.#wanted.has(key)));
  }

  async #deleteItems(
    live: ReadonlyMap<string, Live>,
    because: string,
    blockersOf?: ItemWork["blockersOf"],
  ): Promise<void> {
    for (const key of live.keys()) this.#unwanted.add(key);
    await this.#settleAll(
      [...live.keys()].map((key) => this.#itemOf(key)),
      {
        blockersOf,
        act: (item) =>
          this.#step(item, (run) => deleteObject(item, run, { because, known: live.get(item.item!) })).catch(
            (error: unknown) => releaseOrThrow(item, this.#surroundings.run(), error),
          ),
      },
    );
  }

  // There may be thousands of items, mostly as desired: only those that have a place, or wait for other items, cost promises.
  async #settleAll(items: readonly Target[], work: ItemWork): Promise<void> {
    const settling = new Set<Promise<void>>();
    for (const item of items) {
      const turn = work.blockersOf === undefined ? this.#places.acquire() : undefined;
      if (turn !== undefined) await turn;
      const settled = this.#settle(item, work).then(() => void settling.delete(settled));
      settling.add(settled);
      const pause = yieldIfLong();
      if (pause !== undefined) await pause;
    }
    await Promise.all(settling);
  }

  async #settle(item: Target, { blockersOf, act }: ItemWork): Promise<void> {
    try {
      const blockers = (await blockersOf?.(item.item!)) ?? [];
      if (blockers.length > 0) return this.#end(item, { kind: "waiting", for: blockers });
      if (blockersOf !== undefined) await this.#places.acquire();
      this.#end(item, await act(item));
    } catch (error) {
      this.#end(item, this.#failureOf(item, error));
    }
  }

  /** Takes the step of an item that has a place. */
  #step(item: Target, body: (run: StepRun) => Promise<DependentOutcome>): Promise<DependentOutcome> {
    const { around, run } = this.#surroundings;
    const places = [takenPlace(this.#places), ...around.places];
    return takeStep(item.definition, { ...around, places }, (step) => body({ ...run(), ...step }));
  }

  #failureOf({ definition, item }: Target, error: unknown): DependentOutcome {
    return { kind: "failed", error: createDependentError(definition.name, error, item) };
  }

  #end(item: Target, outcome: DependentOutcome): void {
    const key = item.item!;
    const complete = withConditions(outcome, item);
    this.#outcomes.set(key, complete);
    for (const tell of this.#listeners.get(key) ?? []) tell(complete);
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
      if (!each.#wanted.has(key) || !isReadyItem(await each.#awaitOutcome(key))) missing.push(each.#nameOf(key));
    return missing;
  }

  /** Waits for the deletions of the items that need an item; returns the names of those that are not gone. */
  async #keepersOf(key: string, dependents: readonly BulkRun[]): Promise<string[]> {
    const keepers: string[] = [];
    for (const each of dependents)
      if (each.#unwanted.has(key) && !isGoneItem(await each.#awaitOutcome(key))) keepers.push(each.#nameOf(key));
    return keepers;
  }

  #hasLive(key: string): boolean {
    // The live items of an inactive dependent are unknown.
    if (this.#node.conditions.activationCondition?.isMet === false) return false;
    const outcome = this.#outcomes.get(key);
    if (outcome !== undefined && isGoneItem(outcome)) return false;
    return outcome?.kind === "deleted" || this.#findItems().has(key);
  }
}

/** A place that was taken before the step began. The step acquires it again only for its next attempt. */
function takenPlace(places: Semaphore): Place {
  let isTaken = true;
  return {
    acquire(signal) {
      if (!isTaken) return places.acquire(signal);
      isTaken = false;
      return undefined;
    },
    release: () => places.release(),
  };
}
