import { Backoff } from "./base/backoff.js";
import { sleep } from "./base/clock.js";
import { createSafeLogger, messageOf, type Logger, createLogger } from "./base/logger.js";
import { ApiClient } from "./client/api-client.js";
import type { RequestObserver } from "./client/requester.js";
import { createConnection, type Connection, type ConnectionOptions } from "./client/connect/connection.js";
import { loadConnection } from "./client/connect/load-connection.js";
import { InformerPool } from "./watch/informer-pool.js";
import { healthOf, type OperatorHealth } from "./operate/health.js";
import { checkClusters, checkDefinitions } from "./assemble/check-definitions.js";
import { checkControllers } from "./assemble/check-controller.js";
import type { ControllerDefinition } from "./reconcile/controller-definition.js";
import type { LoopObserver } from "./operate/loop-reporter.js";
import { shareSelectors } from "./assemble/dependent-drivers.js";
import { fieldManagersOf, RunningController } from "./assemble/running-controller.js";
import { callUnawaited, untilAborted } from "./base/promises.js";
import type { ReconcileObserver } from "./reconcile/reconcile-event.js";

/** What an operator consists of. */
export interface OperatorOptions {
  readonly controllers: readonly ControllerDefinition[];
  /** The API server; found as `loadConnection` does unless given. */
  readonly connection?: Connection | ConnectionOptions;
  /** Other clusters that dependents live in, by the names that these state; the operator's own connection has none. */
  readonly clusters?: { readonly [name: string]: Connection | ConnectionOptions };
  /** A kubeconfig file to take the connection from. */
  readonly kubeconfig?: string;
  readonly logger?: Logger;
  /** Told about every reconcile. */
  readonly observer?: ReconcileObserver;
  /** Told about every write of a dependent that others undo each time; such a dependent is written less and less often. */
  readonly onLoop?: LoopObserver;
  /** Told about every request, but for watches. */
  readonly onRequest?: RequestObserver;
  /** Compares the CustomResourceDefinitions of the cluster with what the operator was compiled for, and refuses to start if they differ. */
  readonly checksCrds?: boolean;
  /** Gives up the start after this time; without it the operator keeps trying to reach its API server. */
  readonly startTimeoutMs?: number | undefined;
  /** How long reconciles under way, and after them event sources (a second at least), may take to finish at the stop; 30 s unless given. */
  readonly stopTimeoutMs?: number;
}

/** A running or stopped set of controllers. */
export interface Operator extends AsyncDisposable {
  /** The client that the operator uses; `undefined` until a start has found a connection. */
  readonly client: ApiClient | undefined;
  /** Resolves to the operator, with its client, when all that is watched is known and reconciling has begun. After a stop it may start again. */
  start(): Promise<ConnectedOperator>;
  /**
   * Finishes the reconciles under way, stops the event sources and closes all connections; tells whether all of them finished in time.
   * Does nothing to an operator that was not started.
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
  Omit<RunningController, "start" | "stopReconciling" | "stopSources" | "whenIdle" | "failures">
>;

const STOP_TIMEOUT_MS = 30_000;
// Event sources are stopped after the reconciles, which may have used up the time.
const MIN_SOURCES_STOP_MS = 1_000;
const UNFINISHED =
  "not all that was under way when the operator was stopped has ended; it starts when the reconciles have";
const CONNECT_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 30_000 };

/** Creates an operator, which does nothing until it is started. */
export function createOperator(
  options: OperatorOptions & Required<Pick<OperatorOptions, "connection">>,
): ConnectedOperator;
export function createOperator(options: OperatorOptions): Operator;
export function createOperator(options: OperatorOptions): Operator {
  return new RunnableOperator(options);
}

/** Everything from one start to the stop after it. */
interface Session {
  readonly stopping: AbortController;
  /** The stop of the session before, which may be under way. */
  readonly before: Promise<boolean> | undefined;
  clusters: ReadonlyMap<string, ApiClient>;
  controllers: RunningController[];
  stopped?: Promise<boolean>;
  /** Resolves when no reconcile of this session and of those before is under way any more; that may be long after the stop. */
  idle: Promise<unknown>;
}

class RunnableOperator implements Operator {
  readonly #options: OperatorOptions;
  readonly #logger: Logger;
  #client: ApiClient | undefined;
  #isClientClosed = false;
  #session: Session | undefined;

  constructor(options: OperatorOptions) {
    this.#options = options;
    this.#logger = createSafeLogger(options.logger ?? createLogger());
    checkControllers(options.controllers);
    checkClusters(options.controllers, Object.keys(options.clusters ?? {}));
    if (options.connection !== undefined) this.#client = this.#connect(options.connection);
  }

  get client(): ApiClient | undefined {
    return this.#client;
  }

  async start(): Promise<ConnectedOperator> {
    const previous = this.#session;
    const before = previous?.stopped;
    if (this.#session !== undefined && before === undefined) throw new Error("the operator is started already");
    // Whoever starts or stops it while this waits has to find it started.
    const idle = Promise.resolve(before).then(() => previous?.idle);
    const session: Session = { stopping: new AbortController(), before, clusters: new Map(), controllers: [], idle };
    this.#session = session;
    const { startTimeoutMs, controllers, observer, onLoop } = this.#options;
    const timeout = startTimeoutMs === undefined ? undefined : AbortSignal.timeout(startTimeoutMs);
    const signal = AbortSignal.any([session.stopping.signal, timeout ?? []].flat());
    try {
      // What the start before left has to be gone: two sets of controllers would reconcile one primary at once.
      if ((await before) === false) this.#logger.warn({}, UNFINISHED);
      await untilAborted(idle, signal).catch((error: unknown) => {
        throw session.stopping.signal.aborted ? error : new Error(UNFINISHED, { cause: error });
      });
      const client = await this.#openClient(signal);
      // It may have been stopped while it looked.
      signal.throwIfAborted();
      const fieldManagers = [...new Set(controllers.flatMap(fieldManagersOf))];
      const others = Object.entries(this.#options.clusters ?? {});
      const clusters = (session.clusters = new Map(others.map(([name, given]) => [name, this.#connect(given)])));
      const logger = this.#logger;
      if (this.#options.checksCrds === true)
        await untilAborted(checkDefinitions(controllers, { client, clusters, logger, signal }), signal);
      const shared = {
        ...{ client, clusters, fieldManagers, logger },
        informers: new InformerPool({ client, clusters: clusters.values(), fieldManagers, logger }),
        observer: observer && this.#guarded("reconciles", observer),
        onLoop: onLoop && this.#guarded("loops", onLoop),
        selectorOf: shareSelectors(controllers),
      };
      session.controllers = controllers.map((definition) => new RunningController(definition, shared));
      // Each begins to reconcile when it knows enough: one whose CRD is missing does not hold up the others.
      await untilAborted(Promise.all(session.controllers.map((each) => each.start())), signal);
    } catch (error) {
      const isTooLate = timeout?.aborted === true;
      const reasons = new Set(session.controllers.flatMap(({ failures }) => failures));
      await this.stop();
      if (!isTooLate) throw error;
      const why = reasons.size > 0 ? [...reasons].join("; ") : messageOf(error);
      throw new Error(`the operator could not start within ${startTimeoutMs} ms: ${why}`);
    }
    const names = controllers.map(({ name }) => name);
    this.#logger.info({ controllers: names, server: this.client?.connection.server }, "started");
    return this as ConnectedOperator;
  }

  async stop(): Promise<boolean> {
    const session = this.#session;
    if (session === undefined) {
      await this.#closeClient();
      return true;
    }
    return (session.stopped ??= this.#stop(session));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  controller(name: string): RegisteredController {
    const controllers = this.#runningSession?.controllers ?? [];
    const found = controllers.find(({ definition }) => definition.name === name);
    if (found !== undefined) return found;
    const names = this.#options.controllers.map((each) => each.name);
    throw new Error(
      names.includes(name)
        ? `controller "${name}" is there only while the operator is started`
        : `there is no controller "${name}", only ${names.join(", ")}`,
    );
  }

  health(): OperatorHealth {
    return healthOf(this.#runningSession?.controllers, this.#options.controllers.length);
  }

  get #runningSession(): Session | undefined {
    return this.#session?.stopped === undefined ? this.#session : undefined;
  }

  async #stop(session: Session): Promise<boolean> {
    const { stopping, before, clusters, controllers } = session;
    stopping.abort(new Error("the operator was stopped"));
    const wasFinished = (await before) ?? true;
    const deadlineMs = this.#options.stopTimeoutMs ?? STOP_TIMEOUT_MS;
    const startedAt = performance.now();
    const reconciling = controllers.map((controller) => controller.stopReconciling(deadlineMs));
    session.idle = Promise.all([session.idle, ...controllers.map((controller) => controller.whenIdle())]);
    const finished = await Promise.all(reconciling);
    const leftMs = Math.max(MIN_SOURCES_STOP_MS, deadlineMs - (performance.now() - startedAt));
    const stopped = await Promise.all(controllers.map((controller) => controller.stopSources(leftMs)));
    await Promise.all([this.#closeClient(), ...[...clusters.values()].map((client) => client.close())]);
    const isFinished = finished.every(Boolean);
    if (!isFinished) this.#logger.warn({ deadlineMs }, "stopped while reconciles were still under way");
    return isFinished && stopped.every(Boolean) && wasFinished;
  }

  async #openClient(signal: AbortSignal): Promise<ApiClient> {
    if (this.#client === undefined || this.#isClientClosed)
      this.#client = this.#connect(this.#options.connection ?? (await this.#findConnection(signal)));
    this.#isClientClosed = false;
    return this.#client;
  }

  async #closeClient(): Promise<void> {
    this.#isClientClosed = true;
    await this.#client?.close();
  }

  #connect(connection: Connection | ConnectionOptions): ApiClient {
    const complete = "credentials" in connection ? connection : createConnection(connection);
    const { onRequest } = this.#options;
    const observe = onRequest && this.#guarded("requests", onRequest);
    return new ApiClient(complete, { observe, logger: this.#logger });
  }

  #guarded<Observation>(what: string, observe: (observation: Observation) => void): (observation: Observation) => void {
    const onFailure = (error: unknown) => this.#logger.error({}, `the observer of ${what} failed: ${messageOf(error)}`);
    return (observation) => callUnawaited(() => observe(observation), { onFailure });
  }

  // A missing kubeconfig may be mounted later: an operator that gives up needs somebody to start it again.
  async #findConnection(signal: AbortSignal): Promise<Connection> {
    const { kubeconfig } = this.#options;
    const backoff = new Backoff(CONNECT_BACKOFF);
    for (;;) {
      try {
        return await loadConnection(kubeconfig === undefined ? {} : { kubeconfig });
      } catch (error) {
        const retryAfterMs = backoff.next();
        this.#logger.warn({ retryAfterMs: Math.round(retryAfterMs) }, `${messageOf(error)}; trying again`);
        await sleep(retryAfterMs, signal).catch(() => {
          throw error;
        });
      }
    }
  }
}
