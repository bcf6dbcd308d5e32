// Leader election of an operator: one LeaderElection for all its starts, and one Leadership for each start.
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

/** The leader, as known to this replica. */
export interface LeadershipState {
  /** The name of the Lease. */
  readonly lease: string;
  readonly isLeading: boolean;
  /** The identity of this replica. */
  readonly identity: string;
  /** The identity of the leader; absent if unknown, for example because its Lease has expired. */
  readonly leader?: string | undefined;
  /** Why this replica cannot acquire the Lease while no leader is known; absent if there is no problem. */
  readonly problem?: string | undefined;
}

/** Called when this or another replica becomes the leader, and when this replica loses leadership (JOSDK's LeaderCallbacks). */
export type LeadershipObserver = (state: LeadershipState) => void;

interface LeaderElectionOptions {
  /** Whether and how to elect a leader. Default: enabled in a cluster, disabled elsewhere */
  readonly settings: boolean | LeaderElectionSettings | undefined;
  /**
   * The name of the first controller, from which the name of the Lease is derived; absent if the operator has no controllers and needs no election.
   */
  readonly controller: string | undefined;
  readonly logger: Logger;
  readonly observe?: LeadershipObserver | undefined;
  /** State that the operator stores in the Lease. */
  readonly notes?: LeaseNotes | undefined;
}

// Jitter may double a pause, to 30 s.
const MAX_CHECK_PAUSE_MS = 15_000;

/** The leader election of an operator, across its starts. */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #settings: LeaderElectionSettings;
  #last: Leadership | undefined;
  /** Checked before every write of the operator; undefined without leader election. */
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

  /** Enables the election if the operator runs in a cluster, unless the settings enable or disable it. */
  decide({ isInCluster = false }: Connection): void {
    const { settings = isInCluster, controller } = this.#options;
    if (settings !== false && controller !== undefined) this.fence ??= new WriteFence();
  }

  /** Creates the leadership for one start; undefined without leader election. */
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
  /** Called once when leadership is lost. The fence is shut by then. */
  onLost(error: LeadershipError): void;
  /** Counts the requests for the Lease. */
  readonly count: RequestCounter | undefined;
}

interface LeadershipOptions extends LeadershipListeners {
  readonly connection: Connection;
  readonly fence: WriteFence;
  readonly terms: LeaseTerms;
  /** The highest term that an earlier candidacy of this process has seen. */
  readonly seenTerm: number | undefined;
}

/** The leadership of an operator for one of its starts. */
export class Leadership {
  readonly #identity = createIdentity();
  // A separate client, so that a renewal never waits for other requests. It does not retry: the elector does.
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

  /** Throws an error that lists the missing permissions for the Lease. Retries while the API server is unreachable. */
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

  /**
   * Ends the leadership. `drain` waits for in-flight writes and resolves with whether all have ended; the Lease is released only then, and otherwise
   * expires.
   */
  async end(drain?: () => Promise<boolean>): Promise<void> {
    await (drain === undefined ? this.elector.stop() : this.elector.release(drain));
    await this.#client.close();
  }
}
