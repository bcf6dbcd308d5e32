// Primaries that hang, or that left something behind, where no reconcile tells: they are not selected, or gone.
import type { EventSink, WaitingPrimary } from "../base/activity.js";
import { sleep, type Clock } from "../base/clock.js";
import { describeObject, keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { hasFinalizer } from "../write/resource-operations.js";

// Another instance may clean it up just now; the watches of its objects may be late.
const SETTLE_MS = 5_000;
const FIRST_CHECK_MS = 10_000;
const LAST_CHECK_MS = 600_000;
const RESPONSIBLE_CHECK_MS = 300_000;

interface StuckPrimariesOptions {
  readonly controller: string;
  readonly definition: ResourceDefinition;
  /** Absent if the controller uses none. */
  readonly finalizer: string | undefined;
  /** By what primaries are selected; absent if all of them are. */
  readonly selector: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventSink;
  readonly signal: AbortSignal;
  /** Cleans up after a primary that is being deleted and not selected; absent unless the controller is responsible for those. */
  readonly cleanUp?: ((primary: KubernetesObject) => void) | undefined;
  /** Yields the metadata of all primaries in the namespaces of the controller, by pages. */
  list(signal: AbortSignal): AsyncIterable<readonly KubernetesObject[]>;
  /** Tells whether a primary is selected, or its namespace is not known. */
  isSelected(primary: KubernetesObject): boolean;
  /** Tells whether the API server confirms that a primary is gone. */
  isGone(primary: KubernetesObject, signal: AbortSignal): Promise<boolean>;
  /** Names the objects of a primary that only the operator deletes, and that are not being deleted. */
  leftOf(primary: KubernetesObject): readonly string[];
  /** Returns the primaries that such objects are linked to, and that are not known. */
  linked(): readonly KubernetesObject[];
}

/** Finds and reports primaries that wait for a controller which does not see them, and objects of primaries that went without a cleanup. */
export class StuckPrimaries {
  readonly #options: StuckPrimariesOptions;
  /** Those that are being deleted, hold the finalizer and are not selected, by uid. */
  readonly #unselected = new Map<string, { readonly primary: KubernetesObject; isReported: boolean }>();
  /** Those that went without a cleanup, by uid. */
  readonly #left = new Map<string, KubernetesObject>();
  /** The check that comes next. */
  #next: { readonly dueAt: number; readonly cancel: () => void } | undefined;
  #nextMs = FIRST_CHECK_MS;
  #isChecking = false;
  /** Whether a living primary holds the finalizer and is not selected: it may be deleted later, which no watch shows. */
  #mayFollow = false;

  constructor(options: StuckPrimariesOptions) {
    this.#options = options;
  }

  /** The primaries that hang, or left something behind, each with the reason. */
  get all(): readonly WaitingPrimary[] {
    const { leftOf } = this.#options;
    const waiting = [...this.#unselected.values()].filter(({ isReported }) => isReported);
    for (const [uid, primary] of this.#left) if (leftOf(primary).length === 0) this.#left.delete(uid);
    return [
      ...waiting.map(({ primary }) => ({ primary: keyOf(primary.metadata), reason: this.#unselectedNote(primary) })),
      ...[...this.#left.values()].map((primary) => ({
        primary: keyOf(primary.metadata),
        reason: this.#leftNote(primary, leftOf(primary)),
      })),
    ];
  }

  /** Looks for what hangs since before the start; called when this replica leads. */
  async start(): Promise<void> {
    if (this.#options.finalizer === undefined) return;
    const linked = new Map(this.#options.linked().map((primary) => [primary.metadata.uid, primary]));
    if (this.#options.selector !== undefined)
      await this.#check((page) => page.forEach(({ metadata: { uid } }) => linked.delete(uid)));
    await Promise.all([...linked.values()].map((primary) => this.#reportLeft(primary, [])));
  }

  close(): void {
    this.#next?.cancel();
  }

  /**
   * Takes note of a primary that the watch shows no more. `isReleased`: its cleanup has ended; `external` names what may be left outside Kubernetes.
   */
  onDeleted(primary: KubernetesObject, facts: { isReleased: boolean; external: () => readonly string[] }): void {
    const { finalizer, selector, leftOf } = this.#options;
    const { uid, deletionTimestamp } = primary.metadata;
    if (finalizer === undefined || uid === undefined || facts.isReleased) return;
    const isMarked = hasFinalizer(primary, finalizer);
    // The API server deletes nothing that has a finalizer: the object has only lost what the watch selects.
    if (isMarked && deletionTimestamp === undefined) {
      if (selector !== undefined) this.#schedule(FIRST_CHECK_MS);
      return;
    }
    const external = facts.external();
    if (isMarked || external.length > 0 || leftOf(primary).length > 0) void this.#reportLeft(primary, external);
  }

  /** Takes note of a primary that is selected. */
  onSelected({ metadata: { uid = "" } }: KubernetesObject): void {
    this.#unselected.delete(uid);
  }

  // An earlier check stays, so that a stream of primaries does not put it off.
  #schedule(afterMs: number): void {
    const { clock } = this.#options;
    const dueAt = clock.now() + afterMs;
    if (this.#next !== undefined && this.#next.dueAt <= dueAt) return;
    this.#next?.cancel();
    const check = () => {
      this.#next = undefined;
      void this.#check();
    };
    this.#next = { dueAt, cancel: clock.schedule(afterMs, check) };
  }

  async #check(onPage: (page: readonly KubernetesObject[]) => void = () => {}): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { list, signal, finalizer, isSelected, logger, controller, definition, cleanUp } = this.#options;
    const seen = new Set<string>();
    this.#mayFollow = false;
    try {
      for await (const page of list(signal)) {
        onPage(page);
        for (const primary of page) if (hasFinalizer(primary, finalizer!)) this.#judge(primary, seen);
      }
      for (const [uid, { primary }] of this.#unselected)
        if (!seen.has(uid) || isSelected(primary)) this.#unselected.delete(uid);
    } catch (error) {
      if (signal.aborted) return;
      this.#mayFollow = true;
      const what = `${definition.plural} that hold finalizer "${finalizer}" and are not selected were not looked for`;
      logger.warn({ controller }, `${what}: ${messageOf(error)}`);
    } finally {
      this.#isChecking = false;
    }
    if (signal.aborted) return;
    if (this.#unselected.size === 0 && !this.#mayFollow && cleanUp === undefined) {
      this.#nextMs = FIRST_CHECK_MS;
      return;
    }
    const nextMs = this.#nextMs;
    this.#schedule(cleanUp === undefined ? nextMs : Math.min(nextMs, RESPONSIBLE_CHECK_MS));
    this.#nextMs = Math.min(2 * nextMs, LAST_CHECK_MS);
  }

  #judge(primary: KubernetesObject, seen: Set<string>): void {
    const { isSelected, cleanUp } = this.#options;
    const { uid = "", deletionTimestamp } = primary.metadata;
    seen.add(uid);
    if (isSelected(primary)) return;
    const known = this.#unselected.get(uid);
    // Another instance may reconcile it.
    if (deletionTimestamp === undefined) {
      this.#mayFollow = true;
      return;
    }
    if (cleanUp !== undefined) return cleanUp(primary);
    const isSettled = Date.now() - Date.parse(deletionTimestamp) >= SETTLE_MS;
    const isReported = known?.isReported === true || isSettled;
    this.#unselected.set(uid, { primary, isReported });
    if (isReported && known?.isReported !== true) this.#report(primary, "NotSelected", this.#unselectedNote(primary));
  }

  #unselectedNote(primary: KubernetesObject): string {
    const { finalizer, selector, definition } = this.#options;
    return (
      `${describeObject(definition, primary.metadata)} is being deleted and holds finalizer "${finalizer}", but is not selected (${selector}): its ` +
      "deletion blocks until it matches again, the finalizer is removed, or a controller with cleanUpUnselected cleans it up"
    );
  }

  async #reportLeft(primary: KubernetesObject, external: readonly string[]): Promise<void> {
    const { clock, signal, isGone, leftOf, logger, controller, finalizer, selector } = this.#options;
    try {
      // The event of a deletion shows the finalizers that were there before.
      if (!(await isGone(primary, signal))) {
        if (finalizer !== undefined && selector !== undefined && hasFinalizer(primary, finalizer))
          this.#schedule(SETTLE_MS);
        return;
      }
      await sleep(SETTLE_MS, signal, clock);
      const left = [...leftOf(primary), ...external];
      if (left.length === 0) return;
      if (leftOf(primary).length > 0) this.#left.set(primary.metadata.uid!, primary);
      this.#report(primary, "LeftBehind", this.#leftNote(primary, left));
    } catch (error) {
      if (signal.aborted) return;
      logger.warn({ controller, primary: keyOf(primary.metadata) }, `${messageOf(error)}; objects of it may be left`);
    }
  }

  #leftNote(primary: KubernetesObject, left: readonly string[]): string {
    const { finalizer, definition } = this.#options;
    const name = describeObject(definition, primary.metadata);
    return `${name} was deleted without a cleanup, as its finalizer "${finalizer}" was removed by another client; delete what is left: ${left.join(", ")}`;
  }

  #report(about: KubernetesObject, reason: string, note: string): void {
    const { controller, logger, events } = this.#options;
    logger.warn({ controller, primary: keyOf(about.metadata) }, note);
    events.record({ controller, about }, { type: "Warning", reason, action: "Delete", note });
  }
}
