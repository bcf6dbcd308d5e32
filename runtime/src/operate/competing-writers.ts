// Reports who else writes the same objects: a write loop with another client, and a second process that runs the same controller.
import {
  type LoopListener,
  type LoopWrite,
  type PostponedWrite,
  type Reporter,
  type Requeue,
  type WrittenFor,
  report,
} from "../base/activity.js";
import {
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type ResourceDefinition,
  describeObject,
  keyOf,
} from "../base/kubernetes-object.js";
import { type Clock, systemClock } from "../base/wait.js";
import { collectionPath, objectPath } from "../client/api-client.js";
import { type OwnWrites, secondsOf } from "../client/own-writes.js";

/** A write loop: another client reverts the object each time, or its desired state never settles. */
export interface LoopEvent extends LoopWrite {
  readonly controller: string;
  /** Absent if no dependent manages the object. */
  readonly dependent?: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
}

/** Called for every write of a write loop; must not throw. */
export type LoopObserver = (event: LoopEvent) => void;

interface LoopReporterOptions extends Reporter {
  readonly observer?: LoopObserver | undefined;
  /** Called for the primary when the pause of an object is over. */
  readonly reconcile: Requeue;
  readonly clock?: Clock;
  /** Returns a digest of the inputs that the last reconcile of a primary saw. Default: the controller has no inputs */
  inputsOf?(primary: KubernetesObject): string | undefined;
}

// An object that still matches after this time is not in a loop.
const LOOK_AGAIN_AFTER_MS = 10_000;

/** Reports each write loop once, and requeues its primary after the pause. */
export class LoopReporter implements LoopListener {
  readonly #options: LoopReporterOptions;
  /** The postponed writes, by primary and object. */
  readonly #waiting = new Map<string, { readonly postponed: PostponedWrite; readonly cancel: () => void }>();
  #isClosed = false;

  constructor(options: LoopReporterOptions) {
    this.#options = options;
  }

  get postponed(): readonly PostponedWrite[] {
    return [...this.#waiting.values()].map(({ postponed }) => postponed);
  }

  postponedFor({ metadata }: KubernetesObject): readonly PostponedWrite[] {
    if (this.#waiting.size === 0) return [];
    const prefix = `${keyOf(metadata)} `;
    return [...this.#waiting].flatMap(([key, { postponed }]) => (key.startsWith(prefix) ? [postponed] : []));
  }

  inputOf(primary: KubernetesObject | undefined): string {
    const inputs = primary && this.#options.inputsOf?.(primary);
    return `${primary?.metadata.generation ?? 0}${inputs === undefined ? "" : ` ${inputs}`}`;
  }

  onLoop(written: LoopWrite & { readonly isUrgent?: boolean }, { primary, dependent }: WrittenFor): void {
    if (primary === undefined) return;
    const { controller, observer } = this.#options;
    const at = { controller, primary: keyOf(primary.metadata), ...(dependent !== undefined && { dependent }) };
    const { isUrgent = false, ...write } = written;
    const event: LoopEvent = { ...at, ...write };
    if (written.isNew) this.#announce(primary, event, isUrgent);
    // An urgent write is never postponed, so there is nothing to requeue.
    if (isUrgent) return;
    observer?.(event);
    // The loop is over if the object stays as it was written. No event says so, so check again later.
    const { isNew: _, pauseMs, ...loop } = write;
    this.#wait({ ...loop, managers: [], retryAfterMs: Math.max(pauseMs, LOOK_AGAIN_AFTER_MS) }, { primary, dependent });
  }

  onPostponed(postponed: PostponedWrite, writtenFor: WrittenFor): void {
    this.#wait(postponed, writtenFor);
  }

  #wait(postponed: PostponedWrite, { primary, dependent }: WrittenFor): void {
    if (primary === undefined || this.#isClosed) return;
    const { clock = systemClock, reconcile } = this.#options;
    const { kind, object, retryAfterMs } = postponed;
    const owner = keyOf(primary.metadata);
    const key = `${owner} ${kind} ${object}`;
    this.#waiting.get(key)?.cancel();
    const resume = () => {
      this.#waiting.delete(key);
      reconcile(owner, { source: dependent ?? "write loop", object, isTimer: true });
    };
    this.#waiting.set(key, { postponed, cancel: clock.schedule(retryAfterMs, resume) });
  }

  /** Cancels all requeues. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  #announce(about: KubernetesObject, event: LoopEvent, isUrgent: boolean): void {
    const { dependent, kind, object, paths, writes, loop } = event;
    const what = paths.length === 0 ? "the object itself" : paths.join(", ");
    const why =
      loop === "undone"
        ? `although the desired object did not change: another client, primary, or admission policy reverts ${what} each time`
        : `although the inputs did not change: ${paths.length === 0 ? "the desired object" : `desired ${what}`} differs on every reconcile`;
    const next = isUrgent ? "restoring it immediately, because objects would be orphaned without it" : "backing off";
    report(this.#options, about, {
      type: "Warning",
      reason: "WriteLoop",
      // One Event for each kind.
      action: `Write${kind.split(".")[0]}`,
      note: `${kind} ${object} was written ${writes} times ${why}; ${next}`,
      fields: { dependent, object, paths, writes },
    });
  }
}

interface ForeignWritesOptions extends Reporter {
  readonly fieldManagers: readonly string[];
  readonly writes: Pick<OwnWrites, "isForeign" | "time">;
  /** Called for each write of another process under these field managers. */
  readonly onForeignWrite?: ((write: { readonly controller: string }) => void) | undefined;
  readonly clock?: Clock;
}

/** A write that a watch delivered, and the primary of its object. */
interface ObservedWrite {
  readonly definition: ResourceDefinition;
  readonly object: KubernetesObject;
  readonly written: ManagedWrite;
  readonly primary: KubernetesObject;
}

// By then the API server has executed every write of the previous leader.
const SETTLED_SECONDS = 60;
const REPORT_EVERY_MS = 600_000;

/**
 * Detects a second process that runs the same controller: a write under its field manager, newer than the leadership of this process, that this
 * process did not send. The other process may be legitimate, so it is only reported.
 */
export class ForeignWrites {
  readonly #options: ForeignWritesOptions;
  /** Only later writes count, by the clock of the API server; absent while this process does not lead. */
  #since: number | undefined;
  #quietUntil = -Infinity;

  constructor(options: ForeignWritesOptions) {
    this.#options = options;
  }

  /** Call when this process becomes the leader. */
  begin(): void {
    const { time } = this.#options.writes;
    if (time !== undefined) this.#since = time + SETTLED_SECONDS;
  }

  /** Call when another process may become the leader. */
  end(): void {
    this.#since = undefined;
  }

  observe({ definition, object, written, primary }: ObservedWrite): void {
    const { fieldManagers, writes, controller, onForeignWrite } = this.#options;
    if (this.#since === undefined || !fieldManagers.includes(written.fieldManager)) return;
    const time = secondsOf(written.time);
    if (time <= this.#since) return;
    const { namespace } = object.metadata;
    const paths = [objectPath(definition, object.metadata), collectionPath(definition, namespace)];
    if (!writes.isForeign(paths, time)) return;
    onForeignWrite?.({ controller });
    this.#report({ definition, object, written, primary });
  }

  #report({ definition, object, written, primary }: ObservedWrite): void {
    const { controller, clock = systemClock } = this.#options;
    if (clock.now() < this.#quietUntil) return;
    this.#quietUntil = clock.now() + REPORT_EVERY_MS;
    const { fieldManager, time } = written;
    const note =
      `${describeObject(definition, object.metadata)} was written at ${time} by field manager "${fieldManager}", and not by this process: ` +
      `another process runs controller "${controller}"; stop one of the two, or give them different namespaces, selectors or field managers`;
    const fields = { object: keyOf(object.metadata), fieldManager, time };
    report(this.#options, primary, { type: "Warning", reason: "SecondOperator", action: "Watch", note, fields });
  }
}
