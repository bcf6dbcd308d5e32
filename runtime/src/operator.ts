import { Backoff } from "./base/backoff.js";
import { sleep } from "./base/clock.js";
import { createLogger, messageOf, type Logger } from "./base/logger.js";
import { ApiClient } from "./cluster/api-client.js";
import type { RequestObserver } from "./cluster/api-requester.js";
import { createConnection, type Connection, type ConnectionOptions } from "./cluster/connection.js";
import { loadConnection } from "./cluster/load-connection.js";
import { ControllerSources } from "./events/controller-sources.js";
import { describeFailure } from "./events/informer.js";
import type { ControllerDefinition } from "./reconcile/controller-definition.js";
import { Controller } from "./reconcile/controller.js";
import { PrimaryReconciler } from "./reconcile/primary-reconciler.js";
import type { ReconcileObserver } from "./reconcile/reconcile-event.js";
import { Writer } from "./write/apply.js";

/** What an operator consists of. */
export interface OperatorOptions {
  readonly controllers: readonly ControllerDefinition[];
  /** The API server; found as `loadConnection` does unless given. */
  readonly connection?: Connection | ConnectionOptions;
  /** A kubeconfig file to take the connection from. */
  readonly kubeconfig?: string;
  readonly logger?: Logger;
  /** Told about every reconcile. */
  readonly observer?: ReconcileObserver;
  /** Told about every request, but for watches. */
  readonly onRequest?: RequestObserver;
  /** Gives up the start after this time; without it the operator keeps trying to reach its API server. */
  readonly startTimeoutMs?: number;
  /** How long reconciles under way may take to finish when the operator stops; 30 s unless given. */
  readonly stopTimeoutMs?: number;
}

/** A running or stopped set of controllers. */
export interface Operator extends AsyncDisposable {
  /** The client that the operator uses; throws before a connection is found. */
  readonly client: ApiClient;
  /** Resolves when all that is watched is known and reconciling has begun. */
  start(): Promise<void>;
  /** Finishes the reconciles under way and closes all connections; tells whether all of them finished in time. */
  stop(): Promise<boolean>;
}

const STOP_TIMEOUT_MS = 30_000;
const CONNECT_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 30_000 };

/** Creates an operator, which does nothing until it is started. */
export function createOperator(options: OperatorOptions): Operator {
  return new RunnableOperator(options);
}

interface RunningController {
  readonly controller: Controller;
  readonly sources: ControllerSources;
}

class RunnableOperator implements Operator {
  readonly #options: OperatorOptions;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  #client: ApiClient | undefined;
  #running: RunningController[] = [];
  #stopped: Promise<boolean> | undefined;

  constructor(options: OperatorOptions) {
    this.#options = options;
    this.#logger = options.logger ?? createLogger();
    const names = options.controllers.map(({ name }) => name);
    const duplicate = names.find((name, index) => names.indexOf(name) !== index);
    if (duplicate !== undefined) throw new Error(`two controllers are named "${duplicate}"`);
    if (options.connection !== undefined) this.#client = this.#connect(options.connection);
  }

  get client(): ApiClient {
    if (this.#client === undefined) throw new Error("the operator has no connection yet; start it, or give it one");
    return this.#client;
  }

  async start(): Promise<void> {
    const { startTimeoutMs, controllers } = this.#options;
    const timeout = startTimeoutMs === undefined ? undefined : AbortSignal.timeout(startTimeoutMs);
    const signal = AbortSignal.any([this.#stopping.signal, ...(timeout === undefined ? [] : [timeout])]);
    try {
      this.#client ??= this.#connect(await this.#findConnection(signal));
      // It may have been stopped while it looked.
      signal.throwIfAborted();
      this.#running = controllers.map((definition) =>
        createController(definition, { ...this.#options, logger: this.#logger, client: this.client }),
      );
      await untilAborted(Promise.all(this.#running.map(({ sources }) => sources.start())), signal);
    } catch (error) {
      const reason = timeout?.aborted === true ? this.#startFailure(startTimeoutMs as number, error) : error;
      await this.stop();
      throw reason;
    }
    for (const { controller } of this.#running) controller.start();
    this.#logger.info(
      { controllers: controllers.map(({ name }) => name), server: this.client.connection.server },
      "started",
    );
  }

  stop(): Promise<boolean> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<boolean> {
    this.#stopping.abort(new Error("the operator was stopped"));
    const deadlineMs = this.#options.stopTimeoutMs ?? STOP_TIMEOUT_MS;
    const finished = await Promise.all(this.#running.map(({ controller }) => controller.stop(deadlineMs)));
    await Promise.all(this.#running.map(({ sources }) => sources.stop()));
    await this.#client?.close();
    const isFinished = finished.every(Boolean);
    if (!isFinished) this.#logger.warn({ deadlineMs }, "stopped while reconciles were still under way");
    return isFinished;
  }

  #connect(connection: Connection | ConnectionOptions): ApiClient {
    const complete = "credentials" in connection ? connection : createConnection(connection);
    return new ApiClient(complete, this.#options.onRequest);
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

  #startFailure(timeoutMs: number, error: unknown): Error {
    const failures = this.#running.flatMap(({ sources: { lastFailure } }) => lastFailure ?? []);
    const reasons = failures.map(({ informer, error: cause }) =>
      describeFailure(cause, informer.definition, this.client.connection),
    );
    const why = reasons.length > 0 ? reasons.join("; ").replaceAll("; trying again", "") : messageOf(error);
    return new Error(`the operator could not start within ${timeoutMs} ms: ${why}`);
  }
}

function createController(
  definition: ControllerDefinition,
  { client, logger, observer }: { client: ApiClient; logger: Logger; observer?: ReconcileObserver },
): RunningController {
  const { workflow, namespaces, labelSelector, fieldManager = definition.name } = definition;
  const sources = new ControllerSources({
    primary: workflow.primary,
    dependents: workflow.dependents.map((dependent) => ({
      ...dependent,
      isActivatedLater: dependent.activationCondition !== undefined,
    })),
    namespaces,
    labelSelector,
    fieldManager,
    client,
    logger,
    onPrimaryChange: (change) => controller.onPrimaryChange(change),
    onSecondaryChange: (primaries) => controller.onSecondaryChange(primaries, { source: "dependents" }),
  });
  const primaries = sources.primaries.cache;
  const writer = new Writer(client, fieldManager);
  const runner = new PrimaryReconciler(definition, { client, primaries, sources: sources.dependents, writer });
  const controller: Controller = new Controller(definition, { primaries, runner, logger, observer });
  return { controller, sources };
}

function untilAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
