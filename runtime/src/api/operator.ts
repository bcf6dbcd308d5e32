// The manager: what starts, runs and stops the controllers of one process. A session lasts from one start to the stop after it, and has its own
// clients, informers, events and controllers; leader election, endpoints and the event loop monitor last as long as the operator.
import type { LoopEvent, LoopObserver, RequestObservation, Tracing } from "../base/activity.js";
import { type LogLevels, type Logger, createLeveledLogger, messageOf } from "../base/logger.js";
import { callUnawaited } from "../base/user-calls.js";
import { checkNumbers } from "../base/validation.js";
import { systemClock, untilAborted, withDeadline } from "../base/wait.js";
import { ApiClient, requesterOf } from "../client/api-client.js";
import { type Connection, type ConnectionOptions, createConnection } from "../client/connection.js";
import { findConnection } from "../client/load-connection.js";
import type { RequestObserver } from "../client/transport.js";
import type { ExternalWriteEvent } from "../dependents/external-reconciler.js";
import { EventLoopMonitor, type WatchdogSettings, checkWatchdog } from "../operate/event-loop-monitor.js";
import { EventRecorder } from "../operate/event-recorder.js";
import { type OperatorHealth, healthOf } from "../operate/health.js";
import { LeaderElection, type Leadership, type LeadershipObserver } from "../operate/leader-election.js";
import { type LeaderElectionSettings, instanceName } from "../operate/lease-lock.js";
import { ProofKeySecret, type ProofKeySettings } from "../operate/proof-key-secret.js";
import { loadTracing, reconcileChannel, startedChannel } from "../operate/tracing.js";
import type { ReconcileEvent, ReconcileObserver } from "../queue/controller.js";
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

/** A running or stopped set of controllers. */
export interface Operator extends AsyncDisposable {
  /** The client that the operator uses; `undefined` until a start has found a connection. */
  readonly client: ApiClient | undefined;
  /** Starts the controllers; resolves when their caches are synced and they reconcile. An operator can be started again after a stop. */
  start(): Promise<ConnectedOperator>;
  /**
   * Waits for the reconciles in progress, stops the event sources and closes all connections; resolves with whether all finished in time. An operator
   * that was not started closes its client.
   */
  stop(): Promise<boolean>;
  /** Returns a controller by name; throws if there is none, or if the operator is not started. */
  controller(name: string): RegisteredController;
  /** The health of the operator, its controllers and their event sources. */
  health(): OperatorHealth;
}

/** An operator with a client: after its start, or at once if `connection` was given. */
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
  /** The API server. Default: the one that `loadConnection` finds */
  readonly connection?: Connection | ConnectionOptions;
  /**
   * Connections to other clusters, by the names that dependents use as `cluster`. Example:
   * `clusters: { edge: await loadConnection({ context: "edge" }) }`
   */
  readonly clusters?: { readonly [name: string]: Connection | ConnectionOptions };
  /** A kubeconfig file to take the connection from. */
  readonly kubeconfig?: string;
  readonly logger?: Logger;
  /** The levels of `logger`, which the debug endpoint shows and changes. Default: levels that filter the lines of `logger`. */
  readonly logLevels?: LogLevels;
  /** Called after every reconcile. */
  readonly observer?: ReconcileObserver;
  /** Called for every write of a write loop, whether of a dependent, the primary or its status. Such writes are postponed more and more. */
  readonly onLoop?: LoopObserver;
  /** Called after every request except watches. */
  readonly onRequest?: RequestObserver;
  /** Called when this or another replica becomes the leader, and when this replica loses the leadership. */
  readonly onLeadership?: LeadershipObserver;
  /**
   * Compares the CustomResourceDefinitions of the cluster with the schemas that the operator was compiled with. The start fails if one does not fit;
   * the error lists the paths. Default: false
   */
  readonly checkCrds?: boolean;
  /** The timeout of a request to an API server; idempotent requests are then retried. Default: 1 minute; 0 for no timeout */
  readonly requestTimeoutMs?: number;
  /** The maximum number of concurrent requests to an API server, besides watches. Default: 16 */
  readonly maxConnections?: number;
  /**
   * The maximum size of a response, such as a page of a list of 500 objects. Default: 256 MiB. Example: `maxResponseBytes: 512 * 2 ** 20`
   */
  readonly maxResponseBytes?: number;
  /** The maximum size of a watch event. Default: 32 MiB. Example: `maxEventBytes: 64 * 2 ** 20` */
  readonly maxEventBytes?: number;
  /** The start fails after this time. Default: the operator keeps trying to reach its API server. */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Leader election: only the replica that holds the Lease reconciles; the others keep their caches synced. When the leadership is lost, the process
   * exits with 1, unless `onLoss` says otherwise. Default: true in a cluster, false elsewhere.
   */
  readonly leaderElection?: boolean | LeaderElectionSettings | undefined;
  /**
   * The Secret with the key that signs values which the operator stores where other clients can write, such as the ids of external resources. It is
   * created when the first controller needs it. Default: `gen-operator-proof-key` in the namespace of the operator. Example:
   * `proofKey: { namespace: "operators" }`
   */
  readonly proofKey?: ProofKeySettings | undefined;
  /**
   * A thread that reports the function in which the main thread hangs, as in an endless loop. Default: none, as it takes up to 12 MB. Example:
   * `watchdog: { timeoutMs: 20_000, onHang: "exit" }`
   */
  readonly watchdog?: WatchdogSettings | undefined;
  /** The time for reconciles, then event sources (at least 1 s), to finish at the stop. Default: 25 s, less than the kubelet's 30 s */
  readonly stopTimeoutMs?: number;
}

const STOP_TIMEOUT_MS = 25_000;
// Nothing else is written by then, so other replicas need not wait.
const SAVE_SUSPECTS_MS = 2_000;
// Event sources are stopped after the reconciles, which may have used up the time.
const MIN_SOURCES_STOP_MS = 1_000;
// Events are not worth a long wait.
const EVENTS_STOP_MS = 2_000;

/** Creates an operator, which does nothing until it is started. */
export function createOperator(
  options: OperatorOptions & Required<Pick<OperatorOptions, "connection">>,
): ConnectedOperator;
export function createOperator(options: OperatorOptions): Operator;
export function createOperator(options: OperatorOptions): Operator {
  return new RunnableOperator(options);
}

interface Clients {
  readonly client: ApiClient;
  /** By the names of the other clusters. */
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
  /** Whether the operator is to stop, so that it does not start again after a loss of the leadership. */
  #isEnding = false;
  #isExiting = false;
  /** The API servers with unverified certificates for which a warning was logged. */
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
      // Versions with either name must not lead at once.
      ...{
        settings,
        controller: controllers[0]?.formerNames?.[0] ?? controllers[0]?.name,
        logger: this.#logger,
        notes: this.#suspects,
      },
      observe: onLeadership && guardObserver(onLeadership, "the leadership", this.#logger),
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
      // Set before the first await, so that a concurrent start() or stop() finds the session.
      const session = new OperatorSession({ previous, client: this.#client, stopTimeoutMs, logger: this.#logger });
      this.#session = session;
      try {
        return await this.#startSession(session);
      } catch (error) {
        // If the leadership was lost while a controller was starting, become a candidate again.
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
      // A start may take long: the kubelet must be able to probe it.
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

  /** Waits for the session before: two sets of controllers would reconcile one primary at once. */
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

  /** Resolves when the controllers reconcile, or wait only for the leadership. */
  async #startControllers(session: OperatorSession, clients: Clients, signal: AbortSignal): Promise<void> {
    const { controllers, checkCrds = false } = this.#options;
    const { leadership } = session;
    if (checkCrds) {
      const checked = checkDefinitions(controllers, { ...clients, logger: this.#logger, signal });
      await untilAborted(checked, signal);
    }
    const context = this.#createContext(session, clients);
    const standby = leadership && {
      // A controller whose CRD is missing does not keep the others from leading.
      untilLeading: () => leadership.elector.start(),
      onFailure: (error: Error) => this.#onLost(session, error),
    };
    session.controllers = controllers.map((definition) => new RunningController(definition, context));
    // Each begins to reconcile when it knows enough: one whose CRD is missing does not hold up the others.
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
      ...{ tracing: this.#tracing, suspects: this.#suspects, observer: this.#createObserver() },
      proofKey: new ProofKeySecret(client, proofKey),
      selectorOf: shareSelectors(controllers),
      fencingToken: leadership && (() => leadership.elector.term),
    };
  }

  #createObserver(): OperatorObserver {
    const { observer, onLoop } = this.#options;
    const { metrics } = this.#endpoints;
    return new CombinedObserver([
      ...(metrics === undefined ? [] : [metrics]),
      {
        ...(observer && { onReconcile: guardObserver(observer, "reconciles", this.#logger) }),
        ...(onLoop && { onLoop: guardObserver(onLoop, "loops", this.#logger) }),
      },
      ...(reconcileChannel.hasSubscribers ? [CHANNEL_OBSERVER] : []),
    ]);
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

  /** Keep the endpoints open if the operator was restarted in the meantime. */
  async #closeEndpoints(): Promise<void> {
    if (this.#session !== undefined && this.#session.ended === undefined) return;
    this.#eventLoop.close();
    await this.#endpoints.close();
  }

  /** Another replica may write from now on. */
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

  /** Stores the primaries that blocked the event loop for the next leader; undefined if there are none, or there is no Lease. */
  #saveSuspects(): Promise<void> | undefined {
    this.#eventLoop.flush();
    return this.#suspects.all.length === 0 ? undefined : this.#session?.leadership?.elector.saveNotes(SAVE_SUSPECTS_MS);
  }

  async #standAgain(session: OperatorSession): Promise<void> {
    await session.end();
    if (this.#isEnding || this.#session !== session) return;
    await this.#start().catch((error: unknown) => {
      if (this.#isEnding) return;
      // No caller awaits this start.
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
    const ofUser = onRequest && guardObserver(onRequest, "requests", this.#logger);
    const observe = (request: RequestObservation) => {
      // Read for each request: tracing is loaded at the start.
      this.#tracing?.request(request);
      count?.(request);
      ofUser?.(request);
    };
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
  /** The previous session, which may not have ended. */
  readonly previous: OperatorSession | undefined;
  /** The client of the operator, if it has one already. */
  readonly client: ApiClient | undefined;
  readonly stopTimeoutMs: number;
  readonly logger: Logger;
}

/** Everything of an operator from one start to the stop after it. */
class OperatorSession {
  /** Aborted when the session is to end. */
  readonly stopping = new AbortController();
  /** The end of the previous session. */
  readonly before: Promise<boolean> | undefined;
  /** Whether all caches have been synced once. */
  isStarted = false;
  /** Whether the leadership was lost. */
  isAbandoned = false;
  /** Closed at the end. */
  clients: readonly ApiClient[];
  controllers: readonly RunningController[] = [];
  leadership: Leadership | undefined;
  informers: InformerPool | undefined;
  events: EventRecorder | undefined;
  /** Resolves when no reconcile of this session or a previous one is in progress, which may be long after the end. */
  idle: Promise<unknown>;
  /** Resolves with whether everything ended in time; absent until end() is called. */
  ended: Promise<boolean> | undefined;
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    const { previous, client } = options;
    this.#options = options;
    this.clients = client === undefined ? [] : [client];
    this.before = previous?.ended;
    this.idle = Promise.resolve(this.before).then(() => previous?.idle);
  }

  /** How many reconciles of previous sessions are still in progress. */
  get reconcilesBefore(): number {
    const { previous } = this.#options;
    if (previous === undefined) return 0;
    return previous.controllers.reduce((sum, each) => sum + each.counts().running, previous.reconcilesBefore);
  }

  /** Waits for the reconciles in progress, releases the Lease, stops the event sources and closes all connections, once. */
  end(): Promise<boolean> {
    return (this.ended ??= this.#end());
  }

  /** Aborts all writes: another replica may write from now on. */
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
    // A released Lease lets another replica write at once, so no write of this operator may be in flight, nor an aborted write that the API server
    // may still execute. A Lease that is not released expires later than that.
    const isHandedOver = isFinished && !controllers.some(({ definition }) => lateWrites.hasAny(definition));
    await this.leadership?.end(isHandedOver ? () => this.#drainWrites(leftMs()) : undefined);
    const stopped = await Promise.all(controllers.map((controller) => controller.stopSources(leftMs())));
    await Promise.all(this.clients.map((client) => client.close()));
    if (!isFinished) logger.warn({ deadlineMs: stopTimeoutMs }, "stopped with reconciles still in progress");
    return isFinished && stopped.every(Boolean) && wasFinished;
  }

  /** Waits for in-flight writes; resolves with whether all ended in time. */
  async #drainWrites(timeoutMs: number): Promise<boolean> {
    const ended = Promise.all(this.clients.map((client) => requesterOf(client).transport.whenWritesEnded()));
    return withDeadline(() => ended, { timeoutMs, clock: systemClock }).then(
      () => true,
      () => false,
    );
  }
}

/** Wraps an observer of the user, which may throw or be asynchronous. */
function guardObserver<Observation>(
  observe: (observation: Observation) => void,
  what: string,
  logger: Logger,
): (observation: Observation) => void {
  const onFailure = (error: unknown) => logger.error({}, `the observer of ${what} failed: ${messageOf(error)}`);
  return (observation) => callUnawaited(() => observe(observation), { onFailure });
}

/** Calls all observers of an operator: metrics, functions of the user, and diagnostics channels. */
class CombinedObserver implements OperatorObserver {
  readonly #observers: readonly Partial<OperatorObserver>[];

  constructor(observers: readonly Partial<OperatorObserver>[]) {
    this.#observers = observers;
  }

  onReconcile(event: ReconcileEvent): void {
    for (const each of this.#observers) each.onReconcile?.(event);
  }

  onLoop(event: LoopEvent): void {
    for (const each of this.#observers) each.onLoop?.(event);
  }

  onForeignWrite(write: { readonly controller: string }): void {
    for (const each of this.#observers) each.onForeignWrite?.(write);
  }

  onExternalWrite(event: ExternalWriteEvent): void {
    for (const each of this.#observers) each.onExternalWrite?.(event);
  }
}

const CHANNEL_OBSERVER: Partial<OperatorObserver> = { onReconcile: (event) => reconcileChannel.publish(event) };
