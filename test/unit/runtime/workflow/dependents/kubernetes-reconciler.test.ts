import fc from "../../../../support/fast-check.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { Semaphore } from "#runtime/base/wait.js";
import { linksOf, PRIMARY_INDEX } from "#runtime/base/primary-link.js";
import { type DependentOutcome, type RunOptions, createWorkflowResult } from "#runtime/workflow/run.js";
import { type DependentRun, type Reconcile, ReconcileNotes } from "#runtime/workflow/dependent-reconciler.js";
import { KubernetesReconciler } from "#runtime/dependents/kubernetes-reconciler.js";
import { buildPlan } from "#runtime/workflow/plan.js";
import type { PostponedWrite } from "#runtime/base/activity.js";
import { pruneWorkflow } from "#runtime/workflow/prune.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import type { Writer } from "#runtime/apply/writer.js";
import { createView } from "../../../../support/runtime/resource-view.js";
import { unusedClient } from "../../../../support/runtime/clients.js";
import { assert, suite } from "../../../../support/suite.js";
import { dependentOf, page, workflowOf } from "../graphs.js";

const primary: KubernetesObject = {
  apiVersion: page.apiVersion,
  kind: page.kind,
  metadata: { name: "one", namespace: "home", uid: "u1" },
};
const owner = { apiVersion: page.apiVersion, kind: page.kind, name: "one", uid: "u1", controller: true };
const applied = { fieldManager: "page", subresource: "", apiVersion: "v1", fieldsV1: "{}" };

interface Stored {
  readonly name: string;
  readonly dependent?: string | undefined;
  readonly controller?: string | undefined;
  readonly item?: string | undefined;
  readonly createdAt?: string;
  readonly isApplied?: boolean;
  readonly isTied?: boolean;
}

function reconcilersOf<Reconciler>(reconciler: Reconciler) {
  return { ordered: reconciler, orphan: reconciler };
}

/** Reconcilers over one cache that a test fills, with a writer that notes what it is told. */
function createReconcilers(dependents: readonly KubernetesDependent[]) {
  const { view, cache } = createView({
    indexes: { [PRIMARY_INDEX]: (object) => linksOf(object, { primary: page, isElsewhere: false }) },
  });
  const told: string[] = [];
  const note = (verb: string) => async (_: unknown, live: KubernetesObject | { readonly object: KubernetesObject }) =>
    void told.push(`${verb} ${("object" in live ? live.object : live).metadata.name}`);
  const writer = {
    delete: note("delete"),
    untie: note("untie"),
    apply: async (_: unknown, desired: KubernetesObject, { live }: { live: object | undefined }) => {
      told.push(`${live === undefined ? "create" : "update"} ${desired.metadata.name}`);
      return { kind: live === undefined ? "created" : "updated", entry: { object: desired } };
    },
  } as unknown as Writer;
  const nothing = async () => {};
  const source = { cache: view, activate: nothing, deactivate: nothing };
  const reconcilers: KubernetesReconciler[] = [];
  const plan = buildPlan(workflowOf(dependents), (definition) => {
    const options = {
      source,
      writer,
      client: () => unusedClient,
      controller: "page",
      finalizer: "pages.example.com/finalizer",
    };
    const reconciler = new KubernetesReconciler({ ...options, definition: definition as KubernetesDependent });
    reconcilers.push(reconciler);
    return reconciler;
  });
  let version = 0;
  const store = ({
    name,
    dependent,
    controller = "page",
    item,
    createdAt,
    isApplied = true,
    isTied = true,
  }: Stored) => {
    const annotations = {
      ...(dependent === undefined
        ? {}
        : { "gen-operator.dev/dependent": dependent, "gen-operator.dev/controller": controller }),
      ...(item === undefined ? {} : { "gen-operator.dev/item": item }),
    };
    const metadata = {
      name,
      namespace: "home",
      uid: name,
      resourceVersion: `${++version}`,
      annotations,
      ...(isTied ? { ownerReferences: [owner] } : {}),
      ...(createdAt === undefined ? {} : { creationTimestamp: createdAt }),
    };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata };
    cache.observe({ object, ...(isApplied ? { owned: [applied] } : {}) });
  };
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const context = { signal: new AbortController().signal, logger } as unknown as DependentRun["context"];
  const reconcile: Reconcile = { definition: page, notes: new ReconcileNotes(), track: async (_, task) => task() };
  const run: DependentRun = { reconcile, primary, secondary: {}, context };
  const pruned: RunOptions = { reconcile, primary, context, plan, slots: new Semaphore(50) };
  return { reconcilers, reconciler: reconcilers[0]!, store, run, pruned, told };
}

suite("KubernetesReconciler", (test) => {
  test("finds items by annotation, and the latest object if the name of an item changed", () => {
    const { reconciler, store, run } = createReconcilers([dependentOf("many", { bulk: {} })]);
    store({ name: "a-old", dependent: "many", item: "a", createdAt: "2026-01-01T00:00:00Z" });
    store({ name: "a-new", dependent: "many", item: "a", createdAt: "2026-01-02T00:00:00Z" });
    store({ name: "b", dependent: "many", item: "b" });
    store({ name: "single", dependent: "many" });
    store({ name: "others", dependent: "other", item: "c" });
    store({ name: "foreign", dependent: "many", item: "d", controller: "book" });
    const items = [...reconciler.findItems(run)].map(([key, { object }]) => [
      key,
      (object as KubernetesObject).metadata.name,
    ]);
    assert.equal(items.sort(), [
      ["a", "a-new"],
      ["b", "b"],
    ]);
  });

  test("finds items of other clients by name", () => {
    const { reconciler, store, run } = createReconcilers([dependentOf("theirs", { bulk: {}, mode: "readOnly" })]);
    store({ name: "x" });
    store({ name: "y" });
    store({ name: "z", dependent: "other" });
    assert.equal([...reconciler.findItems(run).keys()], ["x", "y"]);
  });

  test("sets the item key, and creates an object if that of the item has another name", async () => {
    const { reconciler, store, run, told } = createReconcilers([dependentOf("many", { bulk: {} })]);
    store({ name: "old", dependent: "many", item: "a" });
    const wanted = reconciler.complete(run, { metadata: { name: "new" } }, "a");
    assert.is(wanted.id, "home/new");
    assert.is((wanted.object as KubernetesObject).metadata.annotations?.["gen-operator.dev/item"], "a");
    assert.is((await reconciler.write(run, wanted, reconciler.find(run, wanted))).kind, "created");
    assert.equal(told, ["create new"]);
  });

  test("does not find a former item as the object of a single dependent", () => {
    const { reconciler, store, run } = createReconcilers([dependentOf("one")]);
    store({ name: "a", dependent: "one", item: "a" });
    assert.is(reconciler.find(run), undefined);
    store({ name: "b", dependent: "one" });
    assert.is(reconciler.find(run)?.object.metadata.name, "b");
    const leftovers = reconciler.objects.leftovers(run.primary, (id) => id === "home/b");
    assert.equal(
      leftovers.map(({ name, live }) => [name, live.metadata.name]),
      [["one", "a"]],
    );
  });

  test("does not leave objects with deletion: orphan to the garbage collector", () => {
    const { reconcilers, run } = createReconcilers([dependentOf("a", { deletion: "orphan" }), dependentOf("b")]);
    assert.equal(
      reconcilers.map((each) => each.isCollected(run)),
      [false, true],
    );
  });
});

suite("pruning", (test) => {
  const names: readonly string[] = ["a", "b", "old"];
  const stored = fc.record({
    dependent: fc.constantFrom(undefined, ...names),
    controller: fc.constantFrom("page", "book"),
    isApplied: fc.boolean(),
    isTied: fc.boolean(),
  });
  const kinds = fc.constantFrom("unchanged", "waiting", "failed", "inactive", "deleted" as const);
  const node = fc.record({ kind: kinds, wants: fc.option(fc.nat(7), { nil: undefined }), isReady: fc.boolean() });

  test("deletes linked objects of this controller that no dependent claims, once their replacement is ready", async () => {
    const input = fc.tuple(fc.array(stored, { maxLength: 8 }), fc.tuple(node, node));
    await fc.assert(
      fc.asyncProperty(input, async ([objects, outcomes]) => {
        const { reconcilers, store, run, pruned, told } = createReconcilers([dependentOf("a"), dependentOf("b")]);
        objects.forEach((object, index) => store({ ...object, name: `o${index}` }));
        const isAskedOf = ({ kind, wants }: (typeof outcomes)[number]) =>
          kind === "unchanged" || ((kind === "failed" || kind === "waiting") && wants !== undefined);
        const asked = outcomes.filter(isAskedOf).map(({ wants = 0 }) => wants);
        // That two want one object is an error of its own.
        fc.pre(new Set(asked).size === asked.length);
        outcomes.forEach((outcome, index) => {
          const metadata = { name: `o${outcome.wants ?? 0}` };
          if (isAskedOf(outcome)) reconcilers[index]!.complete(run, { metadata });
        });
        const outcomeOf = ({ kind, isReady }: (typeof outcomes)[number]) =>
          ({
            kind,
            ...(kind === "unchanged" ? { isReady } : kind === "deleted" ? { isGone: isReady } : {}),
          }) as DependentOutcome;
        const dependents = outcomes.map((outcome, index) => [names[index]!, outcomeOf(outcome)] as const);
        const oldReconciler = createOldReconciler(run, objects);
        const kind = { resource: dependentOf("old").resource, reconcilers: reconcilersOf(oldReconciler.reconciler) };
        await pruneWorkflow({
          run: pruned,
          isCleanup: false,
          result: createWorkflowResult(dependents),
          workflow: {},
          kinds: { watched: [kind], open: async () => undefined },
        });
        const isSilent = (outcome: (typeof outcomes)[number]) =>
          outcome.kind !== "inactive" && outcome.kind !== "deleted" && !isAskedOf(outcome);
        const isSettled = ({ kind, isReady }: (typeof outcomes)[number]) =>
          kind === "inactive" || ((kind === "unchanged" || kind === "deleted") && isReady);
        const mayGo = (dependent: string) => {
          const outcome = outcomes[names.indexOf(dependent)];
          if (outcome === undefined) return outcomes.every(isSettled);
          return outcome.kind === "deleted" || (outcome.kind === "unchanged" && outcome.isReady);
        };
        const expected = objects.flatMap(({ dependent, controller, isApplied, isTied }, index) => {
          if (dependent === undefined || controller !== "page" || !isApplied || !isTied) return [];
          const isHeld = !mayGo(dependent) || outcomes.some(isSilent) || asked.includes(index);
          return isHeld ? [] : [`delete o${index}`];
        });
        assert.equal([...told, ...oldReconciler.told].sort(), expected.sort());
      }),
    );
  });
});

suite("replacement of an object", (test) => {
  const objects = [{ dependent: "a" }, { dependent: "old" }];
  const pruneWith = async (ofUser: { readonly postponed?: PostponedWrite }) => {
    const { reconcilers, store, run, pruned, told } = createReconcilers([
      dependentOf("a"),
      dependentOf("b", { dependsOn: ["a"] }),
    ]);
    objects.forEach((object, index) => store({ ...object, name: `o${index}` }));
    for (const [index, name] of ["new", "user"].entries()) reconcilers[index]!.complete(run, { metadata: { name } });
    const oldReconciler = createOldReconciler(run, objects);
    const outcome = { kind: "unchanged", isReady: true } as const;
    await pruneWorkflow({
      run: pruned,
      isCleanup: false,
      result: createWorkflowResult([
        ["a", outcome],
        ["b", { ...outcome, ...ofUser }],
      ]),
      workflow: {},
      kinds: {
        watched: [{ resource: dependentOf("old").resource, reconcilers: reconcilersOf(oldReconciler.reconciler) }],
        open: async () => undefined,
      },
    });
    return [...told, ...oldReconciler.told];
  };

  test("must be applied first: a postponed write keeps the previous object", async () => {
    assert.equal(await pruneWith({}), ["delete o0", "delete o1"]);
    const facts = { kind: "ConfigMap.v1", object: "default/user", loop: "undone", writes: 3 } as const;
    assert.equal(await pruneWith({ postponed: { ...facts, paths: [], managers: [], retryAfterMs: 2_000 } }), []);
  });
});

/** The reconciler of the removed dependent, over the same objects. */
function createOldReconciler(run: DependentRun, objects: readonly Omit<Stored, "name">[]) {
  const { reconciler, store, told } = createReconcilers([dependentOf("old")]);
  objects.forEach((object, index) => store({ ...object, name: `o${index}` }));
  assert.equal(run.primary, primary);
  return { reconciler, told };
}
