// Replicas of an operator that share one Lease, in time that a test moves: processes that pause, networks that lose and delay, dates that jump.
import type { Clock } from "#runtime/base/wait.js";
import { ApiError, ConnectionError } from "#runtime/base/errors.js";
import type { Lease } from "#runtime/operate/lease-lock.js";
import { Elector, type ElectorOptions, type Moment, WriteFence } from "#runtime/operate/leader-elector.js";
import { VirtualClock } from "../../../../support/runtime/virtual-clock.js";

export const TERMS = {
  ref: { name: "shop-leader", namespace: "home" },
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};

const silent = () => {};
const logger = { debug: silent, info: silent, warn: silent, error: silent };

/** Lets all promises go on that wait for nothing but each other. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

type LeaseClient = ElectorOptions["client"];
type Watcher = (type: "ADDED" | "MODIFIED" | "DELETED", lease: Lease) => void;

/** The API server: one Lease with optimistic concurrency. */
export class LeaseServer {
  lease: Lease | undefined;
  /** Every holder that was stored, in order. */
  readonly holders: string[] = [];
  readonly watchers = new Set<Watcher>();
  /** Ends each watch, as the API server does after some minutes. */
  readonly watchEnds: (() => void)[] = [];
  #version = 0;

  write(given: Pick<Lease, "metadata" | "spec">, isNew: boolean): Lease {
    const { resourceVersion } = given.metadata;
    if ((given.spec?.leaseTransitions ?? 0) >= 2 ** 31) throw new ApiError(422, { reason: "Invalid" });
    if (isNew && this.lease !== undefined) throw new ApiError(409, { reason: "AlreadyExists" });
    if (!isNew && this.lease === undefined) throw new ApiError(404, { reason: "NotFound" });
    if (!isNew && resourceVersion !== this.lease?.metadata.resourceVersion)
      throw new ApiError(409, { reason: "Conflict" });
    const metadata = { ...given.metadata, resourceVersion: String(++this.#version) };
    this.lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", ...given, metadata };
    this.holders.push(given.spec?.holderIdentity ?? "");
    for (const watcher of this.watchers) watcher(isNew ? "ADDED" : "MODIFIED", this.lease);
    return this.lease;
  }

  remove(): void {
    const { lease } = this;
    this.lease = undefined;
    if (lease !== undefined) for (const watcher of this.watchers) watcher("DELETED", lease);
  }
}

/** One process with its clocks, its network and its candidacies. */
export class Replica {
  readonly name: string;
  readonly server: LeaseServer;
  readonly fence: WriteFence;
  elector: Elector;
  /** What happens to requests and answers. */
  network: "works" | "loses requests" | "loses answers" | "refuses" | "forbids writes" = "works";
  latencyMs = 5;
  /** By how much its date is wrong. */
  wallOffsetMs = 0;
  readonly lost: string[] = [];
  isPaused = false;
  readonly #waiting: (() => void)[] = [];
  /** How long its monotonic clock has stood still. */
  #standstillMs = 0;
  #pausedAtMs = 0;
  #terms = 0;
  readonly #time: VirtualClock;

  constructor(name: string, server: LeaseServer, time: VirtualClock) {
    this.name = name;
    this.server = server;
    this.#time = time;
    this.fence = new WriteFence(() => this.now);
    this.elector = this.#stand();
  }

  /** What its clocks show. */
  get now(): Moment {
    const now = this.#time.now();
    return { monotonicMs: now - this.#standstillMs, wallMs: now + this.wallOffsetMs };
  }

  /** Stops all that the process does (SIGSTOP). */
  pause(): void {
    if (!this.isPaused) this.#pausedAtMs = this.#time.now();
    this.isPaused = true;
  }

  /** Goes on; a machine that was suspended has a monotonic clock that stood still. */
  resume({ wasSuspended = false } = {}): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    if (wasSuspended) this.#standstillMs += this.#time.now() - this.#pausedAtMs;
    for (const go of this.#waiting.splice(0)) go();
  }

  /** Becomes a candidate again after a loss. */
  standAgain(): void {
    this.elector = this.#stand(this.elector.seenTerm);
  }

  get mayWrite(): boolean {
    return !this.isPaused && this.fence.leftMs > 0;
  }

  #stand(seenTerm?: number): Elector {
    const elector = new Elector({
      ...{ client: this.#client(), fence: this.fence, terms: TERMS, logger, clock: this.#clock },
      identity: `${this.name}-${++this.#terms}`,
      seenTerm,
      random: () => 0.5,
      onLost: ({ message }) => void this.lost.push(message),
    });
    void elector.start();
    return elector;
  }

  #whenAwake(go: () => void): void {
    if (this.isPaused) this.#waiting.push(go);
    else go();
  }

  readonly #clock: Clock = {
    now: () => this.now.monotonicMs,
    schedule: (delayMs, callback) => {
      let isCancelled = false;
      const ring = () => this.#whenAwake(() => (isCancelled ? undefined : callback()));
      const cancel = this.#time.schedule(delayMs, ring);
      return () => {
        isCancelled = true;
        cancel();
      };
    },
  };

  #after<Answer>(answer: () => Answer): Promise<Answer> {
    const { network, latencyMs } = this;
    return new Promise((resolve, reject) => {
      if (network === "loses requests") return;
      this.#time.schedule(latencyMs, () => {
        let settle: () => void;
        try {
          if (network === "refuses") throw new ConnectionError("connection refused");
          const answered = answer();
          settle = () => resolve(answered);
        } catch (error) {
          settle = () => reject(error as Error);
        }
        if (network !== "loses answers") this.#time.schedule(latencyMs, () => this.#whenAwake(settle));
      });
    });
  }

  #client(): LeaseClient {
    const { server } = this;
    const write = (lease: Pick<Lease, "metadata" | "spec">, isNew: boolean) =>
      this.#after(() => {
        if (this.network === "forbids writes") throw new ApiError(403, { message: "leases is forbidden" });
        return server.write(lease, isNew);
      });
    const client = {
      get: () => this.#after(() => server.lease),
      create: (_: unknown, lease: Pick<Lease, "metadata" | "spec">) => write(lease, true),
      update: (_: unknown, lease: Pick<Lease, "metadata" | "spec">) => write(lease, false),
      watch: (_: unknown, { signal }: { signal: AbortSignal }) => this.#watch(signal),
    };
    return client as unknown as LeaseClient;
  }

  async *#watch(signal: AbortSignal) {
    const events: { type: string; object: Lease }[] = [];
    let wake = silent;
    let isOver = false;
    this.server.watchEnds.push(() => {
      isOver = true;
      wake();
    });
    const watcher: Watcher = (type, object) => {
      if (this.network !== "works" && this.network !== "forbids writes") return;
      this.#time.schedule(this.latencyMs, () =>
        this.#whenAwake(() => {
          events.push({ type, object });
          wake();
        }),
      );
    };
    this.server.watchers.add(watcher);
    signal.addEventListener("abort", () => wake());
    try {
      while (!signal.aborted && !isOver) {
        yield* events.splice(0);
        if (!signal.aborted && !isOver) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.server.watchers.delete(watcher);
    }
  }
}

/** Moves time in small steps, and lets everybody act in each. */
export async function passTime(
  time: VirtualClock,
  ms: number,
  onStep: () => void = silent,
  stepMs = 100,
): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    time.advance(stepMs);
    await settled();
    onStep();
  }
}
