import { checkNumbers } from "./base/checks.js";
import { systemClock } from "./base/clock.js";
import { messageOf, type Logger } from "./base/logger.js";
import { ApiClient, requesterOf } from "./client/api-client.js";
import { createConnection, type Connection, type ConnectionOptions } from "./client/connect/connection.js";
import { InformerPool } from "./watch/informer-pool.js";
import type { LoopEvent } from "./operate/loop-reporter.js";
import { startedChannel } from "./operate/channels.js";
import { healthOf, type OperatorHealth } from "./operate/health.js";
import { EventRecorder } from "./operate/events/event-recorder.js";
import { checkWatchdog } from "./operate/watchdog.js";
import { EventLoopMonitor } from "./operate/event-loop-monitor.js";
import { Suspects } from "./schedule/dispatch/suspects.js";
import { instanceName } from "./operate/instance-name.js";
import { createLeveledLogger } from "./operate/settings/log-levels.js";
import { loadTracing } from "./operate/tracing.js";
import { LeaderElection } from "./operate/lease/leadership.js";
import { checkClusters, checkDefinitions } from "./assemble/check-definitions.js";
import { checkControllers, keptManagersOf, warningsOf } from "./assemble/check-controller.js";
import { findConnection } from "./assemble/operator/find-connection.js";
import { shareSelectors } from "./assemble/dependent-reconcilers.js";
import { all, guarded, reconcileObserverOf } from "./assemble/operator/observers.js";
import type { ExternalWriteEvent } from "./assemble/external-writes.js";
import { OperatorEndpoints } from "./assemble/operator/endpoints.js";
import type { OperatorOptions } from "./assemble/operator/operator-options.js";
import type { RequestObservation, Tracing } from "./base/activity.js";
import { OperatorSession } from "./assemble/operator/session.js";
import { ProofKeySecret } from "./operate/proof-key-secret.js";
import { RunningController } from "./assemble/running-controller.js";
import { untilAborted } from "./base/promises.js";

/** A running or stopped set of controllers. */
export interface Operator extends AsyncDisposable {
  /** The client that the operator uses; `undefined` until a start has found a connection. */
  readonly client: ApiClient | undefined;
  /** Resolves to the operator, with its client, when all that is watched is known and reconciling has begun. After a stop it may start again. */
  start(): Promise<ConnectedOperator>;
  /**
   * Finishes the reconciles under way, stops the event sources and closes all connections; tells whether all of them finished in time.
   * Of an operator that was not started it closes the client, if there is one.
   */
  stop(): Promise<boolean>;
  /** Returns a controller by name; throws if there is none, or if the operator is not started. */
  controller(name: string): RegisteredController;
  /** How the operator is doing now, with what is wrong where. */
  health(): OperatorHealth;
}

/** An operator that has a client: after its start, or from the beginning if it was given its connection. */
export interface ConnectedOperator extends Operator {
  readonly client: ApiClient;
}

/** A controller of a started operator, but for what starts and stops it (JOSDK's RegisteredController). */
export type RegisteredController = Readonly<
  Omit<RunningController, "start" | "stopReconciling" | "stopSources" | "whenIdle" | "failures" | "inProgress">
>;

const STOP_TIMEOUT_MS = 25_000;
// Nothing is written any more by then, so that another replica need not wait.
const SAVE_SUSPECTS_MS = 2_000;

/** Creates an operator, which does nothing until it is started. */
export function createOperator(
  options: OperatorOptions & Required<Pick<OperatorOptions, "connection">>,
): ConnectedOperator;
export function createOperator(options: OperatorOptions): Operator;
export function createOperator(options: OperatorOptions): Operator {
  return new RunnableOperator(options);
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
  /** Whether somebody asked for the end, so that a loss of the leadership starts nothing any more. */
  #isEnding = false;
  #isExiting = false;
  /** The API servers whose certificates are not verified, which the log has said. */
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
      observe: guarded(onLeadership, "the leadership", this.#logger),
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
      if (previous !== undefined && previous.ended === undefined) throw new Error("the operator is started already");
      const { stopTimeoutMs = STOP_TIMEOUT_MS } = this.#options;
      // Whoever starts or stops it while this waits has to find it started.
      const session = new OperatorSession({ previous, client: this.#client, stopTimeoutMs, logger: this.#logger });
      this.#session = session;
      try {
        return await this.#startSession(session);
      } catch (error) {
        // One that lost its leadership while a controller was still starting is a candidate again.
        if (!session.isAbandoned || this.#isEnding) throw error;
      }
    }
  }

  async #startSession(session: OperatorSession): Promise<ConnectedOperator> {
    const { before, idle } = session;
    const { startTimeoutMs = Infinity, controllers, observer, onLoop } = this.#options;
    const late = new AbortController();
    const cancelTimeout = systemClock.schedule(startTimeoutMs, () => late.abort(new Error("its time is up")));
    const signal = AbortSignal.any([session.stopping.signal, late.signal]);
    try {
      // A start may take long, and the kubelet wants to know that it goes on.
      await this.#endpoints.open();
      const tracing = (this.#tracing = await loadTracing());
      // What the start before left has to be gone: two sets of controllers would reconcile one primary at once.
      await before;
      if (session.reconcilesBefore > 0) this.#logger.warn({}, describeUnfinished(session));
      await untilAborted(idle, signal).catch((error: unknown) => {
        throw session.stopping.signal.aborted ? error : new Error(describeUnfinished(session), { cause: error });
      });
      const client = await this.#openClient(signal);
      session.clients = [client];
      // It may have been stopped while it looked.
      signal.throwIfAborted();
      const fieldManagers = keptManagersOf(controllers);
      const others = Object.entries(this.#options.clusters ?? {});
      const clusters = new Map(others.map(([name, given]) => [name, this.#connect(given)]));
      session.clients = [client, ...clusters.values()];
      const logger = this.#logger;
      const onLost = (error: Error) => this.#onLost(session, error);
      const { connection } = client;
      const count = this.#endpoints.requestCounterOf(connection);
      const leadership = this.#election.createLeadership(connection, { onLost, count });
      session.leadership = leadership;
      await leadership?.checkPermissions(signal);
      await this.#endpoints.checkRights(signal);
      if (this.#options.checkCrds === true)
        await untilAborted(checkDefinitions(controllers, { client, clusters, logger, signal }), signal);
      const { metrics } = this.#endpoints;
      const informers = new InformerPool({ client, clusters: clusters.values(), fieldManagers, logger });
      session.informers = informers;
      const events = (session.events = new EventRecorder({ client, logger, instance: instanceName() }));
      const shared = {
        ...{ client, clusters, fieldManagers, logger, informers, events, tracing, suspects: this.#suspects },
        proofKey: new ProofKeySecret(client, this.#options.proofKey),
        observer: reconcileObserverOf(metrics, observer, logger),
        onLoop: all(metrics && ((event: LoopEvent) => metrics.observeLoop(event)), guarded(onLoop, "loops", logger)),
        onForeignWrite: metrics && ((write: { readonly controller: string }) => metrics.observeForeignWrite(write)),
        onExternalWrite: metrics && ((event: ExternalWriteEvent) => metrics.observeExternalWrite(event)),
        selectorOf: shareSelectors(controllers),
        fencingToken: leadership && (() => leadership.term),
      };
      const standby = leadership && {
        // A controller whose CRD is missing does not keep the others from leading.
        untilLeading: () => leadership.stand(),
        onFailure: onLost,
      };
      session.controllers = controllers.map((definition) => new RunningController(definition, shared));
      // Each begins to reconcile when it knows enough: one whose CRD is missing does not hold up the others.
      await untilAborted(Promise.all(session.controllers.map((each) => each.start(standby))), signal);
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  controller(name: string): RegisteredController {
    const controllers = this.#runningSession?.controllers ?? [];
    const found = controllers.find(({ definition }) => definition.name === name);
    if (found !== undefined) return found;
    throw new Error(
      this.#names.includes(name)
        ? `controller "${name}" is there only while the operator is started`
        : `there is no controller "${name}", only ${this.#names.join(", ")}`,
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

  /** Those of an operator that was started again meanwhile stay. */
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

  /** Names what blocked the event loop, and keeps that for the next leader; returns nothing if there is nothing to keep, or nowhere. */
  #saveSuspects(): Promise<void> | undefined {
    this.#eventLoop.flush();
    return this.#suspects.all.length === 0 ? undefined : this.#session?.leadership?.saveNotes(SAVE_SUSPECTS_MS);
  }

  async #standAgain(session: OperatorSession): Promise<void> {
    await session.end();
    if (this.#isEnding || this.#session !== session) return;
    await this.#start().catch((error: unknown) => {
      if (this.#isEnding) return;
      // Nobody waits for this start.
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
    const observed = (request: RequestObservation) => {
      // Whether there are traces is known at the start.
      this.#tracing?.request(request);
      count?.(request);
    };
    const observe = all(observed, guarded(onRequest, "requests", this.#logger));
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
  return `the last run still has ${count} ${count === 1 ? "reconcile" : "reconciles"} in flight; the start waits for the end of the last run`;
}

function completed(connection: Connection | ConnectionOptions): Connection {
  return "credentials" in connection ? connection : createConnection(connection);
}
