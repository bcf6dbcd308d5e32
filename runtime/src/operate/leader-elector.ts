// Acquires, renews, and releases a Lease, like client-go's leaderelection but with a watch. A candidate measures with its own clock how long the
// Lease has not changed, and never compares timestamps of the spec. The leader stops writing well before another replica can acquire the Lease.
import { LeadershipError, findError, isApiError } from "../base/errors.js";
import { describeObject } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { type Clock, abortWith, sleep, systemClock } from "../base/wait.js";
import {
  JITTER,
  LEASE,
  type Lease,
  type LeaseClient,
  LeaseLock,
  type LeaseNotes,
  type LeaseSpec,
  type LeaseTerms,
  SUSPECTS,
  acquiredSpec,
  durationOf,
  holderOf,
  releasedSpec,
  termOf,
} from "./lease-lock.js";

export interface ElectorOptions {
  /** A separate client that neither retries nor checks the fence. */
  readonly client: LeaseClient;
  readonly fence: WriteFence;
  readonly terms: LeaseTerms;
  /** Unique per process and term. */
  readonly identity: string;
  /** The highest term that an earlier candidacy of this process has seen. */
  readonly seenTerm?: number | undefined;
  /** State stored in the Lease: written with each renewal, read after each change. Default: none */
  readonly notes?: LeaseNotes | undefined;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Returns a number from 0 to 1. Default: `Math.random` */
  readonly random?: () => number;
  /** Called when this or another replica becomes the leader, and when this replica loses leadership. */
  onChange?(): void;
  /** Called once when leadership is lost, with the fence shut. Not called for a release. */
  onLost(error: LeadershipError): void;
}

/** A candidacy, from its start until leadership ends or it is stopped. */
export class Elector {
  readonly #options: ElectorOptions;
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  readonly #lock: LeaseLock;
  #state: "candidate" | "leader" | "ended" = "candidate";
  #loop: Promise<void> | undefined;
  #resolveLeading = () => {};
  readonly #leading = new Promise<void>((resolve) => (this.#resolveLeading = resolve));
  /** The last observed Lease. Kept after its deletion, because the holder may not have noticed it yet. */
  #lease: Lease | undefined;
  #seenAtMs = -Infinity;
  /** The highest observed term, in case a client resets the Lease. */
  #term: number;
  /** The term of the last write: its watch event may arrive before the response, or without one. */
  #writtenTerm: number | undefined;
  /** When the last write of the Lease was sent. */
  #sentAtMs = -Infinity;
  /** Ends the pause before the next renewal. */
  #renewNow = () => {};
  /** The last logged problem, to log a persistent problem only once; empty after a success. */
  #problem = "";

  constructor(options: ElectorOptions) {
    this.#options = options;
    this.#term = options.seenTerm ?? -1;
    this.#clock = options.clock ?? systemClock;
    const { client, terms, notes } = options;
    this.#lock = new LeaseLock({ client, terms, notes, clock: this.#clock, ending: this.#ending.signal });
  }

  get isLeading(): boolean {
    return this.#state === "leader" && this.#options.fence.leftMs > 0;
  }

  /** The identity of the leader; undefined if it is unknown or its Lease has expired. */
  get leader(): string | undefined {
    return this.isLeading || this.#freeInMs > 0 ? holderOf(this.#lease) : undefined;
  }

  /** Why the Lease cannot be acquired while no leader is known; undefined if there is no problem. */
  get problem(): string | undefined {
    return this.leader === undefined && this.#problem !== "" ? this.#problem : undefined;
  }

  /** The current term; undefined unless this replica leads. */
  get term(): number | undefined {
    return this.isLeading ? this.#term : undefined;
  }

  get seenTerm(): number {
    return this.#term;
  }

  /** Watches the Lease and acquires it when it is free. Resolves when this replica leads and the fence is open, which may never happen. */
  start(): Promise<void> {
    this.#loop ??= this.#run().catch((error: unknown) => {
      // Only a bug can throw here, and a leader must not continue without renewals.
      if (!this.#ending.signal.aborted) this.#lose(messageOf(error));
    });
    return this.#leading;
  }

  /** Ends the candidacy or leadership without releasing the Lease: other replicas wait until it expires. */
  async stop(): Promise<void> {
    this.#ending.abort(new Error("the operator was stopped"));
    const wasLeading = this.#state === "leader";
    this.#state = "ended";
    if (wasLeading) {
      this.#options.fence.shut("it was stopped");
      this.#options.onChange?.();
    }
    await this.#loop;
  }

  /**
   * Ends the leadership, and releases the Lease if `drain` resolves with true, which means that no write is in flight. No write is sent after this
   * call. Resolves with whether the Lease was released.
   */
  async release(drain: () => Promise<boolean>): Promise<boolean> {
    const { fence, logger } = this.#options;
    const endsAtMs = this.#clock.now() + fence.leftMs;
    const wasLeading = this.isLeading;
    await this.stop();
    if (!wasLeading || !(await drain())) return false;
    try {
      await this.#letGo(this.#lease, endsAtMs).catch(async (error: unknown) => {
        // The server may have executed an in-flight renewal first.
        if (!isApiError(error, 409)) throw error;
        const found = await this.#lock.read(endsAtMs - this.#clock.now());
        if (holderOf(found) === this.#options.identity) await this.#letGo(found, endsAtMs);
      });
      logger.info({ lease: this.#name }, `released ${this.#name}`);
      return true;
    } catch (error) {
      logger.warn({ lease: this.#name }, `${this.#name} could not be released, and expires: ${messageOf(error)}`);
      return false;
    }
  }

  /**
   * Writes the notes after leadership is lost, for at most `timeoutMs`. The update is conditional on the resourceVersion that was read, so the
   * current holder keeps the Lease and reads the notes.
   */
  async saveNotes(timeoutMs: number): Promise<void> {
    const endsAtMs = this.#clock.now() + timeoutMs;
    const leftMs = () => endsAtMs - this.#clock.now();
    const { signal } = this.#ending;
    while (leftMs() > 0) {
      const wasEnding = signal.aborted;
      try {
        const found = await this.#lock.read(leftMs());
        if (found === undefined) return;
        this.#options.notes?.read(found.metadata.annotations?.[SUSPECTS], true);
        await this.#lock.write(found, found.spec ?? {}, leftMs());
        return;
      } catch (error) {
        // Losing leadership aborts requests.
        if (isApiError(error, 409) || signal.aborted !== wasEnding) continue;
        const what = `the primaries that blocked the event loop could not be noted in ${this.#name}`;
        this.#options.logger.warn({ lease: this.#name }, `${what}: ${messageOf(error)}`);
        return;
      }
    }
  }

  get #name(): string {
    return describeObject(LEASE, this.#options.terms.ref);
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted && !(await this.#attempt())) {
      // #attempt() waits until the Lease may be free.
    }
    const guard = this.#state === "leader" ? this.#guard() : undefined;
    while (!signal.aborted && this.#state === "leader") await this.#renewSoon();
    await guard;
  }

  /**
   * Watches the Lease while this replica leads: a leader that detects the loss only at its next renewal would write concurrently with its successor
   * until then.
   */
  async #guard(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        for await (const lease of this.#lock.changes(this.#lease?.metadata.resourceVersion, signal)) {
          if (this.#state !== "leader") return;
          if (lease === undefined) this.#renewNow();
          else if (!this.#isOwn(lease)) return this.#lose(this.#describeLoss(lease));
        }
      } catch {
        // Renewals log problems with the API server and detect changes as well.
      }
      await this.#pause(this.#options.terms.retryPeriodMs);
    }
  }

  #isOwn(lease: Lease): boolean {
    const term = termOf(lease);
    return holderOf(lease) === this.#options.identity && (term === this.#term || term === this.#writtenTerm);
  }

  /** Records a Lease that another client has changed. Returns why leadership is lost. */
  #describeLoss(lease: Lease): string {
    const holder = holderOf(lease);
    this.#keep(lease);
    if (holder === undefined) return `holderIdentity of ${this.#name} was removed by another client`;
    if (holder !== this.#options.identity) return `${this.#name} was acquired by "${holder}"`;
    return `leaseTransitions of ${this.#name} was set to ${termOf(lease)} by another client`;
  }

  #write(read: Lease | undefined, spec: LeaseSpec, leftMs: number): Promise<Lease> {
    this.#sentAtMs = this.#clock.now();
    this.#writtenTerm = spec.leaseTransitions ?? undefined;
    return this.#lock.write(read, spec, leftMs);
  }

  /** Reads the Lease and acquires it if it is free; otherwise waits until it may be free. Resolves with whether it was acquired. */
  async #attempt(): Promise<boolean> {
    const { retryPeriodMs } = this.#options.terms;
    const beganAtMs = this.#clock.now();
    try {
      const found = await this.#lock.read();
      this.#see(found);
      if (this.#freeInMs === 0) {
        await this.#take(found);
        return true;
      }
      this.#problem = "";
      await this.#follow(found?.metadata.resourceVersion);
    } catch (error) {
      if (this.#ending.signal.aborted) return false;
      this.#tell(`${this.#name} could not be acquired or watched: ${messageOf(error)}`, error);
      await this.#pause(retryPeriodMs);
    }
    const passedMs = this.#clock.now() - beganAtMs;
    if (passedMs < retryPeriodMs && this.#freeInMs > 0) await this.#pause(retryPeriodMs - passedMs);
    return false;
  }

  /** Watches the Lease until it is free, or until the watch or the candidacy ends. */
  async #follow(resourceVersion: string | undefined): Promise<void> {
    const enough = new AbortController();
    const leave = abortWith(enough, this.#ending.signal);
    let cancel = () => {};
    const expectExpiry = () => {
      cancel();
      cancel = this.#clock.schedule(this.#freeInMs, () => enough.abort());
    };
    expectExpiry();
    try {
      for await (const lease of this.#lock.changes(resourceVersion, enough.signal)) {
        this.#see(lease);
        if (this.#freeInMs === 0) return;
        expectExpiry();
      }
    } finally {
      cancel();
      leave();
      enough.abort();
    }
  }

  #see(lease: Lease | undefined): void {
    // The holder may not have noticed the deletion yet.
    if (lease === undefined) return;
    const [before, now] = [holderOf(this.#lease), holderOf(lease)];
    this.#keep(lease);
    if (now === undefined || now === before || now === this.#options.identity) return;
    this.#options.logger.info({ lease: this.#name, leader: now }, `standing by: ${this.#name} is held by "${now}"`);
    this.#options.onChange?.();
  }

  #keep(lease: Lease): void {
    if (JSON.stringify(lease.spec) !== JSON.stringify(this.#lease?.spec)) this.#seenAtMs = this.#clock.now();
    this.#term = Math.max(this.#term, termOf(lease));
    this.#lease = lease;
    this.#options.notes?.read(lease.metadata.annotations?.[SUSPECTS], this.#state === "leader");
  }

  /** The time until the Lease can be acquired if it does not change, in milliseconds. */
  get #freeInMs(): number {
    const holder = holderOf(this.#lease);
    if (this.#lease === undefined || holder === undefined || holder === this.#options.identity) return 0;
    const expiresAtMs = this.#seenAtMs + durationOf(this.#lease, this.#options.terms.leaseDurationMs);
    return Math.max(0, expiresAtMs - this.#clock.now());
  }

  async #take(found: Lease | undefined): Promise<void> {
    const { fence, terms, logger } = this.#options;
    const since = fence.now();
    this.#keep(await this.#write(found, this.#acquired(), terms.renewDeadlineMs));
    // A stopped operator must not become the leader; the Lease expires.
    if (this.#ending.signal.aborted) return;
    this.#state = "leader";
    this.#problem = "";
    const onShut = (reason: string) => this.#lose(this.#problem === "" ? reason : `${reason}; ${this.#problem}`);
    fence.open(since, terms.renewDeadlineMs, onShut);
    if (!this.isLeading) return;
    const fields = { lease: this.#name, leader: this.#options.identity, term: this.#term };
    logger.info(fields, `acquired ${this.#name}; starting controllers`);
    this.#options.onChange?.();
    this.#resolveLeading();
  }

  async #renewSoon(): Promise<void> {
    const { fence, terms } = this.#options;
    // Measured from when the last renewal was sent, so that slow responses do not use up the renew deadline.
    const dueInMs = Math.max(0, this.#sentAtMs + terms.retryPeriodMs - this.#clock.now());
    await this.#pauseUntilAsked(Math.min(dueInMs, fence.leftMs));
    const { leftMs } = fence;
    // The fence reports its expiry. The timer may fire slightly early.
    if (leftMs < 1 || this.#ending.signal.aborted) return;
    try {
      await this.#renew(leftMs);
      this.#problem = "";
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      if (findError(error, "LeadershipError") !== undefined) return this.#lose(messageOf(error));
      this.#tell(`${this.#name} could not be renewed: ${messageOf(error)}`, error);
    }
  }

  async #renew(leftMs: number): Promise<void> {
    const { fence, terms } = this.#options;
    let since = fence.now();
    const again = async (error: unknown): Promise<Lease> => {
      // Another client has written or deleted the Lease, or the server has executed a renewal whose response was lost.
      if (!isApiError(error, 409) && !isApiError(error, 404)) throw error;
      const found = await this.#lock.read(fence.leftMs);
      if (found !== undefined && !this.#isOwn(found)) throw new LeadershipError(this.#describeLoss(found));
      if (found !== undefined) this.#keep(found);
      since = fence.now();
      return this.#write(found, this.#acquired(found?.spec), fence.leftMs);
    };
    this.#keep(await this.#write(this.#lease, this.#acquired(), leftMs).catch(again));
    fence.extend(since, terms.renewDeadlineMs);
  }

  #lose(reason: string): void {
    const { fence, logger } = this.#options;
    if (this.#state !== "leader") return;
    this.#state = "ended";
    this.#ending.abort(new Error(reason));
    fence.shut(reason);
    const error = new LeadershipError(`lost leadership: ${reason}`);
    logger.error({ lease: this.#name }, error.message);
    this.#options.onChange?.();
    this.#options.onLost(error);
  }

  #acquired(spec: LeaseSpec | undefined = this.#lease?.spec): LeaseSpec {
    const { identity, terms } = this.#options;
    return acquiredSpec(spec, { identity, durationMs: terms.leaseDurationMs, now: this.#now, seenTerm: this.#term });
  }

  /** `endsAtMs` is when the fence closes: from then on another replica may hold the Lease. */
  async #letGo(lease: Lease | undefined, endsAtMs: number): Promise<void> {
    const leftMs = endsAtMs - this.#clock.now();
    if (leftMs <= 0) throw new Error("its time is up");
    await this.#lock.write(lease, releasedSpec(lease?.spec, this.#now), leftMs);
  }

  get #now(): Date {
    return new Date(this.#options.fence.now().wallMs);
  }

  async #pause(ms: number, jitter = JITTER): Promise<void> {
    const { random = Math.random } = this.#options;
    await sleep(ms * (1 + jitter * random()), this.#ending.signal, this.#clock).catch(() => {});
  }

  /** Waits without jitter until the time has passed or `#renewNow` is called. */
  async #pauseUntilAsked(ms: number): Promise<void> {
    const asked = new AbortController();
    this.#renewNow = () => asked.abort();
    await sleep(ms, [this.#ending.signal, asked.signal], this.#clock).catch(() => {});
    this.#renewNow = () => {};
  }

  #tell(problem: string, error: unknown): void {
    const { logger } = this.#options;
    // Another candidate was faster.
    if (isApiError(error, 409)) return logger.debug({ lease: this.#name }, problem);
    logger[problem === this.#problem ? "debug" : "warn"]({ lease: this.#name }, problem);
    this.#problem = problem;
  }
}

// The write fence. Invariant: no write is sent later than the renew deadline after the last successful renewal was sent, measured by the monotonic
// clock, which changes of the system time do not affect. Bytes that were sent before cannot be recalled.

/** A point in time by both clocks of a machine, in milliseconds. */
export interface Moment {
  /** Never decreases; may stand still while the machine is suspended. */
  readonly monotonicMs: number;
  /** System time: it can be set, and advances while the machine is suspended. */
  readonly wallMs: number;
}

const timeOfMachine = (): Moment => ({ monotonicMs: performance.now(), wallMs: Date.now() });

// NTP slews a clock by at most 0.5 ms per second. A larger difference means that the machine was suspended or the clock was set.
const MAX_DRIFT_MS = 1_000;

/** Decides whether an operator may write. Checked synchronously, immediately before the bytes of a write are sent. */
export class WriteFence {
  /** Reads both clocks. */
  readonly now: () => Moment;
  #permit: { readonly since: Moment; readonly forMs: number; readonly onShut: (reason: string) => void } | undefined;
  #reason = "it has not become the leader";

  constructor(now = timeOfMachine) {
    this.now = now;
  }

  /** Opens the fence for `forMs` after `since`. Calls `onShut` once, when the fence is shut or is found to have expired. */
  open(since: Moment, forMs: number, onShut: (reason: string) => void): void {
    this.#permit = { since, forMs, onShut };
  }

  /** Extends the permit. A fence that was shut stays shut. */
  extend(since: Moment, forMs: number): void {
    if (this.leftMs > 0) this.#permit = { ...this.#permit!, since, forMs };
  }

  shut(reason: string): void {
    const permit = this.#permit;
    this.#permit = undefined;
    this.#reason = reason;
    permit?.onShut(reason);
  }

  /** The time for which writes may be sent, in milliseconds, or 0. */
  get leftMs(): number {
    if (this.#permit === undefined) return 0;
    const { since, forMs } = this.#permit;
    const now = this.now();
    const passedMs = now.monotonicMs - since.monotonicMs;
    const driftMs = Math.abs(now.wallMs - since.wallMs - passedMs);
    if (driftMs > MAX_DRIFT_MS)
      this.shut(
        `its wall clock and monotonic clock differ by ${Math.round(driftMs / 1000)} s since the last renewal: the machine was suspended, or the clock was set`,
      );
    else if (passedMs >= forMs) this.shut(`its Lease was not renewed for ${Math.round(passedMs)} ms`);
    else return forMs - passedMs;
    return 0;
  }

  /** Throws a LeadershipError if the fence is shut. */
  check({ method, path }: { readonly method: string; readonly path: string }): void {
    if (this.leftMs > 0) return;
    throw new LeadershipError(
      `${method} ${path.replace(/\?.*$/, "")} was not sent, because this replica is not the leader: ${this.#reason}`,
    );
  }
}
