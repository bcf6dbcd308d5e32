// Write throughput of servers, measured in turns, because the speed of a machine changes within minutes.
import { waitFor } from "#apiserver/wait-for.js";
import { startWebhookServer, type WebhookServer } from "#test/support/api/webhook-server.js";
import { createLoadClient, inParallel, type LoadClient } from "../load-client.js";
import { quantile } from "../measurement.js";
import { applyDeployment, createConfigMap, createNamespace, installRole, installWebhook } from "./load-requests.js";
import { CLIENTS, SHARE, WARM_UP_CREATES } from "./load-size.js";
import type { RunningServer, StartServer } from "./running-server.js";

/** Writes per second, and CPU time per write in µs, after the warm-up. The `first` figures are those of a cold server. */
export interface WriteFigures {
  createsPerSecond: number;
  appliesPerSecond: number;
  createCpuUs: number;
  applyCpuUs: number;
  firstCreatesPerSecond: number;
  firstAppliesPerSecond: number;
}

/** The configuration of the server and of the requests. */
export interface WriteSetup {
  readonly isDurable: boolean;
  /** Whether requests are authorized by RBAC for a non-admin user and reviewed by a validating webhook. */
  readonly isGuarded: boolean;
}

const WARM_UP_APPLIES = 4_000 * SHARE;
const FIRST_CREATES = 2_000 * SHARE;
const FIRST_APPLIES = 500 * SHARE;
const ROUNDS = 6;
const CREATES = 2_000 * SHARE;
const APPLIES = 800 * SHARE;
const APPLIED_OBJECTS = 200 * SHARE;
const USER = "bench-user";

/** Starts the servers and measures them in turns; figures are medians of several rounds. */
export async function measureWrites(starts: readonly StartServer[], setup: WriteSetup): Promise<WriteFigures[]> {
  const writers: Writer[] = [];
  try {
    for (const start of starts) writers.push(await Writer.open(start, setup));
    for (const writer of writers) await writer.warmUp();
    for (let round = 0; round < ROUNDS; round++)
      for (const writer of round % 2 === 0 ? writers : writers.toReversed()) await writer.write();
    return writers.map((writer) => writer.figures());
  } finally {
    for (const writer of writers) await writer.close();
  }
}

interface Work {
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** Sends the writes to one server. */
class Writer {
  readonly #server: RunningServer;
  readonly #client: LoadClient;
  readonly #hook: WebhookServer | undefined;
  readonly #creates: Work[] = [];
  readonly #applies: Work[] = [];
  #firstCreates: Work | undefined;
  #firstApplies: Work | undefined;
  #created = 0;
  #applied = 0;

  private constructor(server: RunningServer, client: LoadClient, hook: WebhookServer | undefined) {
    this.#server = server;
    this.#client = client;
    this.#hook = hook;
  }

  static async open(start: StartServer, { isDurable, isGuarded }: WriteSetup): Promise<Writer> {
    const server = await start({ isDurable });
    const admin = createLoadClient(server.connection, 1);
    try {
      await createNamespace(admin, "writes");
      const hook = isGuarded ? await guard(admin) : undefined;
      const headers = { "impersonate-user": USER, "impersonate-group": "system:authenticated" };
      return new Writer(server, createLoadClient(server.connection, CLIENTS, isGuarded ? headers : {}), hook);
    } finally {
      admin.close();
    }
  }

  async warmUp(): Promise<void> {
    this.#firstCreates = await this.#create(FIRST_CREATES);
    this.#firstApplies = await this.#apply(FIRST_APPLIES);
    await this.#create(WARM_UP_CREATES);
    await this.#apply(WARM_UP_APPLIES);
  }

  async write(): Promise<void> {
    this.#creates.push(await this.#create(CREATES));
    this.#applies.push(await this.#apply(APPLIES));
  }

  figures(): WriteFigures {
    const median = (works: readonly Work[], read: (work: Work) => number): number => quantile(works.map(read), 0.5);
    return {
      createsPerSecond: median(this.#creates, ({ perSecond }) => perSecond),
      appliesPerSecond: median(this.#applies, ({ perSecond }) => perSecond),
      createCpuUs: median(this.#creates, ({ cpuUs }) => cpuUs),
      applyCpuUs: median(this.#applies, ({ cpuUs }) => cpuUs),
      firstCreatesPerSecond: this.#firstCreates!.perSecond,
      firstAppliesPerSecond: this.#firstApplies!.perSecond,
    };
  }

  async close(): Promise<void> {
    this.#client.close();
    await this.#hook?.[Symbol.asyncDispose]();
    await this.#server[Symbol.asyncDispose]();
  }

  #create(count: number): Promise<Work> {
    return this.#measure(count, () => createConfigMap(this.#client, "writes", this.#created++));
  }

  #apply(count: number): Promise<Work> {
    return this.#measure(count, () =>
      applyDeployment(this.#client, "writes", { index: this.#applied++, of: APPLIED_OBJECTS }),
    );
  }

  async #measure(count: number, write: () => Promise<unknown>): Promise<Work> {
    const [startedAt, before] = [performance.now(), this.#server.usage().cpuSeconds];
    await inParallel(count, CLIENTS, write);
    const seconds = (performance.now() - startedAt) / 1000;
    return { perSecond: count / seconds, cpuUs: ((this.#server.usage().cpuSeconds - before) * 1e6) / count };
  }
}

async function guard(admin: LoadClient): Promise<WebhookServer> {
  let asked = 0;
  const allow = () => {
    asked++;
    return { response: { allowed: true } };
  };
  // Storing the reviews would cost this process more than its requests.
  const hook = await startWebhookServer(allow, { keepsRequests: false });
  await installRole(admin, USER);
  await createNamespace(admin, "probe");
  await installWebhook(admin, hook);
  // kube-apiserver calls a new webhook only after a short delay.
  let probes = 0;
  await waitFor("the webhook is asked", async () => {
    await createConfigMap(admin, "probe", probes++);
    return asked > 0;
  });
  return hook;
}
