// What a pass over the items of a bulk dependent costs, in steps that are counted: it grows with the items no faster than they do.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import {
  CONTROLLER_LABEL,
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  linksOf,
  PRIMARY_INDEX,
} from "#runtime/base/primary-link.js";
import { Semaphore } from "#runtime/base/wait.js";
import { ObjectIndex, ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { DeferredDecoder } from "#runtime/client/object-decoder.js";
import type { ExternalDependent, KeptState, KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { type DependentReconciler, ReconcileNotes } from "#runtime/workflow/dependent-reconciler.js";
import { ExternalReconciler } from "#runtime/dependents/external-reconciler.js";
import { RememberedState, type Kept } from "#runtime/dependents/external-state.js";
import { KubernetesReconciler } from "#runtime/dependents/kubernetes-reconciler.js";
import { buildPlan } from "#runtime/workflow/plan.js";
import { type RunOptions, type WorkflowResult, cleanupWorkflow, reconcileWorkflow } from "#runtime/workflow/run.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { unusedClient } from "../../../support/runtime/clients.js";
import { assert, suite } from "../../../support/suite.js";
import { bulkOf, createFakeReconciler, definitionOf, FakeCluster, type FakeDependent } from "./fake-cluster.js";
import { page } from "./graphs.js";

const primary: KubernetesObject = {
  apiVersion: page.apiVersion,
  kind: page.kind,
  metadata: { name: "one", namespace: "home", uid: "u1" },
};
const [FEW, MANY] = [50, 500];
/** MANY are ten times as many as FEW; what is constant, and how sets grow, leaves some room. */
const MOST_GROWTH = 13;

/** What was done in one pass. */
type Counts = { [what: string]: number };

/** A pass over so many items; returns what it did. */
type Pass = (items: number) => Promise<Counts>;

interface Running {
  readonly dependents: readonly FakeDependent[];
  reconcilerOf(name: string): DependentReconciler;
}

function run({ dependents, reconcilerOf }: Running, isCleanup = false): Promise<WorkflowResult> {
  const definitions = dependents.map(definitionOf);
  const options: RunOptions = {
    plan: buildPlan({ primary: page, dependents: definitions }, ({ name }) => reconcilerOf(name)),
    ...{ primary, slots: new Semaphore(50) },
    context: {
      signal: new AbortController().signal,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    } as unknown as RunOptions["context"],
    reconcile: { definition: page, notes: new ReconcileNotes(), track: async (_, task) => task() },
  };
  return isCleanup ? cleanupWorkflow(options) : reconcileWorkflow(options);
}

const keysOf = (items: number) => Array.from({ length: items }, (_, index) => `i${index}`);

/** Counts the calls of a method while `work` runs. */
async function counted<Target extends object>(
  target: Target,
  methods: readonly (keyof Target & string)[],
  work: () => Promise<unknown>,
): Promise<Counts> {
  const counts: Counts = {};
  const before = methods.map((name) => [name, target[name]] as const);
  for (const [name, method] of before) {
    counts[name] = 0;
    target[name] = function (this: unknown, ...args: unknown[]) {
      counts[name]!++;
      return (method as (...args: unknown[]) => unknown).apply(this, args);
    } as never;
  }
  try {
    await work();
  } finally {
    for (const [name, method] of before) target[name] = method;
  }
  return counts;
}

/** ConfigMaps in the caches of some namespaces, as a watch brings them. */
function createConfigMaps(items: number, namespaces: readonly string[], { isOwn = true } = {}) {
  const definition = builtinDefinition("v1", "ConfigMap");
  const view = new ResourceView(definition, {
    [PRIMARY_INDEX]: (object) => linksOf(object, { primary: page, isElsewhere: false }),
  });
  const decoder = new DeferredDecoder({ fieldManagers: ["page"] });
  const caches = namespaces.map((namespace) => {
    const cache = new ResourceCache();
    view.attach(cache, namespaces.length === 1 ? undefined : namespace);
    return cache;
  });
  let version = 0;
  const namespaceOf = (index: number) => namespaces[index % namespaces.length]!;
  const put = (index: number) => {
    const key = `i${index}`;
    const namespace = namespaceOf(index);
    const link = {
      "gen-operator.dev/primary-name": "one",
      "gen-operator.dev/primary-namespace": "home",
      "gen-operator.dev/primary-type": "Page.example.com",
    };
    const own = { [DEPENDENT_NAME]: "many", [DEPENDENT_ITEM]: key, "gen-operator.dev/object": `${namespace}/${key}` };
    const metadata = {
      ...{ name: key, namespace, uid: key, resourceVersion: `${++version}` },
      labels: isOwn ? { [CONTROLLER_LABEL]: "page" } : {},
      annotations: { ...link, ...(isOwn ? own : {}) },
      managedFields: [{ manager: "page", operation: "Apply", apiVersion: "v1", fieldsV1: { "f:data": {} } }],
    };
    const bytes = Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { key } }));
    caches[index % caches.length]!.observe(decoder.decode(bytes, { start: 0, end: bytes.length }));
  };
  for (let index = 0; index < items; index++) put(index);
  const remove = (index: number) => {
    const known = view.get(`${namespaceOf(index)}/i${index}`)!.object;
    caches[index % caches.length]!.observeDeletion({
      ...known,
      metadata: { ...known.metadata, resourceVersion: `${++version}` },
    });
  };
  return { view, put, remove, namespaceOf };
}

/** Calls `visit` for every key that somebody takes out of an index by going through it. */
function watchIndexes(visit: () => void): Disposable {
  const { keysOf } = ObjectIndex.prototype;
  ObjectIndex.prototype.keysOf = function (value) {
    const keys = keysOf.call(this, value);
    const each = function* () {
      for (const key of keys!) {
        visit();
        yield key;
      }
    };
    return keys && ({ has: (key: string) => keys.has(key), size: keys.size, [Symbol.iterator]: each } as typeof keys);
  };
  return { [Symbol.dispose]: () => void (ObjectIndex.prototype.keysOf = keysOf) };
}

interface Kubernetes {
  readonly namespaces?: readonly string[];
  readonly mode?: "readOnly";
  readonly isCleanup?: boolean;
}

/** A pass after one of the ConfigMaps was deleted by somebody. */
function passOfConfigMaps({ namespaces = ["home"], mode, isCleanup }: Kubernetes): Pass {
  return async (items) => {
    const { view, put, remove, namespaceOf } = createConfigMaps(items, namespaces, { isOwn: mode === undefined });
    const counts: Counts = { desired: 0, written: 0, conditions: 0, visited: 0 };
    const desired = () => {
      counts["desired"]!++;
      return Object.fromEntries(
        keysOf(items).map((key, index) => [
          key,
          { metadata: { name: key, namespace: namespaceOf(index) }, data: { key } },
        ]),
      );
    };
    const holds = () => {
      counts["conditions"]!++;
      return true;
    };
    const writer = {
      delete: async () => void counts["written"]!++,
      apply: async (_: unknown, object: KubernetesObject, { live }: { live: object | undefined }) => {
        if (live !== undefined) return { kind: "unchanged", entry: live };
        counts["written"]!++;
        put(Number(object.metadata.name.slice(1)));
        return { kind: "created", entry: { object } };
      },
    };
    const dependent: KubernetesDependent = {
      ...{ name: "many", dependsOn: [], resource: view.definition, deletion: "ordered", bulk: {} },
      ...(mode === undefined ? { desired } : { mode }),
      ...{ readyPostcondition: holds, deletePostcondition: holds },
    };
    const nothing = async () => {};
    const source = { cache: view, activate: nothing, deactivate: nothing };
    const reconciler = new KubernetesReconciler({
      ...{ definition: dependent, source, writer: writer as never },
      ...{ client: () => unusedClient, controller: "page", finalizer: "pages.example.com/finalizer" },
    });
    const running = { dependents: [dependent], reconcilerOf: () => reconciler };
    await run(running);
    remove(1);
    for (const what of Object.keys(counts)) counts[what] = 0;
    let result: WorkflowResult | undefined;
    using _visits = watchIndexes(() => counts["visited"]!++);
    const gets = await counted(ResourceCache.prototype, ["get", "has"], async () => {
      const parses = await counted(JSON, ["parse"], async () => {
        result = await run(running, isCleanup);
      });
      counts["parsed"] = parses["parse"]!;
    });
    assert.equal(result!.error, undefined);
    return { ...counts, ...gets };
  };
}

interface External {
  readonly hasState?: boolean;
  readonly isReadOnly?: boolean;
  readonly isCleanup?: boolean;
}

/** A pass after one of the external resources was deleted by somebody. */
function passOfResources({ hasState = false, isReadOnly = false, isCleanup }: External): Pass {
  return async (items) => {
    const counts: Counts = { desired: 0, ids: 0, written: 0, reads: 0 };
    const resources = new Map<string, { id: string }>();
    const add = (id: string) => void resources.set(id, { id });
    keysOf(items).forEach(add);
    const keptOf = (state: KeptState): Kept => {
      return { state, value: state, proof: "", standing: "current", place: "", proofPlace: "" };
    };
    const kept = new Map<string, Kept>(keysOf(items).map((id) => [id, keptOf(id)]));
    const idOf = (resource: unknown) => (resource as { id: string }).id;
    const source = {
      isShared: false,
      secondariesOf: () => [...resources.values()],
      ...{ recordCreated: (_: unknown, resource: unknown) => add(idOf(resource)), recordUpdated() {} },
      recordDeleted: (_: unknown, resource: unknown) => void resources.delete(idOf(resource)),
      ...{ invalidate() {}, load: async () => {}, activate: async () => {}, deactivate: async () => {} },
    };
    const functions = {
      desired: () => {
        counts["desired"]!++;
        return Object.fromEntries(keysOf(items).map((id) => [id, { id }]));
      },
      create: async (resource: object) => {
        counts["written"]!++;
        return resource;
      },
      update: async () => {
        throw new Error("nothing differs");
      },
      delete: async () => void counts["written"]!++,
    };
    const dependent: ExternalDependent = {
      ...{ name: "many", dependsOn: [], bulk: {}, source: { kind: "inbound" } },
      ...(isReadOnly ? {} : functions),
      readyPostcondition: () => true,
      idOf: (resource) => {
        counts["ids"]!++;
        return idOf(resource);
      },
    };
    const state = new RememberedState({
      read: () => {
        counts["reads"]! += kept.size;
        return kept;
      },
      adopt: async () => 0,
      set: async (_, key, value) => void (value === undefined ? kept.delete(key) : kept.set(key, keptOf(value))),
    });
    const reconciler = new ExternalReconciler({
      ...{ definition: dependent, source, ...(hasState && { state }) },
    });
    const running = { dependents: [dependent], reconcilerOf: () => reconciler };
    await run(running);
    resources.delete("i1");
    for (const what of Object.keys(counts)) counts[what] = 0;
    const result = await run(running, isCleanup);
    assert.equal(result.error, undefined);
    return counts;
  };
}

/** A pass that deletes all items of a dependent; items of other keys might need them. */
async function passOfSweep(items: number): Promise<Counts> {
  const counts: Counts = { found: 0, removed: 0 };
  const cluster = new FakeCluster();
  const dependents = [bulkOf("needed", []), bulkOf("needing", keysOf(items), { itemsDependOn: ["needed"] } as object)];
  for (const item of keysOf(items)) cluster.put("needed", { item: `old-${item}` });
  for (const item of keysOf(items)) cluster.put("needing", { item });
  const reconcilers = new Map(
    dependents.map((each) => {
      const reconciler = createFakeReconciler(each, cluster);
      const { findItems } = reconciler;
      reconciler.findItems = (...args) => {
        const found = findItems.apply(reconciler, args);
        counts["found"]! += found.size;
        return found;
      };
      return [each.name, reconciler];
    }),
  );
  await run({ dependents, reconcilerOf: (name) => reconcilers.get(name)! });
  counts["removed"] = cluster.removals.length;
  assert.is(counts["removed"], items);
  return counts;
}

suite("cost of reconciling a bulk dependent after one item changed", (test) => {
  const passes: [title: string, pass: Pass, { readonly writesOneItem: boolean }][] = [
    ["applied objects", passOfConfigMaps({}), { writesOneItem: true }],
    ["applied objects in two namespaces", passOfConfigMaps({ namespaces: ["home", "other"] }), { writesOneItem: true }],
    ["read-only objects", passOfConfigMaps({ mode: "readOnly" }), { writesOneItem: false }],
    ["objects deleted by a cleanup", passOfConfigMaps({ isCleanup: true }), { writesOneItem: false }],
    ["external resources", passOfResources({}), { writesOneItem: true }],
    ["external resources with state", passOfResources({ hasState: true }), { writesOneItem: true }],
    ["read-only external resources", passOfResources({ isReadOnly: true }), { writesOneItem: false }],
    ["external resources deleted by a cleanup", passOfResources({ isCleanup: true }), { writesOneItem: false }],
    ["objects read for the deletion order of pruned items", passOfSweep, { writesOneItem: false }],
  ];
  for (const [title, pass, { writesOneItem }] of passes)
    test(`grows at most linearly with the number of items: ${title}`, async () => {
      const [few, many] = [await pass(FEW), await pass(MANY)];
      const tooFast = Object.keys(few).filter((what) => many[what]! > MOST_GROWTH * Math.max(few[what]!, 1));
      assert.equal(tooFast, [], JSON.stringify({ few, many }));
      // desired() is called once for all items, and only the changed item is written.
      if (writesOneItem) assert.equal([few["desired"], many["desired"], few["written"], many["written"]], [1, 1, 1, 1]);
      assert.ok((many["parsed"] ?? 0) <= 2, `${many["parsed"]} objects were parsed`);
    });
});
