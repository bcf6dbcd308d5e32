// What people, other controllers, the network and the operator itself do in the model-based tests of an operator.
import fc from "../../../../support/fast-check.js";
import { isThorough } from "../../../../support/runs.js";
import { sleep } from "#runtime/base/wait.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ConfigMap, Page } from "../../page-operator.js";
import { attempt, configNameOf, NAMES, refOf, USER as user, type Config, type World } from "./world.js";

/** Each of them makes the operator wait longer until it watches again. */
const MAX_LOST_WATCHES = 2;
/** The third write of one content is a loop; edits just before may bring a few contents. */
const MAX_UNDONE = 12;
/** So soon an operator answers what happens, unless it waits on purpose. */
const SOON_MS = 100;

/** What a command may still do. */
interface Model {
  lostWatches: number;
}

class Command implements fc.AsyncCommand<Model, World> {
  readonly #name: string;
  readonly #run: (world: World) => unknown;
  readonly #losesWatch: boolean;

  constructor(name: string, run: (world: World) => unknown, { losesWatch = false } = {}) {
    this.#name = name;
    this.#run = run;
    this.#losesWatch = losesWatch;
  }

  check({ lostWatches }: Readonly<Model>): boolean {
    return !this.#losesWatch || lostWatches < MAX_LOST_WATCHES;
  }

  async run(model: Model, world: World): Promise<void> {
    if (this.#losesWatch) model.lostWatches++;
    await this.#run(world);
  }

  toString(): string {
    return this.#name;
  }
}

let texts = 0;
export const freshText = () => `text ${++texts}`;
const freshWord = () => freshText().replace(" ", "-");
const named = (what: string, run: (world: World, name: string) => unknown) =>
  fc.constantFrom(...NAMES).map((name) => new Command(`${what} ${name}`, (world) => run(world, name)));
const plain = (what: string, run: (world: World) => unknown, options?: { losesWatch?: boolean }) =>
  fc.constant(new Command(what, run, options));

/** Does something to the ConfigMap that a page wants now. */
async function onConfig(world: World, name: string, run: (ref: ReturnType<typeof refOf>) => Promise<unknown>) {
  const page = await world.page(name);
  if (page !== undefined) await attempt(() => run(refOf(configNameOf(page))));
}

function isSoon(isSo: () => Promise<boolean>): Promise<boolean> {
  return waitFor("it is so", isSo, { timeoutMs: SOON_MS, intervalMs: 5 }).then(
    () => true,
    () => false,
  );
}

/** Undoes what the operator writes until that gives in, as it has to. */
async function writeAgainst(world: World, name: string): Promise<void> {
  const { client, problems } = world;
  await onConfig(world, name, async (ref) => {
    for (let undone = 0; undone < MAX_UNDONE; undone++) {
      await client.mergePatch(ConfigMap, ref, { data: { text: "theirs" } });
      const isUndone = async () => (await client.get(ConfigMap, ref))?.data?.["text"] !== "theirs";
      if (!(await isSoon(isUndone))) return;
    }
    problems.push(`${ref.name} was written ${MAX_UNDONE} times against somebody else`);
  });
}

/**
 * Renames the ConfigMap of a page to one that `hinder` keeps from being written or from being ready. Meanwhile the page keeps a ready one, if
 * it has one.
 */
async function renameHindered(world: World, name: string, hinder: (config: string) => unknown): Promise<void> {
  const page = await world.page(name);
  if (page === undefined) return;
  const { metadata, spec } = page;
  const more = freshWord();
  const successor = `${name}-${more}-text`;
  hinder(successor);
  const readyConfigs = async () => (await world.configs(name)).filter(world.isReady);
  const isMade = (each: Config) => each.metadata.name === configNameOf(page) && each.data?.text === spec.text;
  const wasMade =
    metadata.deletionTimestamp === undefined && (await isSoon(async () => (await readyConfigs()).some(isMade)));
  await world.edit(name, { more });
  for (let until = Date.now() + 5 * SOON_MS; wasMade && Date.now() < until; await sleep(2)) {
    const configs = await world.configs(name);
    const ready = configs.filter(world.isReady).map((each) => each.metadata.name);
    if (ready.includes(successor)) return;
    if (ready.length === 0) return void world.problems.push(`${configNameOf(page)} went before ${successor} was ready`);
    // It was written just now, and is not ready: what goes for it goes soon.
    if (configs.some((each) => each.metadata.name === successor)) until = Math.min(until, Date.now() + SOON_MS);
  }
}

const renameToRefused = (times: number) => (world: World, name: string) =>
  renameHindered(world, name, (config) => {
    const answer = { status: 403, reason: "Forbidden" };
    world.server.faults.add({ user, verb: "patch", path: `/configmaps/${config}`, times, answer });
  });

/** Lets the server make the ConfigMap of a page when the page is already deleted. */
async function removeWithLateWrite(world: World, name: string): Promise<void> {
  const more = freshWord();
  world.delayWrites({ path: `/configmaps/${name}-${more}-text`, times: 1 });
  await world.edit(name, { more });
  await sleep(SOON_MS);
  await world.remove(name);
}

export const commands = [
  named("create", (world, name) => world.create(name, freshText())),
  named("edit", (world, name) => world.edit(name, { text: freshText() })),
  named("edit three times", async (world, name) => {
    for (let time = 0; time < 3; time++) await world.edit(name, { text: freshText() });
  }),
  named("delete", (world, name) => world.remove(name)),
  named("make anew", async (world, name) => {
    await world.remove(name);
    await world.create(name, freshText());
  }),
  named("label", ({ client }, name) =>
    attempt(() => client.mergePatch(Page, refOf(name), { metadata: { labels: { on: freshWord() } } })),
  ),
  named("foreign edit of the dependent", (world, name) =>
    onConfig(world, name, (ref) => world.client.mergePatch(ConfigMap, ref, { data: { text: freshText(), more: "x" } })),
  ),
  named("foreign deletion of the dependent", (world, name) =>
    onConfig(world, name, (ref) => world.client.delete(ConfigMap, ref)),
  ),
  named("take off the finalizer", (world, name) => world.takeOffFinalizer(name)),
  plain("take off all finalizers", async (world) => {
    for (const name of NAMES) await world.takeOffFinalizer(name);
  }),
  named("write against the operator", writeAgainst),
  named("rename the dependent", (world, name) => world.edit(name, { more: freshWord() })),
  named("rename the dependent to what is refused at first", renameToRefused(2)),
  named("rename the dependent to what is refused", renameToRefused(Infinity)),
  named("rename the dependent to what is not ready", (world, name) =>
    renameHindered(world, name, (config) => world.unready.add(config)),
  ),
  named("status of somebody else", ({ client }, name) =>
    attempt(() => client.apply(Page, statusOf(name), { fieldManager: "other", subresource: "status" })),
  ),
  plain("fail twice", ({ faults }) => void (faults.failures += 2)),
  plain("drop the watches", ({ server }) => server.faults.cutWatches({ user, at: "next-event" }), { losesWatch: true }),
  plain("end the watches", ({ server }) => server.faults.endWatches({ user })),
  plain("expire the watches", ({ server }) => server.faults.expireWatches({ user }), { losesWatch: true }),
  plain(
    "forget the history",
    ({ server }) => {
      server.faults.compact();
      server.faults.cutWatches({ user });
    },
    { losesWatch: true },
  ),
  plain("silence for a while", ({ server }) => {
    const held = server.faults.holdWatches({ user });
    setTimeout(() => held.release(), 60);
  }),
  plain("events told twice for a while", ({ server }) => {
    const told = server.faults.duplicateEvents({ user });
    setTimeout(() => told.release(), 60);
  }),
  plain("events in another order for a while", ({ server }) => {
    const told = server.faults.reorderEvents({ user });
    setTimeout(() => told.release(), 60);
  }),
  plain(
    "dead watches, until their connections break",
    async ({ server }) => {
      server.faults.silenceWatches({ user }).release();
      await sleep(60);
      server.faults.cutWatches({ user });
    },
    { losesWatch: true },
  ),
  plain("old lists for a while", ({ server }) => {
    const rule = server.faults.add({ user, verb: ["list", "watch"], stale: true });
    setTimeout(() => rule.remove(), 200);
  }),
  plain("a clock that jumps", ({ server }) => server.faults.shiftClock(Math.round((Math.random() - 0.5) * 7_200_000))),
  plain("restart the API server", ({ server }) => server.faults.restart({ downMs: 20 }), { losesWatch: true }),
  plain("slow lists", ({ server }) => void server.faults.add({ user, verb: ["list", "watch"], delayMs: 80, times: 2 })),
  plain(
    "lose an answer",
    ({ server }) => void server.faults.add({ user, verb: "patch", path: "default", times: 1, loseAnswer: true }),
  ),
  ...(isThorough
    ? [
        plain("writes that are late", (world) => world.delayWrites({ path: "/configmaps/", times: 2 })),
        named("delete with a late write", removeWithLateWrite),
      ]
    : []),
  plain("an older version beside it", (world) => world.runOlder()),
  plain("restart the operator", async (world) => {
    await world.operator.operator.stop();
    await world.startOperator();
  }),
  plain("pause", () => sleep(15)),
];

const statusOf = (name: string): object & { metadata: { name: string; namespace: string } } => {
  const object = { metadata: refOf(name), status: { observedGeneration: 1 } };
  return object;
};
