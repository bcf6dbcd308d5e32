// Random versions of an operator, one after the other: whatever came before, the last one leaves what it wants, and nothing else.
//
// Versions are stopped or killed at any time, and their pages change meanwhile. TEST_SEED gives other sequences.
import fc from "../../../support/fast-check.js";
import { seed } from "../../../support/runs.js";
import { sleep } from "#runtime/base/wait.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiServer } from "#apiserver/index.js";
import type { RemovedDependent } from "#runtime/workflow/workflow-definition.js";
import { suite } from "../../../support/suite.js";
import { attempt, refOf } from "../life-cycle/model/world.js";
import {
  ConfigMap,
  configMapOf,
  createPageOperator,
  Page,
  startPageServer,
  type DataObject,
  type PageOperator,
} from "../page-operator.js";

const LANES = 4;
const RUNS_OF_A_LANE = 2;
const PAGES = ["a", "b"] as const;
const QUIET_MS = 200;

/** What a version states of a dependent. */
interface Stated {
  name: string;
  /** Names that it had before. */
  former: string[];
  /** What the names of its objects end with. */
  suffix: string;
  deletion: "ordered" | "garbageCollected";
  /** Whether no object of it was ever without an owner. */
  isCollected: boolean;
  isBulk: boolean;
  isApplied: boolean;
  isConditional: boolean;
  /** Another one drops a field of its objects. */
  field: string;
}

interface Version {
  dependents: Stated[];
  removed: { [name: string]: RemovedDependent };
  count: number;
}

type Change = (version: Version, dependent: Stated) => void;

const changes: { readonly [what: string]: Change } = {
  add: (version) => void version.dependents.push(newDependent(version)),
  remove(version, dependent) {
    const deletion = dependent.isCollected && version.count % 2 === 0 ? "garbageCollected" : "ordered";
    for (const name of [dependent.name, ...dependent.former])
      version.removed[name] = { resource: ConfigMap.definition, deletion };
    version.dependents = version.dependents.filter((each) => each !== dependent);
  },
  rename(version, dependent) {
    dependent.former = [...dependent.former, dependent.name];
    dependent.name = `d${++version.count}`;
  },
  renameObjects: (version, dependent) => void (dependent.suffix = `s${++version.count}`),
  changeDeletion(_, dependent) {
    dependent.deletion = dependent.deletion === "ordered" ? "garbageCollected" : "ordered";
    dependent.isCollected = false;
  },
  changeForm: (_, dependent) => void (dependent.isBulk = !dependent.isBulk),
  // What is dropped of an object that was written otherwise before has to go, too.
  apply: (version, dependent) => void Object.assign(dependent, { isApplied: true, field: `f${++version.count}` }),
  changeCondition: (_, dependent) => void (dependent.isConditional = !dependent.isConditional),
  changeField: (version, dependent) => void (dependent.field = `f${++version.count}`),
};

function newDependent(version: Version): Stated {
  const name = `d${++version.count}`;
  const isCollected = version.count % 2 === 0;
  const deletion = isCollected ? "garbageCollected" : "ordered";
  const flags = { isBulk: version.count % 3 === 0, isApplied: version.count % 2 === 0, isConditional: false };
  return { name, former: [], suffix: name, deletion, isCollected, field: "f", ...flags };
}

/** Returns the objects that a dependent should have of a page, by the keys of their items. */
function wantedOf({ suffix, isBulk, field }: Stated, { metadata: { name }, spec }: Page) {
  const keys = isBulk ? [...(spec.more ?? "")].map((key) => `-${key}`) : [""];
  const objectOf = (key: string) => ({
    metadata: { name: `${name}-${suffix}${key}` },
    data: { [field]: "x", text: spec.text },
  });
  return Object.fromEntries(keys.map((key) => [key.slice(1), objectOf(key)]));
}

const isWanted = ({ isConditional }: Stated, { spec }: Page) => !isConditional || spec.more !== "";

function dependentOf(stated: Stated) {
  const { name, former, deletion, isBulk, isApplied } = stated;
  const desired = ({ primary }: { primary: Page }) => {
    const wanted = wantedOf(stated, primary);
    return isBulk ? wanted : wanted[""]!;
  };
  return configMapOf(name, {
    ...{ desired, deletion, serverSideApply: isApplied, movedFrom: former },
    ...(isBulk && { bulk: {} }),
    reconcilePrecondition: ({ primary }: { primary: Page }) => isWanted(stated, primary),
  });
}

/** Runs versions on a server, each as a user of its own: a version that is killed writes nothing any more. */
class Versions {
  readonly server: ApiServer;
  readonly #client: PageOperator["operator"]["client"];
  version: Version = { dependents: [], removed: {}, count: 0 };
  running: PageOperator | undefined;
  #users = 0;

  constructor(server: ApiServer) {
    this.server = server;
    this.#client = createPageOperator(server).operator.client;
  }

  async start(): Promise<void> {
    const { dependents, removed } = this.version;
    const access = this.server.as(`operator-${++this.#users}`, { groups: ["system:masters"] });
    this.running = createPageOperator(access, {
      dependents: dependents.map((each) => dependentOf({ ...each })),
      workflow: { removed: { ...removed } },
      retry: { initialIntervalMs: 10, maxIntervalMs: 50, maxRetries: -1 },
      statusConditions: "managed",
    });
    await this.running.operator.start();
  }

  async stop(isKilled: boolean): Promise<void> {
    if (isKilled) this.server.faults.add({ user: `operator-${this.#users}`, disconnect: true });
    await this.running?.operator.stop();
  }

  async edit(name: string, text: string, more: string): Promise<void> {
    const spec = { text, more };
    await attempt(() => this.#client.create(Page, { metadata: refOf(name), spec }));
    await attempt(() => this.#client.mergePatch(Page, refOf(name), { spec }));
  }

  remove(name: string): Promise<void> {
    return attempt(() => this.#client.delete(Page, refOf(name)));
  }

  /** Returns what is not as the last version wants it. */
  async differences(): Promise<string[]> {
    const pages = await this.#client.list(Page);
    const found = await this.#client.list<DataObject>(ConfigMap, { namespace: "default" });
    const configs = found.filter(({ metadata }) => metadata.name !== "kube-root-ca.crt");
    const { dependents, removed } = this.version;
    const wanted = pages.flatMap((page) =>
      dependents.filter((each) => isWanted(each, page)).flatMap((each) => Object.values(wantedOf(each, page))),
    );
    const told = new Map(wanted.map(({ metadata, data }) => [metadata.name, textOf(data)]));
    const isLeft = ({ metadata }: KubernetesObject) =>
      removed[metadata.annotations?.["gen-operator.dev/dependent"] ?? ""]?.deletion === "garbageCollected" &&
      pages.some(({ metadata: { uid } }) => metadata.ownerReferences?.[0]?.uid === uid);
    const actual = new Map(configs.map(({ metadata, data = {} }) => [metadata.name, textOf(data)]));
    return [
      ...pages.flatMap(problemOf),
      ...[...told].flatMap(([name, text]) =>
        actual.get(name) === text ? [] : `${name} has ${actual.get(name)} instead of ${text}`,
      ),
      ...configs
        .filter((each) => !told.has(each.metadata.name) && !isLeft(each))
        .map((each) => `${each.metadata.name} is left`),
    ];
  }

  async close(): Promise<void> {
    await this.stop(false);
    await this.#client.close();
    await this.server.close();
  }
}

const textOf = (data: { readonly [key: string]: string }) => JSON.stringify(Object.entries(data).sort());

function problemOf({ metadata, status }: Page): string[] {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (metadata.deletionTimestamp !== undefined) return [`${metadata.name} is not gone`];
  if (ready?.status === "True" && ready.observedGeneration === metadata.generation) return [];
  return [`${metadata.name} is not ready: ${ready?.message}`];
}

const change = fc.tuple(fc.constantFrom(...Object.keys(changes)), fc.nat(20));
const edit = fc.tuple(fc.constantFrom(...PAGES), fc.constantFrom("", "x", "xy"), fc.nat(9), fc.nat(60));
const upgrade = fc.record({
  changes: fc.array(change, { minLength: 1, maxLength: 4 }),
  edits: fc.array(edit, { maxLength: 4 }),
  lifeMs: fc.constantFrom(0, 30, 150, 400),
  isKilled: fc.boolean(),
});

async function expectAsDesired(versions: Versions, when: string): Promise<void> {
  let differences: string[] = [];
  const isAsDesired = async () => (differences = await versions.differences()).length === 0;
  await waitFor(when, isAsDesired, { timeoutMs: 15_000 }).catch(() => {});
  const { requests } = versions.running!;
  for (let before = -1; before !== requests.length && differences.length === 0; await sleep(QUIET_MS))
    before = requests.length;
  differences.push(...(await versions.differences()));
  if (differences.length > 0) throw new Error(`${when}: ${differences.join("\n")}`);
}

suite("random upgrades", (test) => {
  test.thorough(
    "leave exactly the objects that the last version desires",
    async () => {
      const runLane = (lane: number) =>
        fc.assert(
          fc.asyncProperty(fc.array(upgrade, { minLength: 5, maxLength: 7 }), async (upgrades) => {
            const versions = new Versions(await startPageServer({ simulate: true }));
            try {
              const { version } = versions;
              for (let count = 0; count < 2; count++) version.dependents.push(newDependent(version));
              for (const name of PAGES) await versions.edit(name, "first", "xy");
              await versions.start();
              for (const { changes: made, edits, lifeMs, isKilled } of upgrades) {
                for (const [page, more, number, waitMs] of edits) {
                  await (number === 0 ? versions.remove(page) : versions.edit(page, `text ${number}`, more));
                  await sleep(waitMs);
                }
                await sleep(lifeMs);
                await versions.stop(isKilled);
                for (const [what, at] of made) {
                  const dependent = version.dependents[at % Math.max(version.dependents.length, 1)];
                  changes[what]!(version, dependent ?? newDependent(version));
                }
                await versions.start();
              }
              await expectAsDesired(versions, "at the end");
              for (const name of PAGES) await versions.remove(name);
              await expectAsDesired(versions, "when the pages are deleted");
            } finally {
              await versions.close();
            }
          }),
          { seed: seed + lane, numRuns: RUNS_OF_A_LANE, endOnFailure: true, includeErrorInReport: true },
        );
      await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)));
    },
    { timeoutMs: 120_000 },
  );
});
