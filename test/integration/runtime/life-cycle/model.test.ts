// An operator that is left alone ends where it should, whatever happened to it before.
//
// Random interleavings of what people, other controllers, the network and the operator itself do. TEST_SEED and MODEL_RUNS give
// other and more of them; the time between the commands is real, so a failure may need more than one attempt to come back.
import fc from "../../../support/fast-check.js";
import type { ApiServer } from "#apiserver/index.js";
import { isApiError } from "#runtime/base/errors.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { sleep } from "#runtime/base/clock.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connect/connection.js";
import { waitFor } from "#apiserver/wait-for.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { suite } from "../../../support/suite.js";
import { runs, seed } from "../../../support/runs.js";
import {
  ConfigMap,
  configMapOf,
  createPageOperator,
  Page,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const LANES = runs(16);
const RUNS_OF_A_LANE = Number(process.env["MODEL_RUNS"] ?? 1);
const NAMES = ["a", "b", "c"];
/** Each of them makes the operator wait longer until it watches again. */
const MAX_LOST_WATCHES = 2;
const QUIET_MS = 150;
/** Far longer than a write takes on a busy machine: an operator of which each write is given up ends nowhere. */
const STEP_TIMEOUT_MS = 1_500;
/** All lanes run in one process, and share its time. */
const LANES_AT_ONCE = 4;

const refOf = (name: string) => ({ name, namespace: "default" });

/** What a command may still do. */
interface Model {
  lostWatches: number;
}

/** The system, and what was seen of it. */
interface Real {
  readonly server: ApiServer;
  readonly client: ApiClient;
  readonly faults: { failures: number; lateWrites: number; rivals: number };
  readonly seen: Map<string, string>;
  readonly problems: string[];
  /** The pages that may have gone without a cleanup. */
  readonly unfinished: Set<string>;
  /** All operators that ever ran. */
  readonly operators: PageOperator[];
  operator: PageOperator;
  createOperator(options: PageOperatorOptions): PageOperator;
  startOperator(): Promise<PageOperator>;
}

class Command implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #run: (real: Real) => unknown;
  readonly #losesWatch: boolean;

  constructor(name: string, run: (real: Real) => unknown, { losesWatch = false } = {}) {
    this.#name = name;
    this.#run = run;
    this.#losesWatch = losesWatch;
  }

  check({ lostWatches }: Readonly<Model>): boolean {
    return !this.#losesWatch || lostWatches < MAX_LOST_WATCHES;
  }

  async run(model: Model, real: Real): Promise<void> {
    if (this.#losesWatch) model.lostWatches++;
    await this.#run(real);
  }

  toString(): string {
    return this.#name;
  }
}

// What somebody does may come too early or too late: the object is there already, or not any more, or is going.
async function attempt(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isApiError(error, 404) && !isApiError(error, 409) && !isApiError(error, 403)) throw error;
  }
}

const create = ({ client }: Real, name: string, text: string) =>
  attempt(() => client.create(Page, { metadata: refOf(name), spec: { text } }));
const edit = ({ client }: Real, name: string, text: string) =>
  attempt(() => client.mergePatch(Page, refOf(name), { spec: { text } }));
const remove = ({ client }: Real, name: string) => attempt(() => client.delete(Page, refOf(name)));

let texts = 0;
const freshText = () => `text ${++texts}`;
const named = (what: string, run: (real: Real, name: string) => unknown) =>
  fc.constantFrom(...NAMES).map((name) => new Command(`${what} ${name}`, (real) => run(real, name)));
const plain = (what: string, run: (real: Real) => unknown, options?: { losesWatch?: boolean }) =>
  fc.constant(new Command(what, run, options));

const commands = [
  named("create", (real, name) => create(real, name, freshText())),
  named("edit", (real, name) => edit(real, name, freshText())),
  named("edit three times", async (real, name) => {
    for (let time = 0; time < 3; time++) await edit(real, name, freshText());
  }),
  named("delete", remove),
  named("make anew", async (real, name) => {
    await remove(real, name);
    await create(real, name, freshText());
  }),
  named("label", ({ client }, name) =>
    attempt(() =>
      client.mergePatch(Page, refOf(name), { metadata: { labels: { on: freshText().replace(" ", "-") } } }),
    ),
  ),
  named("foreign edit of the dependent", ({ client }, name) =>
    attempt(() => client.mergePatch(ConfigMap, refOf(`${name}-text`), { data: { text: freshText(), more: "x" } })),
  ),
  named("foreign deletion of the dependent", ({ client }, name) =>
    attempt(() => client.delete(ConfigMap, refOf(`${name}-text`))),
  ),
  named("take off the finalizer", ({ client, unfinished }, name) => {
    unfinished.add(name);
    return attempt(() => client.mergePatch(Page, refOf(name), { metadata: { finalizers: null } }));
  }),
  named("write against the operator", async ({ client }, name) => {
    for (let time = 0; time < 4; time++) {
      await attempt(() => client.mergePatch(ConfigMap, refOf(`${name}-text`), { data: { text: "theirs" } }));
      await sleep(15);
    }
  }),
  named("rename the dependent", ({ client }, name) =>
    attempt(() => client.mergePatch(Page, refOf(name), { spec: { more: freshText().replace(" ", "-") } })),
  ),
  named("rename the dependent to what is refused at first", ({ client, server }, name) => {
    const more = freshText().replace(" ", "-");
    const answer = { status: 403, reason: "Forbidden" };
    server.faults.add({ verb: "patch", path: `/configmaps/${name}-${more}-text`, times: 2, answer });
    return attempt(() => client.mergePatch(Page, refOf(name), { spec: { more } }));
  }),
  named("status of somebody else", ({ client }, name) =>
    attempt(() => client.apply(Page, statusOf(name), { fieldManager: "other", subresource: "status" })),
  ),
  plain("fail twice", ({ faults }) => void (faults.failures += 2)),
  plain("drop the watches", ({ server }) => server.faults.cutWatches({ at: "next-event" }), { losesWatch: true }),
  plain("end the watches", ({ server }) => server.faults.endWatches()),
  plain("expire the watches", ({ server }) => server.faults.expireWatches(), { losesWatch: true }),
  plain(
    "forget the history",
    ({ server }) => {
      server.faults.compact();
      server.faults.cutWatches();
    },
    { losesWatch: true },
  ),
  plain("silence for a while", ({ server }) => {
    const held = server.faults.holdWatches();
    setTimeout(() => held.release(), 60);
  }),
  plain("events told twice for a while", ({ server }) => {
    const told = server.faults.duplicateEvents();
    setTimeout(() => told.release(), 60);
  }),
  plain("events in another order for a while", ({ server }) => {
    const told = server.faults.reorderEvents();
    setTimeout(() => told.release(), 60);
  }),
  plain(
    "dead watches, until their connections break",
    async ({ server }) => {
      server.faults.silenceWatches().release();
      await sleep(60);
      server.faults.cutWatches();
    },
    { losesWatch: true },
  ),
  plain("old lists for a while", ({ server }) => {
    const rule = server.faults.add({ verb: ["list", "watch"], stale: true });
    setTimeout(() => rule.remove(), 200);
  }),
  plain("a clock that jumps", ({ server }) => server.faults.shiftClock(Math.round((Math.random() - 0.5) * 7_200_000))),
  plain("restart the API server", ({ server }) => server.faults.restart({ downMs: 20 }), { losesWatch: true }),
  plain("slow lists", ({ server }) => void server.faults.add({ verb: ["list", "watch"], delayMs: 80, times: 2 })),
  plain(
    "lose an answer",
    ({ server }) => void server.faults.add({ verb: "patch", path: "default", times: 1, loseAnswer: true }),
  ),
  // Longer than a step may take: the server makes the write when the next reconcile is under way, or the page is gone.
  plain("writes that are late", ({ server, faults }) => {
    faults.lateWrites += 2;
    server.faults.add({ verb: "patch", path: "/configmaps/", delayMs: 2 * STEP_TIMEOUT_MS, times: 2 });
  }),
  // While both run, either may write what the other one has written just before, or clean up a page that the other one reconciles.
  plain("an older version beside it", async (real) => {
    real.faults.rivals += NAMES.length;
    for (const name of NAMES) real.unfinished.add(name);
    const desired = ({ primary }: { primary: Page }) => configOf(primary.metadata.name, primary.spec.text);
    await using older = real.createOperator({
      dependents: [configMapOf("text", { desired })],
      reconciler: { reconcile: () => {} },
    });
    await older.operator.start();
    await sleep(40);
  }),
  plain("restart the operator", async (real) => {
    await real.operator.operator.stop();
    real.operator = await real.startOperator();
  }),
  plain("pause", () => sleep(15)),
];

const nameOf = ({ metadata: { name }, spec: { more } }: Page) => (more === undefined ? name : `${name}-${more}`);
const configOf = (name: string, text: string) => ({ metadata: { name: `${name}-text` }, data: { text } });

const statusOf = (name: string): object & { metadata: { name: string; namespace: string } } => {
  const object = { metadata: refOf(name), status: { observedGeneration: 1 } };
  return object;
};

async function openReal(hasFinalizer: boolean): Promise<Real & AsyncDisposable> {
  const server = await startPageServer({ simulate: true });
  const client = new ApiClient(createConnection({ url: server.url, token: server.token }));
  const running = new Set<string>();
  const real: Real & AsyncDisposable = {
    server,
    client,
    faults: { failures: 0, lateWrites: 0, rivals: 0 },
    operators: [],
    seen: new Map(),
    problems: [],
    unfinished: new Set(),
    operator: undefined as never,
    createOperator({ dependents = [], ...options }) {
      const created = createPageOperator(server, {
        dependents: dependents.map((each) => ({
          ...each,
          deletion: hasFinalizer ? ("ordered" as const) : ("garbageCollected" as const),
        })),
        retry: { initialIntervalMs: 10, maxIntervalMs: 50, maxRetries: -1 },
        ...options,
      });
      real.operators.push(created);
      return created;
    },
    startOperator: async () => {
      const desired = ({ primary }: { primary: Page }) => configOf(nameOf(primary), primary.spec.text);
      const operator = real.createOperator({
        dependents: [configMapOf("text", { desired, timeoutMs: STEP_TIMEOUT_MS })],
        reconciler: { reconcile: ({ primary }: { primary: Page }) => reconcile(primary) },
      });
      await operator.operator.start();
      return operator;
    },
    async [Symbol.asyncDispose]() {
      await real.operator.operator.stop();
      await client.close();
      await server.close();
    },
  };
  const reconcile = async ({ metadata, spec }: Page) => {
    const { name } = metadata;
    if (running.has(name)) real.problems.push(`${name} is reconciled twice at once`);
    running.add(name);
    real.seen.set(name, stateOf({ metadata, spec }));
    await sleep(Math.random() * 20);
    running.delete(name);
    if (real.faults.failures > 0) {
      real.faults.failures--;
      throw new Error("a failure on request");
    }
    return updateStatus({ text: spec.text });
  };
  real.operator = await real.startOperator();
  return real;
}

const stateOf = ({ metadata, spec }: Pick<Page, "metadata" | "spec">) =>
  `${metadata.uid} generation ${metadata.generation} ${spec.text}`;

/** What is not yet, or never will be, as it should be. */
async function differencesOf({ client, seen, unfinished }: Real): Promise<string[]> {
  const pages = await client.list(Page);
  const configs = await client.list<KubernetesObject & { data?: { text?: string } }>(ConfigMap, {
    namespace: "default",
  });
  const wanted = new Map(pages.map((page) => [`${nameOf(page)}-text`, page.spec.text]));
  // Nobody looks for what a page left that went without a cleanup.
  const isOfPage = (name: string) => {
    const [page = ""] = name.split("-");
    return !unfinished.has(page) || pages.some(({ metadata }) => metadata.name === page);
  };
  const ours = configs.filter(({ metadata }) => metadata.name.endsWith("-text"));
  return [
    ...pages
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .map(({ metadata }) => `${metadata.name} is not gone`),
    ...pages
      .filter((page) => seen.get(page.metadata.name) !== stateOf(page))
      .map((page) => `${page.metadata.name}: ${seen.get(page.metadata.name)} was seen instead of ${stateOf(page)}`),
    ...pages
      .filter(({ spec, status }) => status?.text !== spec.text)
      .map(({ metadata, spec, status }) => `${metadata.name}: status ${status?.text} instead of ${spec.text}`),
    ...[...wanted]
      .filter(([name, text]) => ours.find(({ metadata }) => metadata.name === name)?.data?.text !== text)
      .map(([name, text]) => `${name} does not say ${text}`),
    ...ours
      .filter(({ metadata: { name } }) => !wanted.has(name) && isOfPage(name))
      .map(({ metadata }) => `${metadata.name} is left over`),
  ];
}

/** Waits until the controller keeps nothing for pages that are gone, and has nothing to do: a lost watch brings a deletion late. */
async function untilTidy({ client, operator, problems }: Real): Promise<void> {
  const pages = (await client.list(Page)).length;
  const counts = () => operator.operator.controller("page").counts();
  await waitFor(
    "nothing is left over",
    () => {
      const { states, timers, queued, running } = counts();
      return states <= pages && timers <= pages && queued === 0 && running === 0;
    },
    { timeoutMs: 20_000 },
  ).catch(() => problems.push(`${JSON.stringify(counts())} is kept for ${pages} pages`));
}

async function checkEnd(real: Real): Promise<void> {
  const { server, faults, problems } = real;
  faults.failures = 0;
  server.faults.clear();
  if (faults.lateWrites > 0) await sleep(2 * STEP_TIMEOUT_MS);
  let differences: string[] = [];
  await waitFor("all is as it should be", async () => (differences = await differencesOf(real)).length === 0, {
    timeoutMs: 20_000,
    intervalMs: 25,
  }).catch(() => problems.push(...differences));
  await untilTidy(real);
  const requests = () => real.operator.requests.length;
  for (let before = -1; before !== requests(); await sleep(QUIET_MS)) before = requests();
  problems.push(...(await differencesOf(real)).map((difference) => `after it was quiet: ${difference}`));
  // A write without an answer is made again, and one of the two changes nothing; a slow machine loses answers, too.
  const inVain = server.requests.filter(
    ({ changedNothing, query }) => changedNothing && query.includes("fieldManager=page"),
  );
  const unanswered = real.operators
    .flatMap(({ requests: lines }) => lines)
    .filter((line) => /^(PATCH|PUT|POST) .* undefined$/.test(line));
  if (inVain.length > unanswered.length + faults.rivals)
    problems.push(...inVain.map(({ method, path }) => `${method} ${path} changed nothing`), ...unanswered);
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

suite("an operator, left alone,", (test) => {
  for (const hasFinalizer of [false, true])
    test(
      hasFinalizer ? "has tidied up what it had to" : "has made and seen the last state of everything",
      async () => {
        const runLane = (lane: number) =>
          fc.assert(
            fc.asyncProperty(fc.commands(commands, { maxCommands: 25, size: "+2" }), async (sequence) => {
              await using real = await openReal(hasFinalizer);
              await fc.asyncModelRun(() => ({ model: { lostWatches: 0 }, real }), sequence);
              await checkEnd(real);
            }),
            // Smaller counterexamples take as long as the first one, and the timing is another one.
            { seed: seed + lane, numRuns: RUNS_OF_A_LANE, endOnFailure: true, includeErrorInReport: true },
          );
        const waiting = Array.from({ length: LANES }, (_, lane) => lane).values();
        const runWaiting = async () => {
          for (const lane of waiting) await runLane(lane);
        };
        const outcomes = await Promise.allSettled(Array.from({ length: LANES_AT_ONCE }, runWaiting));
        for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
      },
      { timeoutMs: 120_000 + RUNS_OF_A_LANE * 5_000 },
    );
});
