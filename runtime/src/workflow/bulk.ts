// The items of a bulk dependent in one run (JOSDK's BulkDependentResourceReconciler). Each item is a step. It only waits for items with the same key
// in other dependents, and takes no slot while it waits.
import { TerminalError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import { Semaphore, turns } from "../base/wait.js";
import { type Live, LiveItems } from "./dependent-reconciler.js";
import { isGone, isReady } from "./plan.js";
import type { DependentOutcome } from "./run.js";
import { type Run, type Slots, Target, takeStep } from "./step.js";

const MOST_AT_ONCE = 10;
// The error message ends up in the status; the result contains all failures.
const MOST_ERRORS = 5;
const NOT_RETURNED = "desired() does not return it";

interface BulkNode {
  readonly target: Target;
  readonly run: Run;
}

interface ItemWork {
  /** The bulk dependents whose items with the same key may block an item. */
  readonly others: readonly BulkRun[];
  /** Reports whether the item with a key does not block. Waits for its outcome if necessary. */
  lets(other: BulkRun, key: string): Promise<boolean>;
  act(item: Target): Promise<DependentOutcome | "unseen">;
}

export class BulkRun {
  readonly #node: BulkNode;
  /** The bulk dependents in its `itemsDependOn`. */
  readonly #needs: readonly BulkRun[];
  /** The bulk dependents that list it in `itemsDependOn`. */
  readonly #neededBy: BulkRun[] = [];
  readonly #slots: Semaphore;
  readonly #items: LiveItems;
  readonly #wanted = new Set<string>();
  readonly #unwanted = new Set<string>();
  readonly #outcomes = new Map<string, DependentOutcome>();
  readonly #listeners = new Map<string, ((outcome: DependentOutcome) => void)[]>();
  /** Whether the desired items are known. */
  #isReconciled = false;
  #isUnseen = false;
  /** Whether the postcondition is met that is evaluated once without an item if there are no items. */
  #isMetEmpty = true;

  constructor(node: BulkNode, needs: readonly BulkRun[]) {
    const { definition, reconciler } = node.target;
    this.#node = node;
    this.#needs = needs;
    for (const each of needs) each.#neededBy.push(this);
    this.#items = new LiveItems(reconciler, node.run);
    this.#slots = new Semaphore(definition.bulk?.maxConcurrency ?? MOST_AT_ONCE);
  }

  /** Whether it may have undesired items that were needed by items of other dependents until now. */
  get isUnswept(): boolean {
    return this.#isReconciled && this.#neededBy.length > 0;
  }

  /**
   * Writes the items that `desired` returned. For a read-only dependent, evaluates whether the live items are ready. Returns `unseen` if there are
   * objects that `desired` has not read, so that it has to be called again.
   */
  async reconcile(onKnown: () => void): Promise<DependentOutcome | "unseen"> {
    this.#isUnseen = false;
    this.#wanted.clear();
    const { desired, definition } = this.#node.target;
    const completed = desired === undefined ? undefined : await this.#complete(desiredItemsOf(desired.object));
    const live = this.#items.known;
    // A read-only dependent without items is not ready, unless its readyPostcondition is met without an item.
    if (completed === undefined && live.size === 0)
      this.#isMetEmpty = definition.readyPostcondition !== undefined && (await this.#askEmpty("readyPostcondition"));
    const items = completed ?? [...live.keys()].map((key) => this.#target(key));
    for (const { item } of items) this.#wanted.add(item!);
    // Items that other dependents may still need are deleted at the end of the run.
    const isSweptLater = this.#neededBy.length > 0;
    const deletions = isSweptLater ? undefined : this.#deleteItems(this.#unwantedOf(live), NOT_RETURNED);
    this.#isReconciled = true;
    onKnown();
    await deletions;
    await this.#settleAll(items, {
      others: this.#needs,
      lets: async (other, key) => other.#wanted.has(key) && isReady(await other.#awaitOutcome(key)),
      act: (item) => this.#step(item, (run) => item.reconcile(run)),
    });
    if (this.#isUnseen) {
      this.#items.findAll();
      return "unseen";
    }
    return this.#outcome();
  }

  /** Fails all items without an outcome, because items of other dependents may wait for them. */
  fail(error: unknown): void {
    for (const key of this.#wanted) {
      if (this.#outcomes.has(key)) continue;
      const item = this.#target(key);
      this.#end(item, item.failure(error));
    }
  }

  /** Deletes all items, each after the items that need it. `because` describes why the dependent must not exist. */
  async delete(because: string, onKnown: () => void): Promise<DependentOutcome> {
    const { target, run } = this.#node;
    await takeStep(target.definition, run, (step) => target.discover(step));
    const items = this.#items.findAll();
    const deletions = this.#deleteItems(items, because);
    onKnown();
    if (items.size === 0) this.#isMetEmpty = await this.#askEmpty("deletePostcondition");
    await deletions;
    return this.#outcome(because);
  }

  /** Deletes, at the end of a run, undesired items that no item of another dependent needs. */
  async sweep(): Promise<DependentOutcome> {
    const unwanted = this.#unwantedOf(this.#items.findAll());
    await this.#deleteItems(unwanted, NOT_RETURNED, async (other, key) => !other.#hasLive(key));
    return this.#outcome();
  }

  /** Returns the outcome of the dependent: failed if any item has failed, ready or deleted if all items are. */
  #outcome(because?: string): DependentOutcome {
    const { name } = this.#node.target.definition;
    if (!this.#isMetEmpty)
      return because === undefined ? { kind: "waiting", for: [name] } : { kind: "deleted", isGone: false, because };
    const outcomes = [...this.#outcomes.values()];
    const items = Object.fromEntries(this.#outcomes);
    const errors = outcomes.flatMap((each) => (each.kind === "failed" ? [each.error] : []));
    if (errors.length > 0) {
      const messages = errors.slice(0, MOST_ERRORS).map(messageOf);
      if (errors.length > MOST_ERRORS)
        messages.push(`${errors.length - MOST_ERRORS} more items of dependent "${name}"`);
      return { kind: "failed", error: new AggregateError(errors, messages.join("; ")), items };
    }
    const isAll = (kind: DependentOutcome["kind"]) =>
      outcomes.length > 0 && outcomes.every((each) => each.kind === kind);
    if (isAll("waiting")) {
      const blockers = outcomes.flatMap((each) => (each.kind === "waiting" ? each.for : []));
      return { kind: "waiting", for: [...new Set(blockers)], items };
    }
    if (because !== undefined)
      return isAll("left")
        ? { kind: "left", items }
        : { kind: "deleted", isGone: outcomes.every(isGone), because, items };
    const isAllReady = [...this.#wanted].every((key) => isReady(this.#outcomes.get(key)!));
    return { kind: kindOf(outcomes), isReady: isAllReady, items };
  }

  #target(item: string): Target {
    return new Target(this.#node.target, { item, items: this.#items });
  }

  #askEmpty(name: "readyPostcondition" | "deletePostcondition"): Promise<boolean> {
    const { target, run } = this.#node;
    return takeStep(target.definition, run, (step) => target.ask(name, step));
  }

  /** Returns the items that can be written. The others are recorded as failed. */
  async #complete(desired: ReadonlyMap<string, unknown>): Promise<Target[]> {
    const keys = new Map<string, string>();
    const items: Target[] = [];
    for (const [key, each] of desired) {
      const item = this.#target(key);
      item.desired = { object: each, seen: this.#node.target.desired?.seen };
      this.#wanted.add(key);
      try {
        item.wanted = item.reconciler.complete(this.#node.run, each, key);
        const { id } = item.wanted;
        const other = keys.get(id);
        if (other !== undefined) throw new TerminalError(`it is ${id}, and so is the item "${other}"`);
        keys.set(id, key);
        items.push(item);
      } catch (error) {
        this.#end(item, item.failure(error));
      }
      const pause = turns.pause();
      if (pause !== undefined) await pause;
    }
    return items;
  }

  #unwantedOf(live: ReadonlyMap<string, Live>): ReadonlyMap<string, Live> {
    return new Map([...live].filter(([key]) => !this.#wanted.has(key)));
  }

  async #deleteItems(
    live: ReadonlyMap<string, Live>,
    because: string,
    lets: ItemWork["lets"] = async (other, key) => !other.#unwanted.has(key) || isGone(await other.#awaitOutcome(key)),
  ): Promise<void> {
    for (const key of live.keys()) this.#unwanted.add(key);
    const remove = (item: Target) => this.#step(item, (run) => item.delete(run, because, live.get(item.item!)));
    await this.#settleAll(
      [...live.keys()].map((key) => this.#target(key)),
      {
        ...{ others: this.#neededBy, lets },
        act: (item) => remove(item).catch((error: unknown) => item.leaveFailed(this.#node.run, error)),
      },
    );
  }

  // There may be thousands of items, most of them up to date, so promises are only created for items that have a slot or wait for others.
  async #settleAll(items: readonly Target[], work: ItemWork): Promise<void> {
    const settling = new Set<Promise<void>>();
    for (const item of items) {
      const turn = work.others.length === 0 ? this.#slots.acquire() : undefined;
      if (turn !== undefined) await turn;
      const settled = this.#settle(item, work).then(() => void settling.delete(settled));
      settling.add(settled);
      const pause = turns.pause();
      if (pause !== undefined) await pause;
    }
    await Promise.all(settling);
  }

  async #settle(item: Target, { others, lets, act }: ItemWork): Promise<void> {
    const key = item.item!;
    try {
      const blockers: string[] = [];
      for (const other of others)
        if (!(await lets(other, key))) blockers.push(`${other.#node.target.definition.name}[${key}]`);
      if (blockers.length > 0) return this.#end(item, { kind: "waiting", for: blockers });
      if (others.length > 0) await this.#slots.acquire();
      const outcome = await act(item);
      if (outcome === "unseen") this.#isUnseen = true;
      else this.#end(item, outcome);
    } catch (error) {
      this.#end(item, item.failure(error));
    }
  }

  /** Runs the step of an item that has a slot already. */
  #step<Outcome>({ definition }: Target, body: (run: Run) => Promise<Outcome>): Promise<Outcome> {
    const { run } = this.#node;
    return takeStep(definition, run, body, [takenSlot(this.#slots), ...run.slots]);
  }

  #end(item: Target, outcome: DependentOutcome): void {
    const key = item.item!;
    const complete = item.withConditions(outcome);
    this.#outcomes.set(key, complete);
    for (const tell of this.#listeners.get(key) ?? []) tell(complete);
  }

  async #awaitOutcome(key: string): Promise<DependentOutcome> {
    const known = this.#outcomes.get(key);
    if (known !== undefined) return known;
    return new Promise((resolve) => this.#listeners.set(key, [...(this.#listeners.get(key) ?? []), resolve]));
  }

  #hasLive(key: string): boolean {
    // The live items of an inactive dependent are unknown.
    if (this.#node.target.conditions.activationCondition?.isMet === false) return false;
    const outcome = this.#outcomes.get(key);
    if (outcome !== undefined && isGone(outcome)) return false;
    return outcome?.kind === "deleted" || this.#items.get(key) !== undefined;
  }
}

/** A slot that was acquired before the step started. Only retries acquire it again. */
function takenSlot(slots: Semaphore): Slots {
  let isTaken = true;
  return {
    acquire(signal) {
      if (!isTaken) return slots.acquire(signal);
      isTaken = false;
      return undefined;
    },
    release: () => slots.release(),
  };
}

function kindOf(outcomes: readonly DependentOutcome[]): "created" | "updated" | "unchanged" {
  if (outcomes.some(({ kind }) => kind === "created")) return "created";
  return outcomes.some(({ kind }) => kind === "updated" || kind === "deleted") ? "updated" : "unchanged";
}

/** Validates the result of `desired` of a bulk dependent. Throws a TerminalError unless it is an object or a Map of items by key. */
export function desiredItemsOf(desired: unknown): ReadonlyMap<string, unknown> {
  const fail = (found: string) =>
    new TerminalError(`desired() of a bulk dependent has to return its items by their keys, and returned ${found}`);
  if (desired instanceof Map) {
    const stranger: unknown = [...desired.keys()].find((key) => typeof key !== "string");
    if (stranger !== undefined) throw fail(`a Map with the key ${String(stranger)}, which is no text`);
    return desired as Map<string, unknown>;
  }
  if (typeof desired !== "object") throw fail(typeof desired);
  if (desired === null) throw fail("null");
  // A plain object, possibly from another realm: its prototype has no prototype.
  const prototype: unknown = Object.getPrototypeOf(desired);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return new Map(Object.entries(desired));
  // An array or a Set, for example, must not count as an object without items, which would delete all items.
  if (Array.isArray(desired)) throw fail("a list");
  const name = desired.constructor?.name;
  throw fail(name === undefined ? "an object of an unknown class" : `a ${name}`);
}
