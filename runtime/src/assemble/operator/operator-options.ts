import type { Logger } from "../../base/logger.js";
import type { Connection, ConnectionOptions } from "../../client/connect/connection.js";
import type { RequestObserver } from "../../client/requester.js";
import type { LeadershipObserver } from "../../operate/lease/leadership.js";
import type { LeaderElectionSettings } from "../../operate/lease/lease-settings.js";
import type { LogLevels } from "../../operate/settings/log-levels.js";
import type { ProofKeySettings } from "../../operate/proof-key-secret.js";
import type { WatchdogSettings } from "../../operate/watchdog.js";
import type { LoopObserver } from "../../operate/loop-reporter.js";
import type { ControllerDefinition } from "../../reconcile/controller-definition.js";
import type { ReconcileObserver } from "../../schedule/reconcile-scope.js";
import type { EndpointSettings } from "./endpoints.js";

/** What an operator consists of. */
export interface OperatorOptions extends EndpointSettings {
  readonly controllers: readonly ControllerDefinition[];
  /** The API server. Default: the one that `loadConnection` finds */
  readonly connection?: Connection | ConnectionOptions;
  /** Other clusters that dependents live in, by the names that these state; the operator's own connection has none. */
  readonly clusters?: { readonly [name: string]: Connection | ConnectionOptions };
  /** A kubeconfig file to take the connection from. */
  readonly kubeconfig?: string;
  readonly logger?: Logger;
  /** The levels that `logger` obeys, for the debug endpoint to show and change. Default: that endpoint gives the logger levels of its own. */
  readonly logLevels?: LogLevels;
  /** Told about every reconcile. */
  readonly observer?: ReconcileObserver;
  /** Told about every write of a loop, of a dependent, the primary or its status; such an object is written less and less often. */
  readonly onLoop?: LoopObserver;
  /** Told about every request, but for watches. */
  readonly onRequest?: RequestObserver;
  /** Told when this or another replica begins to lead, and when this one leads no more. */
  readonly onLeadership?: LeadershipObserver;
  /**
   * Compares the CustomResourceDefinitions of the cluster with what the operator was compiled for, and refuses to start if they lack something of it;
   * the error names what by its path. Default: false
   */
  readonly checkCrds?: boolean;
  /** How long an API server may take for an answer; what may be carried out twice is then sent again. Default: 1 minute; 0 for any time */
  readonly requestTimeoutMs?: number;
  /** How many requests to an API server are under way at once, besides watches. Default: 16 */
  readonly maxConnections?: number;
  /**
   * How long the body of an answer may be, such as a page of a list of 500 objects. Default: 256 MiB. Example: `maxResponseBytes: 512 * 2 ** 20`
   */
  readonly maxResponseBytes?: number;
  /** How long one event of a watch may be. Default: 32 MiB. Example: `maxEventBytes: 64 * 2 ** 20` */
  readonly maxEventBytes?: number;
  /** Gives up the start after this time; without it the operator keeps trying to reach its API server. */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Whether replicas agree by a Lease on the one that writes, and how; the others keep their caches and reconcile nothing. The process ends
   * with 1 when the leadership is lost, unless `onLoss` says otherwise. Default: true in a cluster, false elsewhere.
   */
  readonly leaderElection?: boolean | LeaderElectionSettings | undefined;
  /**
   * The Secret with the key by which the operator recognises what it stored itself, such as the ids of external resources; it is created when the
   * first controller needs it. Default: `gen-operator-proof-key` in the namespace of the operator. Example:
   * `proofKey: { namespace: "operators" }`
   */
  readonly proofKey?: ProofKeySettings | undefined;
  /**
   * A thread that names what hangs when the main thread does not return, as in an endless loop. Default: none, as it takes 8 to 13 MB. Example:
   * `watchdog: { timeoutMs: 20_000, onHang: "exit" }`
   */
  readonly watchdog?: WatchdogSettings | undefined;
  /** How long reconciles, then event sources (at least 1 s), may take to finish at the stop. Default: 25 s, less than the kubelet's 30 s */
  readonly stopTimeoutMs?: number;
}
