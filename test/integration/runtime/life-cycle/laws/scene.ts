// What a scenario of a law is played on: namespaces of its own on a server that the file shares, one operator, and the clients of other people.
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import type { Simulated } from "#apiserver/simulated.js";
import { waitFor } from "#apiserver/wait-for.js";
import { sleep } from "#runtime/base/wait.js";
import type { KubernetesObject, ResourceClass } from "#runtime/base/kubernetes-object.js";
import { messageOf } from "#runtime/base/logger.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type { ReconcileEvent } from "#runtime/queue/controller.js";
import { isRealApiServer, startTestApiServer, type TestApiServer } from "../../../../support/api/api-server.js";
import { startRecordingProxy, type RecordingProxy } from "../../../../support/api/recording-proxy.js";
import { builtinDefinition, classOf, customDefinition } from "../../../../support/kinds/kind-definitions.js";
import { createRecordedOperator, type RecordedOperator } from "../../../../support/runtime/recorded-operator.js";
import { shared } from "../../../../support/suite.js";
import { Page, pageCrd } from "../../page.js";

/** Pages of the whole cluster. */
export const sitesCrd = {
  ...pageCrd,
  metadata: { name: "sites.example.com" },
  spec: {
    ...pageCrd.spec,
    scope: "Cluster",
    names: { kind: "Site", plural: "sites", singular: "site", listKind: "SiteList" },
  },
} as const;
export const Site = classOf<Page>(customDefinition(sitesCrd));
export const Namespace = classOf(builtinDefinition("v1", "Namespace"));

/** How long an operator without work stays so before the next command: shorter than the pause between two retries. */
const QUIET_MS = isRealApiServer ? 400 : 80;
/** How often it is looked at meanwhile: on a busy machine the time alone says nothing. */
const QUIET_LOOKS = 4;
const INTERVAL_MS = 10;

let scenes = 0;

type Server = TestApiServer & Partial<Pick<ApiServer, "faults" | "as">>;

/** Returns a function that opens a scene on the server of this test file. */
export function scenesOf({ simulate = false }: { readonly simulate?: Simulated } = {}) {
  const start = async (): Promise<Server> => {
    const crds = [pageCrd, sitesCrd];
    if (isRealApiServer) return startTestApiServer({ crds, simulate: simulate !== false });
    return startApiServer({ tls: false, crds, simulate });
  };
  const server = shared(start);
  return async (patienceMs: number) => Scene.open(await server(), patienceMs);
}

export class Scene implements AsyncDisposable {
  readonly server: Server;
  readonly client: ApiClient;
  /** Tells the names of this scene from those of others. */
  readonly id = `scene-${++scenes}`;
  readonly namespace = this.id;
  /** What broke the law. */
  readonly problems: string[] = [];
  /** Every reconcile of every operator of the scene. */
  readonly events: ReconcileEvent[] = [];
  /** Every log line of the earlier operators. */
  readonly #logs: string[] = [];
  readonly #patienceMs: number;
  /** Between the operator and a server that cannot end its watches. */
  #proxy: RecordingProxy | undefined;
  #isRestricted = false;
  #running: RecordedOperator | undefined;
  #controllers: readonly ControllerDefinition[] = [];
  #past = 0;

  private constructor(server: Server, patienceMs: number) {
    this.server = server;
    this.#patienceMs = patienceMs;
    const { url, token, ca } = server;
    this.client = new ApiClient(createConnection({ url, token, ca }));
  }

  static async open(server: Server, patienceMs: number): Promise<Scene> {
    const scene = new Scene(server, patienceMs);
    await scene.createNamespace(scene.namespace);
    return scene;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.faults?.endWatches({ user: this.id });
    await this.stop();
    await this.#proxy?.[Symbol.asyncDispose]();
    await this.client.close();
  }

  /** From its next start on the operator has the rights that roles give the user `id`, and no others. */
  async restrict(): Promise<void> {
    this.#isRestricted = true;
    if (this.server.faults === undefined) this.#proxy ??= await startRecordingProxy(this.server);
  }

  /** Ends the watches of the operator, which has to begin them anew; on a real server only those of a restricted one. */
  endWatches(): void {
    this.server.faults?.endWatches({ user: this.id });
    this.#proxy?.cut();
  }

  async createNamespace(name: string): Promise<string> {
    await this.client.create(Namespace, { metadata: { name } });
    return name;
  }

  /** What can go wrong with the requests of the operator of this scene; only on the embedded server. */
  get faults() {
    const { faults } = this.server;
    if (faults === undefined) throw new Error("a scenario with faults is not for a real API server");
    return faults;
  }

  get operator(): RecordedOperator | undefined {
    return this.#running;
  }

  get logs(): readonly string[] {
    return [...this.#logs, ...(this.#running?.logs ?? [])];
  }

  /** Starts an operator, after the end of the one before, and waits until it runs; without controllers the same one again. */
  async start(...controllers: readonly ControllerDefinition[]): Promise<void> {
    const started = await this.launch(...controllers);
    await this.until("the operator has started", () => isSettled(started));
  }

  /** Starts an operator as `start` does, and does not wait. */
  async launch(...controllers: readonly ControllerDefinition[]): Promise<Promise<unknown>[]> {
    await this.stop();
    if (controllers.length > 0) this.#controllers = controllers;
    try {
      this.#running = createRecordedOperator({
        controllers: this.#controllers,
        connection: this.#connectionOfOperator(),
        observer: (event) => void this.events.push(event),
        stopTimeoutMs: 500,
      });
    } catch (error) {
      this.problems.push(`the operator is not created: ${messageOf(error)}`);
      return [];
    }
    const started = this.#running.operator.start();
    started.catch(() => {});
    return [started];
  }

  #connectionOfOperator() {
    const groups = this.#isRestricted ? [] : ["system:masters"];
    const { url, token, ca } = this.server.as?.(this.id, { groups }) ?? this.server;
    if (this.#proxy === undefined) return { url, token, ca };
    return { url: this.#proxy.url, token, impersonation: { user: this.id } };
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    this.#past += running.requests.length;
    this.#logs.push(...running.logs);
    await running.operator.stop();
  }

  /** Waits until something is so; otherwise the law is broken. */
  async until(what: string, check: () => unknown, intervalMs = 2 * INTERVAL_MS): Promise<boolean> {
    let last: unknown;
    const isSo = async () => {
      last = await check();
      return last === true || (last !== false && last !== undefined && !Array.isArray(last)) || isEmpty(last);
    };
    try {
      await waitFor(what, isSo, { timeoutMs: this.#patienceMs, intervalMs });
      return true;
    } catch {
      const failure = this.logs.findLast((line) => /^(?:warn|error) /.test(line));
      const problem = Array.isArray(last) ? `not ${what}: ${last.join("; ")}` : `never: ${what}`;
      this.problems.push(failure === undefined ? problem : `${problem}; last ${failure}`);
      return false;
    }
  }

  /** Waits until the operator neither reconciles nor sends a request, or until it need not be waited for. */
  async quiet(isOver: () => boolean = () => false): Promise<void> {
    const counters = () => `${this.events.length} ${this.#past + (this.#running?.requests.length ?? 0)}`;
    const names = this.#controllers.map(({ name }) => name);
    const isBusy = () => names.some((name) => (this.#running?.operator.controller(name).counts().running ?? 0) > 0);
    let [before, since, looks] = [counters(), performance.now(), 0];
    const isAtRest = () => {
      if (isOver()) return true;
      const now = counters();
      if (now !== before || (this.#running?.operator.health().status !== "stopped" && isBusy()))
        [before, since, looks] = [now, performance.now(), 0];
      return ++looks > QUIET_LOOKS && performance.now() - since > QUIET_MS;
    };
    await this.until("the operator is at rest", isAtRest, INTERVAL_MS);
  }

  /** Reads an object of the namespace of the scene. */
  get<R extends KubernetesObject>(kind: ResourceClass<R>, name: string, namespace = this.namespace) {
    return this.client.get(kind, kind.definition.scope === "Cluster" ? { name } : { name, namespace });
  }
}

async function isSettled(promises: readonly Promise<unknown>[]): Promise<boolean> {
  const pending = Symbol();
  return (await Promise.race([Promise.all(promises), sleep(0).then(() => pending)])) !== pending;
}

const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
