import { systemClock, type Clock } from "../base/clock.js";
import { keyOf, type ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import type { ApiClient } from "../client/api-client.js";
import type { LoopingDependent, LoopListener } from "../workflow/dependents/loop-listener.js";
import { writeEvent } from "./kubernetes-event.js";

/** A dependent that was written, not for the first time, although the same was desired as before. */
export interface LoopEvent {
  readonly controller: string;
  readonly dependent: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  /** The kind of the object, such as `Deployment.v1.apps`. */
  readonly kind: string;
  /** `namespace/name` of the object. */
  readonly object: ObjectKey;
  /** What is undone each time, such as `spec.replicas`; empty if it is the object itself. */
  readonly paths: readonly string[];
  /** How often the same was written so far. */
  readonly writes: number;
  /** Whether the loop was found with this write. */
  readonly isNew: boolean;
  /** How long the object is left alone from now on. */
  readonly pauseMs: number;
}

/** Told of every write that belongs to a loop; must not throw. */
export type LoopObserver = (event: LoopEvent) => void;

/** What the reporter of a controller works with. */
export interface LoopReporterOptions {
  readonly controller: string;
  readonly client: Pick<ApiClient, "get" | "create" | "mergePatch">;
  readonly logger: Logger;
  readonly observer?: LoopObserver | undefined;
  /** Reconciles a primary, because the pause of an object of the dependent is over. */
  readonly reconcile: (primary: ObjectKey, at: { readonly source: string; readonly object: ObjectKey }) => void;
  readonly clock?: Clock;
}

/** Tells people of loops, once each, and comes back to what was postponed. */
export class LoopReporter implements LoopListener {
  readonly #options: LoopReporterOptions;
  readonly #clock: Clock;
  /** What ends the wait for each postponed write, by primary and object. */
  readonly #postponed = new Map<string, () => void>();
  #isClosed = false;

  constructor(options: LoopReporterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  onLoop(at: LoopingDependent, { differences, ...loop }: Parameters<LoopListener["onLoop"]>[1]): void {
    const { controller, observer } = this.#options;
    const { dependent, kind, object } = at;
    const paths = differences.map(({ path }) => path).filter((path) => path !== "");
    const event: LoopEvent = {
      controller,
      dependent,
      primary: keyOf(at.primary.metadata),
      kind,
      object,
      paths,
      ...loop,
    };
    if (loop.isNew) this.#announce(at, event);
    observer?.(event);
  }

  onPostponed(at: LoopingDependent, pauseMs: number): void {
    if (this.#isClosed) return;
    const primary = keyOf(at.primary.metadata);
    const key = postponedKeyOf(primary, at);
    const resume = () => {
      this.#postponed.delete(key);
      this.#options.reconcile(primary, { source: at.dependent, object: at.object });
    };
    this.#postponed.get(key)?.();
    this.#postponed.set(key, this.#clock.schedule(pauseMs, resume));
  }

  /** Forgets what was postponed; nothing is reconciled any more because of it. */
  close(): void {
    this.#isClosed = true;
    for (const cancel of this.#postponed.values()) cancel();
    this.#postponed.clear();
  }

  #announce(at: LoopingDependent, event: LoopEvent): void {
    const { logger, client, controller: component } = this.#options;
    const { controller, dependent, primary, kind, object, paths, writes } = event;
    const what = paths.length === 0 ? "the object itself" : paths.join(", ");
    const message =
      `${kind} ${object} was written ${writes} times although nothing else was desired: somebody undoes ${what} each time; ` +
      "it is written less and less often from now on";
    logger.warn({ controller, dependent, primary, object, paths, writes }, message);
    const content = {
      component,
      about: at.primary,
      type: "Warning",
      reason: "WriteLoop",
      message,
      subject: `${kind} ${object}`,
    } as const;
    // What is missing is most likely the permission; the line in the log has said it all.
    writeEvent(client as ApiClient, content).catch((error: unknown) =>
      logger.debug({ controller, dependent, primary }, `no Event could be written about it: ${messageOf(error)}`),
    );
  }
}

function postponedKeyOf(primary: ObjectKey, { kind, object }: LoopingDependent): string {
  return `${primary} ${kind} ${object}`;
}
