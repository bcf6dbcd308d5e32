// Dependent reconcilers over objects in memory, which record what is asked of them, so that the order, the number and the overlap of steps can be told.
import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { createLogger } from "#runtime/base/logger.js";
import { Semaphore } from "#runtime/base/wait.js";
import {
  type DependentReconciler,
  type DependentRun,
  type Live,
  ReconcileNotes,
  type Wanted,
} from "#runtime/workflow/dependent-reconciler.js";
import { buildPlan } from "#runtime/workflow/plan.js";
import { type RunOptions, type WorkflowResult, cleanupWorkflow, reconcileWorkflow } from "#runtime/workflow/run.js";
import type {
  Condition,
  DependentDefinition,
  ExternalDependent,
  WorkflowDefinition,
} from "#runtime/workflow/workflow-definition.js";
import { assert } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { page } from "./graphs.js";

/** An object of a fake cluster. */
export interface Thing {
  readonly id: string;
  readonly item?: string;
  readonly value: unknown;
}

/** What a dependent of a fake cluster may be besides what every dependent is. */
export interface FakeTraits {
  readonly garbageCollected?: boolean;
  readonly canWrite?: boolean;
  readonly canRemove?: boolean;
}

/** A dependent whose objects are in memory. */
export type FakeDependent = Omit<Partial<ExternalDependent>, "desired"> & {
  readonly name: string;
  readonly desired?: unknown;
} & FakeTraits;

export const holds: Condition<unknown, unknown> = () => true;
export const fails: Condition<unknown, unknown> = () => false;

/** The objects of one primary, and the reconcilers of its dependents. */
export class FakeCluster {
  /** Everything that they were asked: `write a`, and `written a` when that is done. */
  readonly history: string[] = [];
  readonly clock = new VirtualClock();
  /** What writing or removing an object fails with, by its id. */
  readonly failures = new Map<string, unknown>();
  /** Is told what is about to be written or removed. */
  onChange: (what: "write" | "remove", id: string) => void = () => {};
  /** How many turns each write and removal takes, one after another. */
  pauses: readonly number[] = [0];
  /** Ends a turn. Default: one of the queue of microtasks. */
  turn: () => Promise<void> = () => Promise.resolve();
  /** How many writes and removals were under way at once at most. */
  mostAtOnce = 0;
  readonly #things = new Map<string, Map<string, Thing>>();
  #atOnce = 0;
  #calls = 0;

  /** The objects of a dependent, by their ids. */
  of(name: string): Map<string, Thing> {
    const things = this.#things.get(name) ?? new Map<string, Thing>();
    this.#things.set(name, things);
    return things;
  }

  /** Puts an object there, as somebody else would. */
  put(name: string, thing: Partial<Thing> = {}): void {
    const id = thing.id ?? (thing.item === undefined ? name : `${name}[${thing.item}]`);
    this.of(name).set(id, { id, value: "of somebody else", ...thing });
  }

  /** The ids of all objects. */
  get ids(): string[] {
    return [...this.#things.values()].flatMap((things) => [...things.keys()]).sort();
  }

  /** What was written, in the order in which it began. */
  get writes(): string[] {
    return this.history.filter((event) => event.startsWith("write ")).map((event) => event.slice("write ".length));
  }

  /** What was removed, in the order in which it began. */
  get removals(): string[] {
    return this.history.filter((event) => event.startsWith("remove ")).map((event) => event.slice("remove ".length));
  }

  /** Does a write or a removal. */
  async change(what: "write" | "remove", id: string, effect: () => void): Promise<void> {
    this.onChange(what, id);
    this.history.push(`${what} ${id}`);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    for (let turns = this.pauses[this.#calls++ % this.pauses.length] ?? 0; turns >= 0; turns--) await this.turn();
    this.#atOnce--;
    if (this.failures.has(id)) throw this.failures.get(id);
    effect();
    this.history.push(`${what === "write" ? "written" : "removed"} ${id}`);
  }
}

class FakeReconciler implements DependentReconciler {
  readonly source = {
    activate: async (primary: ObjectKey) => void this.#cluster.history.push(`activate ${this.#name} for ${primary}`),
    deactivate: async (primary: ObjectKey) =>
      void this.#cluster.history.push(`deactivate ${this.#name} for ${primary}`),
  };
  readonly capabilities: { readonly write: boolean; readonly remove: boolean };
  readonly isCollected: () => boolean;
  readonly #name: string;
  readonly #cluster: FakeCluster;

  constructor(
    { name, garbageCollected = false, canWrite = true, canRemove = canWrite }: FakeDependent,
    cluster: FakeCluster,
  ) {
    this.#name = name;
    this.#cluster = cluster;
    this.isCollected = () => garbageCollected;
    this.capabilities = { write: canWrite, remove: canRemove };
  }

  complete(_run: DependentRun, desired: unknown, item?: string): Wanted {
    const { id = item === undefined ? this.#name : `${this.#name}[${item}]`, ...rest } = desired as Partial<Thing>;
    const key = item === undefined ? {} : { item };
    return { id, object: { id, ...key, value: rest } satisfies Thing };
  }

  find(_run: unknown, wanted?: Wanted): Live | undefined {
    const things = this.#cluster.of(this.#name);
    const found = wanted === undefined ? [...things.values()][0] : things.get(wanted.id);
    return found === undefined ? undefined : { object: found };
  }

  findItems(): ReadonlyMap<string, Live> {
    const things = [...this.#cluster.of(this.#name).values()];
    return new Map(things.map((thing) => [thing.item ?? thing.id, { object: thing }]));
  }

  async write(_run: DependentRun, { id, object }: Wanted, live: Live | undefined) {
    if (live !== undefined && isDeepStrictEqual(live.object, object)) return { kind: "unchanged" } as const;
    await this.#cluster.change("write", id, () => this.#cluster.of(this.#name).set(id, object as Thing));
    return { kind: live === undefined ? "created" : "updated" } as const;
  }

  async remove(_run: DependentRun, { object }: Live): Promise<void> {
    const { id } = object as Thing;
    await this.#cluster.change("remove", id, () => this.#cluster.of(this.#name).delete(id));
  }
}

/** A workflow on a fake cluster, for one primary. */
export interface FakeWorkflow {
  readonly cluster: FakeCluster;
  reconcile(signal?: AbortSignal): Promise<WorkflowResult>;
  cleanup(): Promise<WorkflowResult>;
}

// All that a run itself reads of the context.
const contextOf = (signal: AbortSignal) =>
  ({ signal, logger: createLogger("silent") }) as unknown as RunOptions["context"];

/** Creates a workflow; its objects are in `cluster`. */
export function createWorkflow(
  dependents: readonly FakeDependent[],
  cluster: FakeCluster = new FakeCluster(),
  { maxConcurrency = 50 }: Pick<WorkflowDefinition, "maxConcurrency"> = {},
): FakeWorkflow {
  const definitions = dependents.map(definitionOf);
  const reconcilers = new Map(
    definitions.map((each, index) => [each, new FakeReconciler(dependents[index]!, cluster)]),
  );
  const primary: KubernetesObject = {
    apiVersion: "example.com/v1",
    kind: "Page",
    metadata: { name: "one", namespace: "home", uid: "u1" },
  };
  const options: RunOptions = {
    plan: buildPlan({ primary: page, dependents: definitions }, (each) => reconcilers.get(each)!),
    primary,
    context: contextOf(new AbortController().signal),
    slots: new Semaphore(maxConcurrency),
    reconcile: {
      ...{ definition: page, notes: new ReconcileNotes(), clock: cluster.clock },
      track: async (_, task) => task(),
    },
  };
  const deleted = { ...primary, metadata: { ...primary.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  return {
    cluster,
    reconcile: (signal) =>
      reconcileWorkflow(signal === undefined ? options : { ...options, context: contextOf(signal) }),
    cleanup: () => cleanupWorkflow({ ...options, primary: deleted }),
  };
}

/** Creates the reconciler of a dependent whose objects are in `cluster`. */
export function createFakeReconciler(dependent: FakeDependent, cluster: FakeCluster): DependentReconciler {
  return new FakeReconciler(dependent, cluster);
}

/** Returns the definition of a dependent whose objects are in memory. */
export function definitionOf({ name, dependsOn = [], desired, ...rest }: FakeDependent): DependentDefinition {
  const { garbageCollected = false, canWrite = true, canRemove = canWrite, ...definition } = rest;
  // The reconciler does not call them; that they are there says what can be done.
  const needsCleanup = canRemove && !garbageCollected;
  const functions = { ...(canWrite ? { create: () => ({}) } : {}), ...(needsCleanup ? { delete: () => {} } : {}) };
  const returned: ExternalDependent["desired"] = (args) =>
    typeof desired === "function" ? (desired(args) as unknown) : (desired ?? {});
  return {
    name,
    dependsOn,
    source: { kind: "inbound" },
    idOf: () => "",
    ...functions,
    ...(canWrite ? { desired: returned } : {}),
    ...definition,
  };
}

/** Creates a bulk dependent of items that are as their keys. */
export function bulkOf(
  name: string,
  keys: readonly string[] | (() => readonly string[]),
  rest: Partial<FakeDependent> = {},
): FakeDependent {
  const desired = () =>
    Object.fromEntries((typeof keys === "function" ? keys() : keys).map((key) => [key, { of: `${name} ${key}` }]));
  return { name, bulk: {}, desired, ...rest };
}

/** What a condition of an item is asked. */
export type Asked = { readonly item?: string; readonly live: Partial<Thing> | undefined };

/** A condition that holds for these items. */
export const only =
  (...keys: string[]) =>
  ({ item }: Asked) =>
    keys.includes(item ?? "");

/** Returns what became of the items of a dependent. */
export function itemsOf(result: WorkflowResult, name: string): { [key: string]: string } {
  const items = result.dependents[name]?.items ?? {};
  return Object.fromEntries(
    Object.entries(items).map(([key, item]) => [
      key,
      item.kind === "waiting" ? `waiting for ${item.for.join()}` : item.kind,
    ]),
  );
}

/** Checks that one event came before another. */
export function before({ history }: FakeCluster, first: string, second: string): void {
  const [end, begin] = [history.indexOf(first), history.indexOf(second)];
  assert.ok(end !== -1 && begin !== -1 && end < begin, `${first} is before ${second}: ${history.join(", ")}`);
}
