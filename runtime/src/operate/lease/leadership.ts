// The part of leader election that an operator speaks to: from its start to its stop.
import { Backoff, sleep } from "../../base/clock.js";
import { findError, isApiError } from "../../base/errors.js";
import { messageOf, type Logger } from "../../base/logger.js";
import { ApiClient } from "../../client/api-client.js";
import type { Connection } from "../../client/connect/connection.js";
import type { RequestCounter } from "../../client/requester.js";
import { Elector, type ElectorOptions } from "./elector.js";
import { checkLeasePermissions } from "./lease-permissions.js";
import { checkLeaderElection, createIdentity, leaseTermsOf, renewDeadlineOf } from "./lease-settings.js";
import type { LeaseNotes } from "./lease.js";
import type { LeaderElectionSettings, LeaseTerms } from "./lease-settings.js";
import { WriteFence } from "./write-fence.js";

/** Who leads, as this replica knows it. */
export interface LeadershipState {
  /** The name of the Lease. */
  readonly lease: string;
  readonly isLeading: boolean;
  /** What stands in the Lease for this replica. */
  readonly identity: string;
  /** The identity of the leader; absent if none is known, as when its Lease has expired. */
  readonly leader?: string | undefined;
  /** Why this replica cannot take the Lease while it knows no leader; absent if nothing is wrong. */
  readonly problem?: string | undefined;
}

/** Told when this or another replica begins to lead, and when this one leads no more (JOSDK LeaderCallbacks). */
export type LeadershipObserver = (state: LeadershipState) => void;

interface LeaderElectionOptions {
  /** Whether there is an election, and how. Default: an election in a cluster, none elsewhere. */
  readonly settings: boolean | LeaderElectionSettings | undefined;
  /** The name of the first controller, after which the Lease is named; an operator without one has nothing to agree on. */
  readonly controller: string | undefined;
  readonly logger: Logger;
  readonly observe?: LeadershipObserver | undefined;
  /** What the operator keeps in the Lease. */
  readonly notes?: LeaseNotes | undefined;
}

// A pause is up to twice as long: 30 s.
const MAX_CHECK_PAUSE_MS = 15_000;

/** The leader election of one operator, over all its starts. */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #settings: LeaderElectionSettings;
  #last: Leadership | undefined;
  /** The fence that every write of the operator asks; absent without an election. */
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
    return renewDeadlineOf(this.#settings);
  }

  /** Decides by the operator's own connection whether there is an election, unless the settings say so. */
  decide({ isInCluster = false }: Connection): void {
    const { settings = isInCluster, controller } = this.#options;
    if (settings !== false && controller !== undefined) this.fence ??= new WriteFence();
  }

  /** Returns the leadership of one start; undefined if there is no election. */
  createLeadership(
    connection: Connection,
    listeners: Pick<LeadershipOptions, "onLost" | "count">,
  ): Leadership | undefined {
    const { controller, logger, observe, notes } = this.#options;
    const { fence } = this;
    if (fence === undefined || controller === undefined) return undefined;
    const terms = leaseTermsOf(this.#settings, { controller, namespace: connection.namespace });
    const seenTerm = this.#last?.seenTerm;
    return (this.#last = new Leadership({ seenTerm, terms, connection, fence, logger, observe, notes, ...listeners }));
  }
}

interface LeadershipOptions extends Pick<
  ElectorOptions,
  "terms" | "fence" | "logger" | "notes" | "seenTerm" | "onLost"
> {
  readonly connection: Connection;
  readonly observe: LeadershipObserver | undefined;
  /** Counts the requests about the Lease. */
  readonly count: RequestCounter | undefined;
}

/** The leadership of one start of an operator. */
export class Leadership {
  readonly #identity = createIdentity();
  // Connections of its own: a renewal waits for no other request. An attempt that fails is made again in time.
  readonly #client: ApiClient;
  readonly #elector: Elector;
  readonly #terms: LeaseTerms;
  readonly #logger: Logger;

  constructor({ terms, connection, fence, logger, observe, notes, seenTerm, onLost, count }: LeadershipOptions) {
    const options = { maxAttempts: 1, logger, observe: count, observeStream: count };
    const client = (this.#client = new ApiClient(connection, options));
    this.#terms = terms;
    this.#logger = logger;
    this.#elector = new Elector({
      ...{ client, fence, terms, identity: this.#identity, notes, seenTerm, logger, onLost },
      onChange: () => observe?.(this.state),
    });
  }

  get state(): LeadershipState {
    const { isLeading, leader, problem } = this.#elector;
    const known = { lease: this.#terms.ref.name, isLeading, identity: this.#identity, leader };
    return problem === undefined ? known : { ...known, problem };
  }

  /** A number that grows with every new leader; absent unless this replica leads. */
  get term(): number | undefined {
    return this.#elector.term;
  }

  /** The highest term that this candidacy has seen. */
  get seenTerm(): number {
    return this.#elector.seenTerm;
  }

  /** Throws an error that names what the operator may not do with its Lease; keeps asking while there is no answer. */
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

  /** Becomes a candidate, if it is none yet; resolves when this replica leads. */
  stand(): Promise<void> {
    return this.#elector.start();
  }

  /** Writes what the operator keeps in the Lease, after the leadership was lost; never rejects. */
  saveNotes(timeoutMs: number): Promise<void> {
    return this.#elector.saveNotes(timeoutMs);
  }

  /** Ends it. `drain` waits for writes under way, and tells whether all of them have ended: only then another may lead at once. */
  async end(drain?: () => Promise<boolean>): Promise<void> {
    await (drain === undefined ? this.#elector.stop() : this.#elector.release(drain));
    await this.#client.close();
  }
}
