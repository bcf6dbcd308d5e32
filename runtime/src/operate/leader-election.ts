// Leader election as the operator uses it: one election over all its starts, and one leadership for each of them.
import { type LeadershipError, findError, isApiError } from "../base/errors.js";
import { type Logger, messageOf } from "../base/logger.js";
import { Backoff, sleep } from "../base/wait.js";
import { ApiClient } from "../client/api-client.js";
import type { Connection } from "../client/connection.js";
import type { RequestCounter } from "../client/transport.js";
import { checkLeasePermissions } from "./access-review.js";
import { Elector, WriteFence } from "./leader-elector.js";
import {
  type LeaderElectionSettings,
  type LeaseNotes,
  type LeaseTerms,
  checkLeaderElection,
  createIdentity,
  durationsOf,
  leaseTermsOf,
} from "./lease-lock.js";

/** The leader, as far as this replica knows. */
export interface LeadershipState {
  /** The name of the Lease. */
  readonly lease: string;
  readonly isLeading: boolean;
  /** The identity of this replica. */
  readonly identity: string;
  /** The identity of the leader; absent if none is known, as when its Lease has expired. */
  readonly leader?: string | undefined;
  /** Why this replica cannot take the Lease while it knows no leader; absent if nothing is wrong. */
  readonly problem?: string | undefined;
}

/** Called when this or another replica becomes the leader, and when this replica loses the leadership (JOSDK LeaderCallbacks). */
export type LeadershipObserver = (state: LeadershipState) => void;

interface LeaderElectionOptions {
  /** Whether there is an election, and how. Default: an election in a cluster, none elsewhere. */
  readonly settings: boolean | LeaderElectionSettings | undefined;
  /** The name of the first controller, after which the Lease is named; absent if the operator has no controllers, and so needs no election. */
  readonly controller: string | undefined;
  readonly logger: Logger;
  readonly observe?: LeadershipObserver | undefined;
  /** What the operator stores in the Lease. */
  readonly notes?: LeaseNotes | undefined;
}

// A pause is up to twice as long: 30 s.
const MAX_CHECK_PAUSE_MS = 15_000;

/** The leader election of one operator, over all its starts. */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #settings: LeaderElectionSettings;
  #last: Leadership | undefined;
  /** Checked by every write of the operator; absent without an election. */
  fence: WriteFence | undefined;

  constructor(options: LeaderElectionOptions) {
    const { settings } = options;
    this.#options = options;
    this.#settings = typeof settings === "object" ? settings : {};
    checkLeaderElection(this.#settings);
  }

  get onLoss(): "exit" | "standby" {
    return this.#settings.onLoss ?? "exit";
  }

  get renewDeadlineMs(): number {
    return durationsOf(this.#settings).renewDeadlineMs;
  }

  /** Enables the election in a cluster, unless the settings say otherwise. */
  decide({ isInCluster = false }: Connection): void {
    const { settings = isInCluster, controller } = this.#options;
    if (settings !== false && controller !== undefined) this.fence ??= new WriteFence();
  }

  /** Returns the leadership of one start; undefined if there is no election. */
  createLeadership(connection: Connection, listeners: LeadershipListeners): Leadership | undefined {
    const { controller } = this.#options;
    const { fence } = this;
    if (fence === undefined || controller === undefined) return undefined;
    const terms = leaseTermsOf(this.#settings, { controller, namespace: connection.namespace });
    const seenTerm = this.#last?.elector.seenTerm;
    return (this.#last = new Leadership(this.#options, { connection, fence, terms, seenTerm, ...listeners }));
  }
}

interface LeadershipListeners {
  /** Called once when the leadership is lost, with the fence shut. */
  onLost(error: LeadershipError): void;
  /** Counts the requests about the Lease. */
  readonly count: RequestCounter | undefined;
}

interface LeadershipOptions extends LeadershipListeners {
  readonly connection: Connection;
  readonly fence: WriteFence;
  readonly terms: LeaseTerms;
  /** The highest term that an earlier candidacy of this process saw. */
  readonly seenTerm: number | undefined;
}

/** The leadership of one start of an operator. */
export class Leadership {
  readonly #identity = createIdentity();
  // A client of its own: a renewal never waits for another request. The elector repeats a failed attempt in time.
  readonly #client: ApiClient;
  readonly elector: Elector;
  readonly #terms: LeaseTerms;
  readonly #logger: Logger;

  constructor(
    { logger, observe, notes }: LeaderElectionOptions,
    { connection, fence, terms, seenTerm, onLost, count }: LeadershipOptions,
  ) {
    const options = { maxAttempts: 1, logger, observe: count, observeStream: count };
    const client = (this.#client = new ApiClient(connection, options));
    this.#terms = terms;
    this.#logger = logger;
    this.elector = new Elector({
      ...{ client, fence, terms, identity: this.#identity, notes, seenTerm, logger, onLost },
      onChange: () => observe?.(this.state),
    });
  }

  get state(): LeadershipState {
    const { isLeading, leader, problem } = this.elector;
    const known = { lease: this.#terms.ref.name, isLeading, identity: this.#identity, leader };
    return problem === undefined ? known : { ...known, problem };
  }

  /** Throws an error that lists the missing permissions for the Lease; retries while the API server does not answer. */
  async checkPermissions(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ initialMs: this.#terms.retryPeriodMs, factor: 2, maxMs: MAX_CHECK_PAUSE_MS });
    for (;;) {
      try {
        return await checkLeasePermissions(this.#client, this.#terms.ref, signal);
      } catch (error) {
        if (!isApiError(error) && findError(error, "ConnectionError") === undefined) throw error;
        const retryAfterMs = Math.round(backoff.next());
        const what = `the permissions for the Lease could not be checked: ${messageOf(error)}; trying again`;
        this.#logger.warn({ retryAfterMs }, what);
        await sleep(retryAfterMs, signal);
      }
    }
  }

  /** Ends the leadership. `drain` waits for in-flight writes and resolves with whether all have ended: only then is the Lease released. */
  async end(drain?: () => Promise<boolean>): Promise<void> {
    await (drain === undefined ? this.elector.stop() : this.elector.release(drain));
    await this.#client.close();
  }
}
