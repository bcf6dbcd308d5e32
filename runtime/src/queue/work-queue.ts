import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ReconcilePriority } from "../base/reconcile-reason.js";
import { FairQueue, type Queued } from "./fair-queue.js";

// One in this many goes to the background while both wait: a flood of edits slows a start down, and does not stop it.
const BACKGROUND_SHARE = 5;

interface Entry extends Queued<Entry> {
  readonly key: ObjectKey;
  priority: ReconcilePriority;
  isRunning: boolean;
  /** How urgently the key was added while it runs. */
  again: ReconcilePriority | undefined;
}

/**
 * The keys that are ready, in which no key is handed out twice at once.
 *
 * Every key that was added is handed out at least once afterwards; however often it was added, it waits only once. Edits come before the
 * background, which still gets one turn in five. Among equals the namespaces take turns. Every operation takes constant time.
 */
export class WorkQueue {
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #edits = new FairQueue<Entry>();
  readonly #background = new FairQueue<Entry>();
  #runningCount = 0;
  /** How many edits were handed out while the background waited. */
  #editsInARow = 0;
  #isClosed = false;

  /**
   * Adds a key.
   *
   * One that waits already keeps its place, unless it becomes more urgent. One that runs is handed out once more afterwards, so a change
   * seen during a reconcile is never lost.
   */
  add(key: ObjectKey, priority: ReconcilePriority = "edit"): void {
    if (this.#isClosed) return;
    const entry = this.#entries.get(key);
    if (entry === undefined) this.#add(key, priority);
    else if (entry.isRunning) entry.again = higher(entry.again, priority);
    else if (entry.priority === "background" && priority === "edit") {
      this.#background.remove(entry);
      entry.priority = "edit";
      this.#edits.add(entry);
    }
  }

  /** Hands out the key whose turn it is; it must be given back with `done`. */
  take(): ObjectKey | undefined {
    const entry = this.#next();
    if (entry === undefined) return undefined;
    entry.isRunning = true;
    this.#runningCount++;
    return entry.key;
  }

  /** Gives back a key that was handed out; it is ready again if it was added meanwhile. */
  done(key: ObjectKey): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || !entry.isRunning) return;
    this.#entries.delete(key);
    this.#runningCount--;
    if (entry.again !== undefined && !this.#isClosed) this.#add(key, entry.again);
  }

  /** Forgets a key that waits; one that runs is not disturbed, and does not run again. */
  remove(key: ObjectKey): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.again = undefined;
    if (entry.isRunning) return;
    this.#entries.delete(key);
    this.#queueOf(entry.priority).remove(entry);
  }

  /** How many keys wait to be handed out. */
  get readyCount(): number {
    return this.#edits.size + this.#background.size;
  }

  /** How many keys are handed out. */
  get runningCount(): number {
    return this.#runningCount;
  }

  /** Hands out nothing more and forgets what waits. */
  close(): void {
    this.#isClosed = true;
    for (const { key } of this.#entries.values()) this.remove(key);
  }

  #add(key: ObjectKey, priority: ReconcilePriority): void {
    // The namespace; one for all that have none.
    const group = key.slice(0, Math.max(0, key.indexOf("/")));
    const unlinked = { line: undefined, previous: undefined, next: undefined };
    const entry: Entry = { key, group, priority, isRunning: false, again: undefined, ...unlinked };
    this.#entries.set(key, entry);
    this.#queueOf(priority).add(entry);
  }

  #next(): Entry | undefined {
    const isBackgroundsTurn = this.#edits.size === 0 || this.#editsInARow >= BACKGROUND_SHARE - 1;
    if (this.#background.size > 0 && isBackgroundsTurn) {
      this.#editsInARow = 0;
      return this.#background.take();
    }
    this.#editsInARow = this.#background.size > 0 ? this.#editsInARow + 1 : 0;
    return this.#edits.take();
  }

  #queueOf(priority: ReconcilePriority): FairQueue<Entry> {
    return priority === "edit" ? this.#edits : this.#background;
  }
}

function higher(one: ReconcilePriority | undefined, other: ReconcilePriority): ReconcilePriority {
  return one === "edit" ? one : other;
}
