// The system that the model-based tests of an operator let things happen to, and what was seen of it.
import type { ApiServer } from "#apiserver/index.js";
import { isApiError } from "#runtime/base/errors.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { sleep } from "#runtime/base/wait.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import {
  ConfigMap,
  configMapOf,
  createPageOperator,
  Page,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
} from "../../page-operator.js";

export const NAMES = ["a", "b", "c"] as const;
/** Far longer than a write takes on a busy machine: an operator of which each write is given up ends nowhere. */
const STEP_TIMEOUT_MS = 1_500;
const LATE_MS = 2 * STEP_TIMEOUT_MS;
/** The user of the operators: what goes wrong does so for them alone, not for the garbage collector, nor for who looks at the end. */
export const USER = "operator";
const FINALIZER = "pages.example.com/finalizer";

export type Config = KubernetesObject & { data?: { text?: string } };

export const refOf = (name: string) => ({ name, namespace: "default" });
const nameOf = ({ metadata: { name }, spec: { more } }: Page) => (more === undefined ? name : `${name}-${more}`);
export const configNameOf = (page: Page) => `${nameOf(page)}-text`;
const pageNameOf = ({ metadata }: Config) => metadata.name.split("-")[0]!;
const stateOf = ({ metadata, spec }: Pick<Page, "metadata" | "spec">) =>
  `${metadata.uid} generation ${metadata.generation} ${spec.text}`;

// What somebody does may come too early or too late: the object is there already, or not any more, or is going.
export async function attempt(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isApiError(error, 404) && !isApiError(error, 409) && !isApiError(error, 403)) throw error;
  }
}

/** A server, an operator that makes a ConfigMap for each Page, and the client of everybody else. */
export class World implements AsyncDisposable {
  readonly server: ApiServer;
  readonly client: ApiClient;
  readonly hasFinalizer: boolean;
  /** The names of the ConfigMaps that are not ready. */
  readonly unready = new Set<string>();
  readonly faults = { failures: 0, lateWrites: 0, rivals: 0 };
  readonly problems: string[] = [];
  /** All operators that ever ran. */
  readonly operators: PageOperator[] = [];
  operator!: PageOperator;
  /** The states in which pages were reconciled last, by name. */
  readonly #seen = new Map<string, string>();
  /** The pages that are reconciled now. */
  readonly #running = new Set<string>();
  /** The pages, by uid, from which somebody took the finalizer. Before it is back they may go at once, and nobody cleans up. */
  readonly #stripped = new Set<string>();
  /** The names of pages that went without a whole cleanup. The next page of the name, and its cleanup, takes on what they left. */
  readonly #uncleaned = new Set<string>();
  /** The ConfigMaps, by uid, that were made while two operators ran. A page may go before the one that stays has seen them. */
  readonly #ofRivals = new Set<string>();

  private constructor(server: ApiServer, hasFinalizer: boolean) {
    this.server = server;
    this.hasFinalizer = hasFinalizer;
    this.client = new ApiClient(createConnection({ url: server.url, token: server.token }));
  }

  static async open({ hasFinalizer }: { hasFinalizer: boolean }): Promise<World> {
    const world = new World(await startPageServer({ simulate: true }), hasFinalizer);
    await world.startOperator();
    return world;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.operator.operator.stop();
    await this.client.close();
    await this.server.close();
  }

  #createOperator({ dependents = [], ...options }: PageOperatorOptions): PageOperator {
    const deletion = this.hasFinalizer ? ("ordered" as const) : ("garbageCollected" as const);
    const access = this.server.as(USER, { groups: ["system:masters"] });
    const created = createPageOperator(access, {
      dependents: dependents.map((each) => ({ ...each, deletion })),
      retry: { initialIntervalMs: 10, maxIntervalMs: 50, maxRetries: -1 },
      ...options,
    });
    this.operators.push(created);
    return created;
  }

  async startOperator(): Promise<void> {
    const desired = ({ primary }: { primary: Page }) => configOf(configNameOf(primary), primary.spec.text);
    const readyPostcondition = ({ live }: { live: object | undefined }) =>
      live !== undefined && this.isReady(live as Config);
    this.operator = this.#createOperator({
      dependents: [configMapOf("text", { desired, timeoutMs: STEP_TIMEOUT_MS, readyPostcondition })],
      reconciler: { reconcile: ({ primary }: { primary: Page }) => this.#reconcile(primary) },
    });
    await this.operator.operator.start();
  }

  async #reconcile({ metadata, spec }: Page) {
    const { name } = metadata;
    if (this.#running.has(name)) this.problems.push(`${name} is reconciled twice at once`);
    this.#running.add(name);
    this.#seen.set(name, stateOf({ metadata, spec }));
    await sleep(Math.random() * 20);
    this.#running.delete(name);
    if (this.faults.failures > 0) {
      this.faults.failures--;
      throw new Error("a failure on request");
    }
    return updateStatus({ text: spec.text });
  }

  page(name: string): Promise<Page | undefined> {
    return this.client.get(Page, refOf(name));
  }

  /** Returns the ConfigMaps of pages, or of one. */
  async configs(page?: string): Promise<Config[]> {
    const all = await this.client.list<Config>(ConfigMap, { namespace: "default" });
    return all.filter((each) => each.metadata.name.endsWith("-text") && [undefined, pageNameOf(each)].includes(page));
  }

  readonly isReady = ({ metadata }: Config): boolean => !this.unready.has(metadata.name);

  /** Lets the server make writes when a step has long given them up: the next reconcile is under way, or the page is gone. */
  delayWrites(which: { path: string; times: number }): void {
    this.faults.lateWrites += which.times;
    this.server.faults.add({ user: USER, verb: "patch", delayMs: LATE_MS, ...which });
  }

  /** Lets nothing more go wrong. */
  async calm(): Promise<void> {
    this.faults.failures = 0;
    this.server.faults.clear();
    const unready = [...this.unready];
    this.unready.clear();
    for (const name of unready)
      await attempt(() =>
        this.client.mergePatch(ConfigMap, refOf(name), { metadata: { annotations: { is: "ready" } } }),
      );
    if (this.faults.lateWrites > 0) await sleep(LATE_MS);
  }

  create(name: string, text: string): Promise<void> {
    return attempt(() => this.client.create(Page, { metadata: refOf(name), spec: { text } }));
  }

  edit(name: string, spec: Partial<Page["spec"]>): Promise<void> {
    return attempt(() => this.client.mergePatch(Page, refOf(name), { spec }));
  }

  async remove(name: string): Promise<void> {
    const page = await this.page(name);
    if (page === undefined) return;
    const { isGone } = await this.client.delete(Page, refOf(name));
    const { uid = "", deletionTimestamp } = page.metadata;
    if (isGone && this.#stripped.has(uid)) this.#uncleaned.add(name);
    // The cleanup of this page does not wait for a late write of an earlier one that went without.
    if (!isGone && deletionTimestamp === undefined && this.faults.lateWrites === 0) this.#uncleaned.delete(name);
  }

  async takeOffFinalizer(name: string): Promise<void> {
    const page = await this.page(name);
    if (page === undefined) return;
    if (page.metadata.deletionTimestamp === undefined) this.#stripped.add(page.metadata.uid!);
    else this.#uncleaned.add(name);
    await attempt(() => this.client.mergePatch(Page, refOf(name), { metadata: { finalizers: null } }));
  }

  /** Runs an older version beside the operator, which knows nothing of other names. */
  async runOlder(): Promise<void> {
    const before = new Set((await this.configs()).map(({ metadata }) => metadata.uid));
    // Either may write what the other one has written just before.
    this.faults.rivals += NAMES.length;
    // Or clean up a page that the other one reconciles.
    for (const { metadata } of await this.client.list(Page))
      if (metadata.deletionTimestamp !== undefined) this.#uncleaned.add(metadata.name);
    // Or make what the other one gives up making, which takes it for its own then, and does not wait for its late write.
    if (this.faults.lateWrites > 0) for (const name of NAMES) this.#uncleaned.add(name);
    const desired = ({ primary }: { primary: Page }) => configOf(`${primary.metadata.name}-text`, primary.spec.text);
    const older = this.#createOperator({
      dependents: [configMapOf("text", { desired })],
      reconciler: { reconcile: () => {} },
    });
    await older.operator.start();
    await sleep(40);
    await older.operator.stop();
    for (const { metadata } of await this.configs()) if (!before.has(metadata.uid)) this.#ofRivals.add(metadata.uid!);
  }

  /** Returns what is not yet, or never will be, as it should be. */
  async differences(): Promise<string[]> {
    const pages = await this.client.list(Page);
    const configs = await this.configs();
    const wanted = new Set(pages.map(configNameOf));
    const isLeftOver = (config: Config) => !wanted.has(config.metadata.name) && !this.#mayStay(config, pages);
    return [
      ...pages.flatMap((page) => this.#differencesOf(page, configs)),
      ...configs.filter(isLeftOver).map(({ metadata }) => `${metadata.name} is left over`),
    ];
  }

  #differencesOf(page: Page, configs: readonly Config[]): string[] {
    const { metadata, spec, status } = page;
    const { name, finalizers = [] } = metadata;
    const seen = this.#seen.get(name);
    const config = configs.find((each) => each.metadata.name === configNameOf(page));
    const finalizer = this.hasFinalizer ? FINALIZER : "";
    return [
      ...(metadata.deletionTimestamp === undefined ? [] : [`${name} is not gone`]),
      ...(finalizers.join() === finalizer ? [] : [`${name} has the finalizers "${finalizers.join()}"`]),
      ...(seen === stateOf(page) ? [] : [`${name}: ${seen} was seen instead of ${stateOf(page)}`]),
      ...(status?.text === spec.text ? [] : [`${name}: status ${status?.text} instead of ${spec.text}`]),
      ...(config?.data?.text === spec.text ? [] : [`${configNameOf(page)} does not say ${spec.text}`]),
    ];
  }

  // The garbage collector leaves nothing. What a page left that had a finalizer is found only through a page of that name.
  #mayStay(config: Config, pages: readonly Page[]): boolean {
    const name = pageNameOf(config);
    if (!this.hasFinalizer || pages.some(({ metadata }) => metadata.name === name)) return false;
    return this.#uncleaned.has(name) || this.#ofRivals.has(config.metadata.uid!);
  }
}

const configOf = (name: string, text: string) => ({ metadata: { name }, data: { text } });
