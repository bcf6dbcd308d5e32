// Takes and holds a Lease (client-go's leaderelection, with a watch). A candidate measures by its own clock how long the Lease has not
// changed, never by times that others have written; the holder stops to write well before the others take over.
import { sleep, systemClock, type Clock } from "../../base/clock.js";
import { findError, isApiError, LeadershipError } from "../../base/errors.js";
import { describeObject } from "../../base/kubernetes-object.js";
import { messageOf, type Logger } from "../../base/logger.js";
import { abortWith } from "../../base/promises.js";
import type { ApiClient } from "../../client/api-client.js";
import { acquired, durationOf, holderOf, LEASE, released, SUSPECTS, termOf } from "./lease.js";
import type { Lease, LeaseNotes, LeaseSpec } from "./lease.js";
import { createLeaseRequests, type LeaseRequests } from "./lease-requests.js";
import { JITTER, type LeaseTerms } from "./lease-settings.js";
import type { WriteFence } from "./write-fence.js";

/** What an elector works with. */
export interface ElectorOptions {
  /** A client of its own, which repeats nothing, and which no fence holds back. */
  readonly client: Pick<ApiClient, "get" | "create" | "update" | "watch">;
  readonly fence: WriteFence;
  readonly terms: LeaseTerms;
  /** Unique among all processes, and all terms of this one. */
  readonly identity: string;
  /** The highest term that an earlier candidacy of this process saw. */
  readonly seenTerm?: number | undefined;
  /** Kept in the Lease: written with each renewal, and read with each change. Default: nothing is kept */
  readonly notes?: LeaseNotes | undefined;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Returns a number from 0 to 1. Default: `Math.random`. */
  readonly random?: () => number;
  /** Called when this or another one begins to lead, and when this one leads no more. */
  onChange?(): void;
  /** Called once when the leadership is lost, with the fence shut; not called for a release. */
  onLost(error: LeadershipError): void;
}

/** One candidacy: from the start to the end of the leadership, or to the stop before. */
export class Elector {
  readonly #options: ElectorOptions;
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  readonly #requests: LeaseRequests;
  #state: "candidate" | "leader" | "ended" = "candidate";
  #loop: Promise<void> | undefined;
  #resolveLeading = () => {};
  readonly #leading = new Promise<void>((resolve) => (this.#resolveLeading = resolve));
  /** The Lease as it was seen last, also after somebody deleted it: who held it may not know yet. */
  #lease: Lease | undefined;
  #seenAtMs = -Infinity;
  /** The highest term that was seen: somebody may clear the Lease. */
  #term: number;
  /** The term of the last write: its event may arrive before its response, or without one. */
  #writtenTerm: number | undefined;
  /** When the last write of the Lease was sent. */
  #sentAtMs = -Infinity;
  /** Ends the pause before the next renewal. */
  #renewNow = () => {};
  /** The last problem that was logged, until an attempt succeeds: one that lasts is told once. */
  #problem = "";

  constructor(options: ElectorOptions) {
    this.#options = options;
    this.#term = options.seenTerm ?? -1;
    this.#clock = options.clock ?? systemClock;
    const { client, terms, notes } = options;
    this.#requests = createLeaseRequests({ client, terms, notes, clock: this.#clock, ending: this.#ending.signal });
  }

  get isLeading(): boolean {
    return this.#state === "leader" && this.#options.fence.leftMs > 0;
  }

  /** The identity of the leader as far as it is known; undefined also when its Lease has expired. */
  get leader(): string | undefined {
    return this.isLeading || this.#freeInMs > 0 ? holderOf(this.#lease) : undefined;
  }

  /** Why no leader is known: the Lease cannot be taken; undefined while there is no problem. */
  get problem(): string | undefined {
    return this.leader === undefined && this.#problem !== "" ? this.#problem : undefined;
  }

  /** The number of the term; absent unless it leads. */
  get term(): number | undefined {
    return this.isLeading ? this.#term : undefined;
  }

  get seenTerm(): number {
    return this.#term;
  }

  /** Begins to watch the Lease, and takes it when it is free; resolves when this replica leads, with the fence open, which may be never. */
  start(): Promise<void> {
    this.#loop ??= this.#run().catch((error: unknown) => {
      // Nothing in it throws but a broken promise of this class; to go on without renewals would be worse.
      if (!this.#ending.signal.aborted) this.#lose(messageOf(error));
    });
    return this.#leading;
  }

  /** Ends the candidacy or the leadership; the others wait until the Lease has expired. */
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
   * Ends the leadership and lets another replica take over at once, if `drain` tells that no write is under way any more. No write leaves
   * after this call. Resolves with whether the Lease was released.
   */
  async release(drain: () => Promise<boolean>): Promise<boolean> {
    const { fence, logger } = this.#options;
    const endsAtMs = this.#clock.now() + fence.leftMs;
    const wasLeading = this.isLeading;
    await this.stop();
    if (!wasLeading || !(await drain())) return false;
    try {
      await this.#letGo(this.#lease, endsAtMs).catch(async (error: unknown) => {
        // A renewal that was under way may have come first.
        if (!isApiError(error, 409)) throw error;
        const found = await this.#requests.read(endsAtMs - this.#clock.now());
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
   * Writes the notes after losing the leadership, for at most `timeoutMs`. The write is conditional on the resource version that was read, so the
   * current holder keeps the Lease, and reads the notes.
   */
  async saveNotes(timeoutMs: number): Promise<void> {
    const endsAtMs = this.#clock.now() + timeoutMs;
    const leftMs = () => endsAtMs - this.#clock.now();
    const { signal } = this.#ending;
    while (leftMs() > 0) {
      const wasEnding = signal.aborted;
      try {
        const found = await this.#requests.read(leftMs());
        if (found === undefined) return;
        this.#options.notes?.read(found.metadata.annotations?.[SUSPECTS], true);
        await this.#requests.write(found, found.spec ?? {}, leftMs());
        return;
      } catch (error) {
        // The loss of the leadership breaks requests off.
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
      // The pause is in the attempt, which knows whether there is something to wait for.
    }
    const guard = this.#state === "leader" ? this.#guard() : undefined;
    while (!signal.aborted && this.#state === "leader") await this.#renewSoon();
    await guard;
  }

  /** Watches the Lease while this replica leads: a leader that only finds out at its next renewal writes beside the next one until then. */
  async #guard(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        for await (const lease of this.#requests.changes(this.#lease?.metadata.resourceVersion, signal)) {
          if (this.#state !== "leader") return;
          if (lease === undefined) this.#renewNow();
          else if (!this.#isOwn(lease)) return this.#lose(this.#describeLoss(lease));
        }
      } catch {
        // The renewals log problems with the API server, and notice a change as well.
      }
      await this.#pause(this.#options.terms.retryPeriodMs);
    }
  }

  #isOwn(lease: Lease): boolean {
    const term = termOf(lease);
    return holderOf(lease) === this.#options.identity && (term === this.#term || term === this.#writtenTerm);
  }

  /** Takes note of a Lease that another client has changed; returns what it changed. */
  #describeLoss(lease: Lease): string {
    const holder = holderOf(lease);
    this.#keep(lease);
    if (holder === undefined) return `holderIdentity of ${this.#name} was removed by another client`;
    if (holder !== this.#options.identity) return `"${holder}" has taken ${this.#name}`;
    return `leaseTransitions of ${this.#name} was set to ${termOf(lease)} by another client`;
  }

  #write(read: Lease | undefined, spec: LeaseSpec, leftMs: number): Promise<Lease> {
    this.#sentAtMs = this.#clock.now();
    this.#writtenTerm = spec.leaseTransitions ?? undefined;
    return this.#requests.write(read, spec, leftMs);
  }

  /** Looks at the Lease, and takes it if it is free, which is what this returns; otherwise waits until it may be. */
  async #attempt(): Promise<boolean> {
    const { retryPeriodMs } = this.#options.terms;
    const beganAtMs = this.#clock.now();
    try {
      const found = await this.#requests.read();
      this.#see(found);
      if (this.#freeInMs === 0) {
        await this.#take(found);
        return true;
      }
      this.#problem = "";
      await this.#follow(found?.metadata.resourceVersion);
    } catch (error) {
      if (this.#ending.signal.aborted) return false;
      this.#tell(`${this.#name} could not be taken or watched: ${messageOf(error)}`, error);
      await this.#pause(retryPeriodMs);
    }
    const passedMs = this.#clock.now() - beganAtMs;
    if (passedMs < retryPeriodMs && this.#freeInMs > 0) await this.#pause(retryPeriodMs - passedMs);
    return false;
  }

  /** Watches the Lease until it is free as far as this replica knows, the watch ends, or the candidacy. */
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
      for await (const lease of this.#requests.changes(resourceVersion, enough.signal)) {
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
    // Its holder may not have noticed yet that it was deleted.
    if (lease === undefined) return;
    const [before, now] = [holderOf(this.#lease), holderOf(lease)];
    this.#keep(lease);
    if (now === undefined || now === before || now === this.#options.identity) return;
    this.#options.logger.info({ lease: this.#name, leader: now }, `stands by: "${now}" leads`);
    this.#options.onChange?.();
  }

  #keep(lease: Lease): void {
    if (JSON.stringify(lease.spec) !== JSON.stringify(this.#lease?.spec)) this.#seenAtMs = this.#clock.now();
    this.#term = Math.max(this.#term, termOf(lease));
    this.#lease = lease;
    this.#options.notes?.read(lease.metadata.annotations?.[SUSPECTS], this.#state === "leader");
  }

  /** The time until the Lease may be taken unless it changes, in milliseconds. */
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
    // Whoever was stopped meanwhile must not lead; the Lease expires.
    if (this.#ending.signal.aborted) return;
    this.#state = "leader";
    this.#problem = "";
    const onShut = (reason: string) => this.#lose(this.#problem === "" ? reason : `${reason}; ${this.#problem}`);
    fence.open(since, terms.renewDeadlineMs, onShut);
    if (!this.isLeading) return;
    const fields = { lease: this.#name, leader: this.#options.identity, term: this.#term };
    logger.info(fields, `leads by ${this.#name}`);
    this.#options.onChange?.();
    this.#resolveLeading();
  }

  async #renewSoon(): Promise<void> {
    const { fence, terms } = this.#options;
    // From when the last renewal was sent: slow responses must not add up to the renew deadline.
    const dueInMs = Math.max(0, this.#sentAtMs + terms.retryPeriodMs - this.#clock.now());
    await this.#pauseUntilAsked(Math.min(dueInMs, fence.leftMs));
    const { leftMs } = fence;
    // A fence that has run out says so itself; the timer may ring a moment before.
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
      // Somebody else has written it, or a renewal that got no answer has; or it was deleted.
      if (!isApiError(error, 409) && !isApiError(error, 404)) throw error;
      const found = await this.#requests.read(fence.leftMs);
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
    const error = new LeadershipError(`the leadership is lost: ${reason}`);
    logger.error({ lease: this.#name }, error.message);
    this.#options.onChange?.();
    this.#options.onLost(error);
  }

  #acquired(spec: LeaseSpec | undefined = this.#lease?.spec): LeaseSpec {
    const { identity, terms } = this.#options;
    return acquired(spec, { identity, durationMs: terms.leaseDurationMs, now: this.#now, seenTerm: this.#term });
  }

  /** After its end another replica may hold the Lease. */
  async #letGo(lease: Lease | undefined, endsAtMs: number): Promise<void> {
    const leftMs = endsAtMs - this.#clock.now();
    if (leftMs <= 0) throw new Error("its time is up");
    await this.#requests.write(lease, released(lease?.spec, this.#now), leftMs);
  }

  get #now(): Date {
    return new Date(this.#options.fence.now().wallMs);
  }

  async #pause(ms: number, jitter = JITTER): Promise<void> {
    const { random = Math.random } = this.#options;
    await sleep(ms * (1 + jitter * random()), this.#ending.signal, this.#clock).catch(() => {});
  }

  /** Waits without jitter, until `#renewNow` is called at the latest. */
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
