import { systemClock } from "../../base/clock.js";
import type { Logger } from "../../base/logger.js";
import { withDeadline } from "../../base/promises.js";
import { requesterOf, type ApiClient } from "../../client/api-client.js";
import type { EventRecorder } from "../../operate/events/event-recorder.js";
import type { Leadership } from "../../operate/lease/leadership.js";
import { lateWrites } from "../../reconcile/late-writes.js";
import type { InformerPool } from "../../watch/informer-pool.js";
import type { RunningController } from "../running-controller.js";

// Event sources are stopped after the reconciles, which may have used up the time.
const MIN_SOURCES_STOP_MS = 1_000;

// Events are for people, and not worth a long wait.
const EVENTS_STOP_MS = 2_000;

interface SessionOptions {
  /** The session before, which may not have ended. */
  readonly previous: OperatorSession | undefined;
  /** The client of the operator, where it has one already. */
  readonly client: ApiClient | undefined;
  readonly stopTimeoutMs: number;
  readonly logger: Logger;
}

/** Everything of an operator from one start to the stop after it. */
export class OperatorSession {
  /** Aborted when the session is to end. */
  readonly stopping = new AbortController();
  /** The end of the session before. */
  readonly before: Promise<boolean> | undefined;
  /** Whether all that is watched was known once. */
  isStarted = false;
  /** Whether the leadership was lost. */
  isAbandoned = false;
  /** Those of its API servers; they are closed at the end. */
  clients: readonly ApiClient[];
  controllers: readonly RunningController[] = [];
  leadership: Leadership | undefined;
  informers: InformerPool | undefined;
  events: EventRecorder | undefined;
  /** Resolves when no reconcile of this session and of those before is under way any more; that may be long after the end. */
  idle: Promise<unknown>;
  /** Resolves with whether all that was under way ended in time; absent while nothing has asked for the end. */
  ended: Promise<boolean> | undefined;
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    const { previous, client } = options;
    this.#options = options;
    this.clients = client === undefined ? [] : [client];
    this.before = previous?.ended;
    this.idle = Promise.resolve(this.before).then(() => previous?.idle);
  }

  /** How many reconciles of the sessions before have not ended. */
  get reconcilesBefore(): number {
    const { previous } = this.#options;
    if (previous === undefined) return 0;
    return previous.controllers.reduce((sum, each) => sum + each.counts().running, previous.reconcilesBefore);
  }

  /** Finishes the reconciles under way, hands the leadership over, stops the event sources and closes all connections, once. */
  end(): Promise<boolean> {
    return (this.ended ??= this.#end());
  }

  /** Breaks off all that writes: another replica may do so from now on. */
  abandon(error: Error): void {
    this.isAbandoned = true;
    for (const client of this.clients) requesterOf(client).transport.abortWrites(error);
    for (const controller of this.controllers) void controller.stopReconciling(0);
  }

  async #end(): Promise<boolean> {
    const { stopTimeoutMs, logger } = this.#options;
    const { controllers } = this;
    this.stopping.abort(new Error("the operator was stopped"));
    const wasFinished = (await this.before) ?? true;
    const endsAtMs = performance.now() + stopTimeoutMs;
    const leftMs = () => Math.max(MIN_SOURCES_STOP_MS, endsAtMs - performance.now());
    const reconciling = controllers.map((controller) => controller.stopReconciling(stopTimeoutMs));
    this.idle = Promise.all([this.idle, ...controllers.map((controller) => controller.whenIdle())]);
    const isFinished = (await Promise.all(reconciling)).every(Boolean);
    await this.events?.close(Math.min(EVENTS_STOP_MS, leftMs()));
    // Whoever is told that nobody leads writes at once, so nothing of this operator may be under way then.
    // Nor may a write come that was given up: a Lease that is not handed over expires later than that.
    const isHandedOver = isFinished && !controllers.some(({ definition }) => lateWrites.hasAny(definition));
    await this.leadership?.end(isHandedOver ? () => this.#drainWrites(leftMs()) : undefined);
    const stopped = await Promise.all(controllers.map((controller) => controller.stopSources(leftMs())));
    await Promise.all(this.clients.map((client) => client.close()));
    if (!isFinished) logger.warn({ deadlineMs: stopTimeoutMs }, "stopped while reconciles were still under way");
    return isFinished && stopped.every(Boolean) && wasFinished;
  }

  /** Waits for the writes that are under way; tells whether all of them have ended in time. */
  async #drainWrites(timeoutMs: number): Promise<boolean> {
    const ended = Promise.all(this.clients.map((client) => requesterOf(client).transport.whenWritesEnded()));
    return withDeadline(() => ended, { timeoutMs, clock: systemClock }).then(
      () => true,
      () => false,
    );
  }
}
