// Records Events (events.k8s.io/v1). Records with the same object, reason, and action form a series: one Event with a count. Recording never blocks,
// never fails, and never reads from the API server.
import { randomBytes } from "node:crypto";
import type { EventDraft, EventSink, EventSourceName } from "../base/activity.js";
import { isApiError, isNamespaceTerminating } from "../base/errors.js";
import { type KubernetesObject, builtinKindOf, microTimeOf } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { type Clock, systemClock, withDeadline } from "../base/wait.js";
import type { ApiClient } from "../client/api-client.js";

/** An Event and its records that are not written yet. */
interface Series {
  readonly ref: { readonly name: string; readonly namespace: string };
  readonly create: () => Promise<unknown>;
  count: number;
  /** The count on the API server; 0 before the Event is created. */
  written: number;
  lastAt: Date;
  lastWrittenAtMs: number;
  /** Consecutive failed writes. */
  failures: number;
  /** Whether the Event can no longer be written. */
  isOver: boolean;
  cancelFlush: (() => void) | undefined;
}

interface EventRecorderOptions {
  readonly client: Pick<ApiClient, "create" | "mergePatch">;
  readonly logger: Logger;
  /** The reporting instance: the name of the Pod. */
  readonly instance: string;
  readonly clock?: Clock;
  readonly now?: () => Date;
}

const EVENT = { definition: builtinKindOf({ group: "events.k8s.io", kind: "Event", plural: "events" }) };

// Limits of the API server (validation of events.k8s.io/v1), in bytes and characters.
const MAX_NOTE = 1_024;
const MAX_WORD = 128;
// A burst results in one request; a continuing series is written at most twice a minute.
const FIRST_FLUSH_MS = 1_000;
const FLUSH_MS = 30_000;
const LONGEST_BACKOFF_MS = 5 * 60_000;
// How long a namespace counts as terminating: it may be created again.
const ENDING_MS = 60_000;
// As in client-go, a series ends after this time without a record. The API server deletes Events after an hour.
const SERIES_MS = 6 * 60_000;
const MAX_SERIES = 4_096;
// As in client-go's spam filter: a burst per object, then one Event every five minutes.
const BURST = 25;
const REFILL_MS = 5 * 60_000;

/** Writes the Events of an operator. */
export class EventRecorder implements EventSink {
  readonly #options: Required<EventRecorderOptions>;
  readonly #series = new Map<string, Series>();
  /** The remaining burst of each object, and the time of its last refill. */
  readonly #budgets = new Map<string, { left: number; sinceMs: number }>();
  /** Terminating namespaces, with the time until which nothing is created in them. */
  readonly #ending = new Map<string, number>();
  /** Writes are sequential, so that Events do not load the API server. */
  #writing: Promise<unknown> = Promise.resolve();
  #isRefused = false;
  #isClosed = false;

  constructor(options: EventRecorderOptions) {
    this.#options = { clock: systemClock, now: () => new Date(), ...options };
  }

  /** Records an Event about an object, or increments its count, and returns immediately. Events that cannot be written are logged and dropped. */
  record(source: EventSourceName, draft: EventDraft): void {
    const { controller, about } = source;
    if (this.#isClosed) return;
    const { reason, action = "Reconcile", type = "Normal" } = draft;
    const problem = problemOf({ reason, action, type });
    if (problem !== undefined)
      return this.#options.logger.warn({ controller, reason }, `an Event was not recorded: ${problem}`);
    const { uid = "", name, namespace = "" } = about.metadata;
    const key = [controller, about.kind, namespace, name, uid, type, reason, action].join("\n");
    const known = this.#series.get(key);
    if (known !== undefined && this.#options.now().getTime() - known.lastAt.getTime() < SERIES_MS) {
      known.count++;
      known.lastAt = this.#options.now();
      this.#flushLater(known);
      return;
    }
    if (!this.#takeBudget(`${about.kind} ${namespace}/${name}`)) {
      const message = "dropped an Event: too many Events for its object";
      return this.#options.logger.debug({ controller, reason }, message);
    }
    const series = this.#createSeries(source, { ...draft, type, action });
    // Evict the oldest series first: a Map preserves the insertion order.
    this.#series.delete(key);
    if (this.#series.size >= MAX_SERIES) this.#series.delete(this.#series.keys().next().value!);
    this.#series.set(key, series);
    this.#send(series);
  }

  /** Writes pending counts and drops further records. Resolves when everything is written, or after the timeout. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    for (const series of this.#series.values()) {
      series.cancelFlush?.();
      if (series.count > series.written) this.#send(series);
    }
    await withDeadline(() => this.#writing, { timeoutMs, clock: this.#options.clock }).catch(() => {});
    this.#series.clear();
  }

  #flushLater(series: Series): void {
    if (series.cancelFlush !== undefined || series.isOver) return;
    const since = this.#options.clock.now() - series.lastWrittenAtMs;
    const intervalMs = series.written <= 1 ? FIRST_FLUSH_MS : FLUSH_MS;
    const backoffMs = Math.min(FIRST_FLUSH_MS * 2 ** series.failures, LONGEST_BACKOFF_MS);
    const isFirst = series.written <= 1 && series.failures === 0;
    const delayMs = isFirst ? FIRST_FLUSH_MS : Math.max(0, Math.max(intervalMs, backoffMs) - since);
    series.cancelFlush = this.#options.clock.schedule(delayMs, () => {
      series.cancelFlush = undefined;
      this.#send(series);
    });
  }

  #send(series: Series): void {
    this.#writing = this.#writing
      .then(() => this.#write(series))
      .then(
        () => void (series.failures = 0),
        (error: unknown) => this.#refuse(error, series),
      );
  }

  async #write(series: Series): Promise<void> {
    const { count, ref } = series;
    if (series.isOver || this.#isEnding(ref.namespace)) return void (series.isOver = true);
    series.lastWrittenAtMs = this.#options.clock.now();
    if (series.written === 0) {
      await series.create();
      series.written = 1;
      if (series.count > 1) this.#flushLater(series);
      return;
    }
    if (count <= series.written) return;
    const written = { series: { count, lastObservedTime: microTimeOf(series.lastAt) } };
    await this.#options.client.mergePatch(EVENT, series.ref, written as never).catch(async (error: unknown) => {
      // The API server has deleted the Event (TTL).
      if (!isApiError(error, 404)) throw error;
      await series.create();
    });
    series.written = count;
    this.#isRefused = false;
  }

  #isEnding(namespace: string): boolean {
    const until = this.#ending.get(namespace);
    if (until === undefined) return false;
    if (until > this.#options.clock.now()) return true;
    this.#ending.delete(namespace);
    return false;
  }

  #refuse(error: unknown, series: Series): void {
    const { logger, clock } = this.#options;
    series.failures++;
    if (isNamespaceTerminating(error)) {
      series.isOver = true;
      this.#ending.set(series.ref.namespace, clock.now() + ENDING_MS);
      return logger.debug({}, `an Event was not written: ${messageOf(error)}`);
    }
    const isForbidden = isApiError(error, 403);
    const level = isForbidden && !this.#isRefused ? "warn" : "debug";
    this.#isRefused ||= isForbidden;
    const hint = isForbidden ? "; grant create and patch on events.events.k8s.io" : "";
    logger[level]({}, `an Event could not be written: ${messageOf(error)}${hint}`);
  }

  #createSeries({ controller, about }: EventSourceName, draft: EventDraft): Series {
    const at = this.#options.now();
    const { namespace = "default", name } = about.metadata;
    const ref = { name: `${name.slice(0, 230)}.${randomBytes(8).toString("hex")}`, namespace };
    const { type, reason, action, note, related } = draft;
    const event = {
      metadata: ref,
      eventTime: microTimeOf(at),
      reportingController: controller,
      reportingInstance: this.#options.instance.slice(0, MAX_WORD),
      ...{ type, reason, action },
      note: shortened(note),
      regarding: referenceTo(about),
      ...(related !== undefined && { related: referenceTo(related) }),
    };
    const create = () => this.#options.client.create(EVENT, event as never);
    return {
      ref,
      create,
      count: 1,
      written: 0,
      lastAt: at,
      lastWrittenAtMs: 0,
      failures: 0,
      isOver: false,
      cancelFlush: undefined,
    };
  }

  #takeBudget(object: string): boolean {
    const now = this.#options.clock.now();
    const known = this.#budgets.get(object) ?? { left: BURST, sinceMs: now };
    const refilled = Math.floor((now - known.sinceMs) / REFILL_MS);
    const left = Math.min(BURST, known.left + refilled);
    this.#budgets.delete(object);
    if (this.#budgets.size >= MAX_SERIES) this.#budgets.delete(this.#budgets.keys().next().value!);
    this.#budgets.set(object, { left: Math.max(0, left - 1), sinceMs: known.sinceMs + refilled * REFILL_MS });
    return left > 0;
  }
}

function referenceTo({ apiVersion, kind, metadata }: KubernetesObject): object {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, name, namespace, uid, resourceVersion };
}

function problemOf(words: { readonly [name: string]: unknown }): string | undefined {
  for (const [name, word] of Object.entries(words)) {
    if (typeof word !== "string" || word === "") return `its ${name} is ${JSON.stringify(word)}, and has to be a text`;
    if (word.length > MAX_WORD) return `its ${name} has ${word.length} characters, and may have ${MAX_WORD}`;
  }
  const { type } = words;
  return type === "Normal" || type === "Warning"
    ? undefined
    : `its type is "${String(type)}", and has to be Normal or Warning`;
}

/** Truncates a note to the byte limit of the API server at a character boundary. */
function shortened(note: unknown): string {
  const text = String(note);
  if (Buffer.byteLength(text) <= MAX_NOTE) return text;
  // The ellipsis takes three bytes.
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_NOTE - 3));
  return `${text.slice(0, read)}…`;
}
