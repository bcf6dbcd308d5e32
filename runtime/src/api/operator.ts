// The manager: starts, runs and stops the controllers of one process. A session lasts from one start to the following stop and has its own clients,
// informers, event recorder and controllers. Leader election, endpoints and the event loop monitor live as long as the operator.
import type { LoopObserver, Tracing } from "../base/activity.js";
import { type LogLevels, type Logger, createLeveledLogger, messageOf } from "../base/logger.js";
import { guardedObserver } from "../base/user-calls.js";
import { checkNumbers } from "../base/validation.js";
import { systemClock, untilAborted, withDeadline } from "../base/wait.js";
import { ApiClient, requesterOf } from "../client/api-client.js";
import { type Connection, type ConnectionOptions, createConnection } from "../client/connection.js";
import { findConnection } from "../client/load-connection.js";
import { type RequestObserver, combinedObserver } from "../client/transport.js";
import { EventLoopMonitor, type WatchdogSettings, checkWatchdog } from "../operate/event-loop-monitor.js";
import { EventRecorder } from "../operate/event-recorder.js";
import { type OperatorHealth, healthOf } from "../operate/health.js";
import { LeaderElection, type Leadership, type LeadershipObserver } from "../operate/leader-election.js";
import { type LeaderElectionSettings, instanceName } from "../operate/lease-lock.js";
import { ProofKeySecret, type ProofKeySettings } from "../operate/proof-key-secret.js";
import { loadTracing, reconcileChannel, startedChannel } from "../operate/tracing.js";
import type { ReconcileObserver } from "../queue/controller.js";
import { Suspects } from "../queue/work-queue.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import { lateWrites } from "../reconcile/late-writes.js";
import { InformerPool } from "../watch/shared-informers.js";
import type { OperatorContext, OperatorObserver } from "./controller-parts.js";
import {
  checkClusters,
  checkControllers,
  checkDefinitions,
  keptManagersOf,
  warningsOf,
} from "./controller-validation.js";
import { shareSelectors } from "./kubernetes-dependents.js";
import { type EndpointSettings, OperatorEndpoints } from "./operator-endpoints.js";
import { RunningController } from "./running-controller.js";

/** A set of controllers that can be started and stopped together. */
export interface Operator extends AsyncDisposable {
  /** The client of the operator, or undefined until a start has found a connection. */
  readonly client: ApiClient | undefined;
  /** Starts the controllers. Resolves when their caches are synced and they reconcile. An operator can be started again after a stop. */
  start(): Promise<ConnectedOperator>;
  /**
   * Waits for the reconciles in progress, stops the event sources, and closes all connections. Resolves with whether everything ended before the
   * timeout. If the operator was never started, only closes its client.
   */
  stop(): Promise<boolean>;
  /** Returns a controller by name. Throws if there is no such controller or the operator is not started. */
  controller(name: string): RegisteredController;
  /** Returns the health of the operator, its controllers and their event sources. */
  health(): OperatorHealth;
}

/** An operator that has a client: after a start, or from the beginning if `connection` was given. */
export interface ConnectedOperator extends Operator {
  readonly client: ApiClient;
}

/** A controller of a started operator (JOSDK's RegisteredController). */
export type RegisteredController = Readonly<
  Omit<RunningController, "start" | "stopReconciling" | "stopSources" | "whenIdle" | "failures" | "inProgress">
>;

/** Options of an operator. */
export interface OperatorOptions extends EndpointSettings {
  readonly controllers: readonly ControllerDefinition[];
  /** The API server to connect to. Default: the one that `loadConnection` finds */
  readonly connection?: Connection | ConnectionOptions;
  /**
   * Connections to other clusters, by the name that dependents set as `cluster`. Example: `clusters: { edge: await loadConnection({ context: "edge"
   * }) }`
   */
  readonly clusters?: { readonly [name: string]: Connection | ConnectionOptions };
  /** The kubeconfig file to load the connection from. */
  readonly kubeconfig?: string;
  readonly logger?: Logger;
  /** The log levels of `logger`, which the debug endpoint can read and change. Default: levels that filter the lines passed to `logger` */
  readonly logLevels?: LogLevels;
  /** Called after every reconcile. */
  readonly observer?: ReconcileObserver;
  /**
   * Called for each write that is part of a write loop, of a dependent, the primary or its status. Such writes are postponed with increasing backoff.
   */
  readonly onLoop?: LoopObserver;
  /** Called after each attempt of a request, except for watches. */
  readonly onRequest?: RequestObserver;
  /** Called when this or another replica becomes the leader, and when this replica loses leadership. */
  readonly onLeadership?: LeadershipObserver;
  /**
   * Whether to compare the CustomResourceDefinitions in the cluster with the schemas that the operator was compiled with. The start fails if they are
   * incompatible; the error lists the paths. Default: false
   */
  readonly checkCrds?: boolean;
  /** The timeout of requests to an API server, in milliseconds. Idempotent requests are retried after it. Default: 60,000; 0 disables it */
  readonly requestTimeoutMs?: number;
  /** The maximum number of concurrent requests to an API server, not counting watches. Default: 16 */
  readonly maxConnections?: number;
  /**
   * The maximum size of a response in bytes, such as a page of 500 objects of a list. Default: 256 MiB. Example: `maxResponseBytes: 512 * 2 ** 20`
   */
  readonly maxResponseBytes?: number;
  /** The maximum size of a watch event in bytes. Default: 32 MiB. Example: `maxEventBytes: 64 * 2 ** 20` */
  readonly maxEventBytes?: number;
  /** The start fails if it takes longer than this many milliseconds. Default: no limit; the operator keeps trying to reach the API server */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Leader election: only the replica that holds the Lease reconciles; standby replicas keep their caches synced. When leadership is lost, the
   * process exits with code 1 unless `onLoss` is set otherwise. Default: true in a cluster, false elsewhere
   */
  readonly leaderElection?: boolean | LeaderElectionSettings | undefined;
  /**
   * The Secret with the key that signs values which the operator stores where other clients can write, such as ids of external resources. Created
   * when a controller first needs it. Default: `gen-operator-proof-key` in the namespace of the operator. Example: `proofKey: { namespace:
   * "operators" }`
   */
  readonly proofKey?: ProofKeySettings | undefined;
  /**
   * A thread that reports which function blocks the main thread, for example in an endless loop. Default: none, because it needs up to 12 MB of
   * memory. Example: `watchdog: { timeoutMs: 20_000, onHang: "exit" }`
   */
  readonly watchdog?: WatchdogSettings | undefined;
  /**
   * How long a stop waits for reconciles and then for event sources (at least 1 s), in milliseconds. Default: 25,000, less than the kubelet's grace
   * period of 30 s
   */
  readonly stopTimeoutMs?: number;
}

const STOP_TIMEOUT_MS = 25_000;
// Nothing else is written at that point, so other replicas do not have to wait for it.
const SAVE_SUSPECTS_MS = 2_000;
// Event sources stop after the reconciles, which may have used up the timeout.
const MIN_SOURCES_STOP_MS = 1_000;
// Events are best effort and do not justify a longer wait.
const EVENTS_STOP_MS = 2_000;

/** Creates an operator. It does nothing until it is started. */
export function createOperator(
  options: OperatorOptions & Required<Pick<OperatorOptions, "connection">>,
): ConnectedOperator;
export function createOperator(options: OperatorOptions): Operator;
export function createOperator(options: OperatorOptions): Operator {
  return new RunnableOperator(options);
}

interface Clients {
  readonly client: ApiClient;
  /** By the name of the other cluster. */
  readonly clusters: ReadonlyMap<string, ApiClient>;
}

class RunnableOperator implements Operator {
  readonly #options: OperatorOptions;
  readonly #logger: Logger;
  #client: ApiClient | undefined;
  #session: OperatorSession | undefined;
  readonly #election: LeaderElection;
  readonly #endpoints: OperatorEndpoints;
  readonly #eventLoop: EventLoopMonitor;
  readonly #suspects: Suspects;
  #tracing: Tracing | undefined;
  /** Whether the operator is stopping, so that it does not start again after losing leadership. */
  #isEnding = false;
  #isExiting = false;
  /** API servers with an unverified certificate for which a warning has been logged. */
  readonly #unverified = new Set<string>();

  constructor(options: OperatorOptions) {
    this.#options = options;
    const { logger, levels } = createLeveledLogger(options.logger, { levels: options.logLevels });
    this.#logger = logger;
    const {
      leaderElection: settings,
      controllers,
      onLeadership,
      startTimeoutMs,
      stopTimeoutMs,
      watchdog = {},
    } = options;
    checkWatchdog(watchdog);
    checkNumbers("the operator", { startTimeoutMs: [startTimeoutMs, 0], stopTimeoutMs: [stopTimeoutMs, 0] });
    checkControllers(controllers);
    for (const each of controllers)
      for (const warning of warningsOf(each)) this.#logger.warn({ controller: each.name }, warning);
    checkClusters(controllers, Object.keys(options.clusters ?? {}));
    this.#suspects = new Suspects({ controllers: this.#names, clock: systemClock, logger: this.#logger });
    this.#election = new LeaderElection({
      // Uses the former name, so that a version with the old name and one with the new name never lead at once.
      ...{
        settings,
        controller: controllers[0]?.formerNames?.[0] ?? controllers[0]?.name,
        logger: this.#logger,
        notes: this.#suspects,
      },
      observe: onLeadership && guardedObserver(onLeadership, failedObserver("the leadership", this.#logger)),
    });
    this.#eventLoop = new EventLoopMonitor({
      ...{ controllers: this.#names, logger: this.#logger, renewDeadlineMs: this.#election.renewDeadlineMs },
      watchdog,
      onBroken: () => this.#exit(),
      inProgress: () => (this.#session?.controllers ?? []).flatMap((each) => each.inProgress()),
      onSuspect: (controller, primary) => this.#suspects.add(controller, primary),
    });
    this.#endpoints = new OperatorEndpoints(options, {
      eventLoop: this.#eventLoop,
      definitions: controllers,
      logger: this.#logger,
      health: () => this.health(),
      hasStarted: () => this.#runningSession?.isStarted === true,
      levels,
      suspects: () => this.#suspects.all,
      names: this.#names,
      connection: () => this.#client?.connection,
      controllers: () => this.#runningSession?.controllers ?? [],
      informers: () => this.#runningSession?.informers?.activity() ?? [],
    });
    if (options.connection !== undefined) this.#client = this.#connectMain(options.connection);
  }

  get client(): ApiClient | undefined {
    return this.#client;
  }

  async start(): Promise<ConnectedOperator> {
    this.#isEnding = false;
    this.#eventLoop.open();
    try {
      return await this.#start();
    } catch (error) {
      await this.#closeEndpoints();
      throw error;
    }
  }

  async stop(): Promise<boolean> {
    this.#isEnding = true;
    const isFinished = (await this.#session?.end()) ?? true;
    if (this.#session === undefined) await this.#client?.close();
    await this.#closeEndpoints();
    return isFinished;
  }

  async #start(): Promise<ConnectedOperator> {
    for (;;) {
      const previous = this.#session;
      if (previous !== undefined && previous.ended === undefined) throw new Error("operator is already started");
      const { stopTimeoutMs = STOP_TIMEOUT_MS } = this.#options;
      // Set before the first await, so that a concurrent start() or stop() sees this session.
      const session = new OperatorSession({ previous, client: this.#client, stopTimeoutMs, logger: this.#logger });
      this.#session = session;
      try {
        return await this.#startSession(session);
      } catch (error) {
        // If leadership was lost while a controller was starting, become a candidate again.
        if (!session.isAbandoned || this.#isEnding) throw error;
      }
    }
  }

  async #startSession(session: OperatorSession): Promise<ConnectedOperator> {
    const { startTimeoutMs = Infinity } = this.#options;
    const late = new AbortController();
    const cancelTimeout = systemClock.schedule(startTimeoutMs, () => late.abort(new Error("its time is up")));
    const signal = AbortSignal.any([session.stopping.signal, late.signal]);
    try {
      // A start may take long, and the kubelet probes the process in the meantime.
      await this.#endpoints.open();
      this.#tracing = await loadTracing();
      await this.#untilPreviousEnded(session, signal);
      const clients = await this.#openClients(session, signal);
      await this.#joinElection(session, clients.client, signal);
      await this.#endpoints.checkRights(signal);
      await this.#startControllers(session, clients, signal);
    } catch (error) {
      const isTooLate = late.signal.aborted;
      const reasons = new Set(session.controllers.flatMap(({ failures }) => failures));
      await session.end();
      if (!isTooLate) throw error;
      const why = reasons.size > 0 ? [...reasons].join("; ") : messageOf(error);
      throw new Error(`the operator could not start within ${startTimeoutMs} ms: ${why}`);
    } finally {
      cancelTimeout();
    }
    this.#logger.info({ controllers: this.#names, server: this.client?.connection.server }, "started");
    session.isStarted = true;
    startedChannel.publish({ controllers: this.#names });
    return this as ConnectedOperator;
  }

  /** Waits for the previous session to end. Otherwise, two sets of controllers could reconcile the same primary at once. */
  async #untilPreviousEnded(session: OperatorSession, signal: AbortSignal): Promise<void> {
    const { before, idle, stopping } = session;
    await before;
    if (session.reconcilesBefore > 0) this.#logger.warn({}, describeUnfinished(session));
    await untilAborted(idle, signal).catch((error: unknown) => {
      throw stopping.signal.aborted ? error : new Error(describeUnfinished(session), { cause: error });
    });
  }

  async #openClients(session: OperatorSession, signal: AbortSignal): Promise<Clients> {
    const client = await this.#openClient(signal);
    session.clients = [client];
    // The operator may have been stopped in the meantime.
    signal.throwIfAborted();
    const others = Object.entries(this.#options.clusters ?? {});
    const clusters = new Map(others.map(([name, given]) => [name, this.#connect(given)]));
    session.clients = [client, ...clusters.values()];
    return { client, clusters };
  }

  async #joinElection(session: OperatorSession, { connection }: ApiClient, signal: AbortSignal): Promise<void> {
    const onLost = (error: Error) => this.#onLost(session, error);
    const count = this.#endpoints.requestCounterOf(connection);
    session.leadership = this.#election.createLeadership(connection, { onLost, count });
    await session.leadership?.checkPermissions(signal);
  }

  /** Resolves when the controllers reconcile, or wait only for leadership. */
  async #startControllers(session: OperatorSession, clients: Clients, signal: AbortSignal): Promise<void> {
    const { controllers, checkCrds = false } = this.#options;
    const { leadership } = session;
    if (checkCrds) {
      const checked = checkDefinitions(controllers, { ...clients, logger: this.#logger, signal });
      await untilAborted(checked, signal);
    }
    const context = this.#createContext(session, clients);
    const standby = leadership && {
      // A controller whose CRD is missing does not keep the other controllers from leading.
      untilLeading: () => leadership.elector.start(),
      onFailure: (error: Error) => this.#onLost(session, error),
    };
    session.controllers = controllers.map((definition) => new RunningController(definition, context));
    // Each controller starts to reconcile when its own caches are synced, even if the CRD of another one is missing.
    await untilAborted(Promise.all(session.controllers.map((each) => each.start(standby))), signal);
  }

  #createContext(session: OperatorSession, { client, clusters }: Clients): OperatorContext {
    const { controllers, proofKey } = this.#options;
    const { leadership } = session;
    const logger = this.#logger;
    const fieldManagers = keptManagersOf(controllers);
    const informers = new InformerPool({ client, clusters: clusters.values(), fieldManagers, logger });
    session.informers = informers;
    const events = (session.events = new EventRecorder({ client, logger, instance: instanceName() }));
    return {
      ...{ client, clusters, fieldManagers, logger, informers, events },
      ...{ tracing: this.#tracing, suspects: this.#suspects, observers: this.#createObservers() },
      proofKey: new ProofKeySecret(client, proofKey),
      selectorOf: shareSelectors(controllers),
      fencingToken: leadership && (() => leadership.elector.term),
    };
  }

  #createObservers(): readonly OperatorObserver[] {
    const { observer, onLoop } = this.#options;
    const { metrics } = this.#endpoints;
    return [
      ...(metrics === undefined ? [] : [metrics]),
      {
        ...(observer && { onReconcile: guardedObserver(observer, failedObserver("reconciles", this.#logger)) }),
        ...(onLoop && { onLoop: guardedObserver(onLoop, failedObserver("loops", this.#logger)) }),
      },
      ...(reconcileChannel.hasSubscribers ? [CHANNEL_OBSERVER] : []),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  controller(name: string): RegisteredController {
    const controllers = this.#runningSession?.controllers ?? [];
    const found = controllers.find(({ definition }) => definition.name === name);
    if (found !== undefined) return found;
    throw new Error(
      this.#names.includes(name)
        ? `controller "${name}" is not available: the operator is not started`
        : `controller "${name}" not found; the controllers are ${this.#names.join(", ")}`,
    );
  }

  health(): OperatorHealth {
    const session = this.#runningSession;
    const health = healthOf(session?.controllers, this.#options.controllers.length);
    return session?.leadership === undefined ? health : { ...health, leadership: session.leadership.state };
  }

  get #names(): readonly string[] {
    return this.#options.controllers.map(({ name }) => name);
  }

  get #runningSession(): OperatorSession | undefined {
    return this.#session?.ended === undefined ? this.#session : undefined;
  }

  /** Closes the endpoints, unless the operator has been restarted in the meantime. */
  async #closeEndpoints(): Promise<void> {
    if (this.#session !== undefined && this.#session.ended === undefined) return;
    this.#eventLoop.close();
    await this.#endpoints.close();
  }

  /** Called when leadership is lost: another replica may write from now on. */
  #onLost(session: OperatorSession, error: Error): void {
    session.abandon(error);
    if (this.#election.onLoss === "exit") this.#exit();
    else if (session.isStarted) void Promise.resolve(this.#saveSuspects()).then(() => this.#standAgain(session));
  }

  #exit(): void {
    if (this.#isExiting) return;
    this.#isExiting = true;
    const saved = this.#saveSuspects();
    if (saved === undefined) process.exit(1);
    void saved.finally(() => process.exit(1));
  }

  /**
   * Stores the primaries that blocked the event loop in the Lease, for the next leader. Returns undefined if there are none, or there is no Lease.
   */
  #saveSuspects(): Promise<void> | undefined {
    this.#eventLoop.flush();
    return this.#suspects.all.length === 0 ? undefined : this.#session?.leadership?.elector.saveNotes(SAVE_SUSPECTS_MS);
  }

  async #standAgain(session: OperatorSession): Promise<void> {
    await session.end();
    if (this.#isEnding || this.#session !== session) return;
    await this.#start().catch((error: unknown) => {
      if (this.#isEnding) return;
      // No caller awaits this start, so its error is handled here.
      this.#logger.error({}, messageOf(error));
      process.exit(1);
    });
  }

  async #openClient(signal: AbortSignal): Promise<ApiClient> {
    const { connection, kubeconfig } = this.#options;
    if (this.#client === undefined || requesterOf(this.#client).transport.closed.aborted)
      this.#client = this.#connectMain(
        connection ?? (await findConnection(kubeconfig, { logger: this.#logger, signal })),
      );
    return this.#client;
  }

  #connectMain(given: Connection | ConnectionOptions): ApiClient {
    const connection = completed(given);
    this.#election.decide(connection);
    return this.#connect(connection);
  }

  #warnOfTls({ server, origin }: Connection): void {
    if (this.#unverified.has(server)) return;
    this.#unverified.add(server);
    const isKubeconfig = origin.startsWith("kubeconfig");
    const [field, instead] = isKubeconfig
      ? ["insecure-skip-tls-verify", "certificate-authority"]
      : ["skipTlsVerify", "ca"];
    const what = `the certificate of the API server at ${server} is not verified: ${field} is set in ${origin}`;
    this.#logger.warn({ server }, `${what}; set ${instead} instead, as anyone on the network can read the token`);
  }

  #connect(given: Connection | ConnectionOptions): ApiClient {
    const { onRequest, requestTimeoutMs, maxConnections, maxResponseBytes, maxEventBytes } = this.#options;
    const connection = completed(given);
    const count = this.#endpoints.requestCounterOf(connection);
    const ofUser = onRequest && guardedObserver(onRequest, failedObserver("requests", this.#logger));
    // Tracing is loaded during the start, the client for a given connection is created before.
    const observe = combinedObserver([(request) => this.#tracing?.request(request), count, ofUser]);
    const { fence } = this.#election;
    if (connection.skipTlsVerify === true) this.#warnOfTls(connection);
    return new ApiClient(connection, {
      ...{ observe, observeStream: count, logger: this.#logger },
      ...{ requestTimeoutMs, maxConnections, maxResponseBytes, maxEventBytes },
      fence: fence && ((request) => fence.check(request)),
    });
  }
}

function describeUnfinished({ reconcilesBefore: count }: OperatorSession): string {
  return `the last run still has ${count} ${count === 1 ? "reconcile" : "reconciles"} in progress; delaying the start until they return`;
}

function completed(connection: Connection | ConnectionOptions): Connection {
  return "credentials" in connection ? connection : createConnection(connection);
}

interface SessionOptions {
  /** The previous session, which may not have ended yet. */
  readonly previous: OperatorSession | undefined;
  /** The client of the operator, if it already has one. */
  readonly client: ApiClient | undefined;
  readonly stopTimeoutMs: number;
  readonly logger: Logger;
}

/** The state of an operator from one start to the following stop. */
class OperatorSession {
  /** Aborted when the session has to end. */
  readonly stopping = new AbortController();
  /** Resolves when the previous session has ended; absent if there is none. */
  readonly before: Promise<boolean> | undefined;
  /** Whether all caches have been synced once. */
  isStarted = false;
  /** Whether leadership was lost. */
  isAbandoned = false;
  /** Closed when the session ends. */
  clients: readonly ApiClient[];
  controllers: readonly RunningController[] = [];
  leadership: Leadership | undefined;
  informers: InformerPool | undefined;
  events: EventRecorder | undefined;
  /** Resolves when no reconcile of this or a previous session is in progress, possibly long after the session has ended. */
  idle: Promise<unknown>;
  /** Resolves with whether everything ended before the timeout. Absent until end() is called. */
  ended: Promise<boolean> | undefined;
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    const { previous, client } = options;
    this.#options = options;
    this.clients = client === undefined ? [] : [client];
    this.before = previous?.ended;
    this.idle = Promise.resolve(this.before).then(() => previous?.idle);
  }

  /** Returns the number of reconciles of previous sessions that are still in progress. */
  get reconcilesBefore(): number {
    const { previous } = this.#options;
    if (previous === undefined) return 0;
    return previous.controllers.reduce((sum, each) => sum + each.counts().running, previous.reconcilesBefore);
  }

  /** Waits for the reconciles in progress, releases the Lease, stops the event sources and closes all connections. Runs only once. */
  end(): Promise<boolean> {
    return (this.ended ??= this.#end());
  }

  /** Aborts all writes after a loss of leadership: another replica may write from now on. */
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
    // As soon as the Lease is released, another replica may write. So release it only if no write is in flight and no aborted write may still be
    // executed by the API server. A Lease that is not released expires later than such writes.
    const isHandedOver = isFinished && !controllers.some(({ definition }) => lateWrites.hasAny(definition));
    await this.leadership?.end(isHandedOver ? () => this.#drainWrites(leftMs()) : undefined);
    const stopped = await Promise.all(controllers.map((controller) => controller.stopSources(leftMs())));
    await Promise.all(this.clients.map((client) => client.close()));
    if (!isFinished) logger.warn({ deadlineMs: stopTimeoutMs }, "stopped with reconciles still in progress");
    return isFinished && stopped.every(Boolean) && wasFinished;
  }

  /** Waits for in-flight writes. Resolves with whether all of them ended before the timeout. */
  async #drainWrites(timeoutMs: number): Promise<boolean> {
    const ended = Promise.all(this.clients.map((client) => requesterOf(client).transport.whenWritesEnded()));
    return withDeadline(() => ended, { timeoutMs, clock: systemClock }).then(
      () => true,
      () => false,
    );
  }
}

/** Returns the function that logs the failure of an observer. */
function failedObserver(what: string, logger: Logger): (error: unknown) => void {
  return (error) => logger.error({}, `the observer of ${what} failed: ${messageOf(error)}`);
}

const CHANNEL_OBSERVER: OperatorObserver = { onReconcile: (event) => reconcileChannel.publish(event) };
