import fc from "../../../support/fast-check.js";
import { type DecodedResource, type KubernetesObject, keyOf } from "#runtime/base/kubernetes-object.js";
import { Semaphore } from "#runtime/base/wait.js";
import type { ApiClient } from "#runtime/client/api-client.js";
import { linksOf, PRIMARY_INDEX } from "#runtime/base/primary-link.js";
import { deleted, ready } from "#runtime/workflow/conditions.js";
import { buildPlan } from "#runtime/workflow/plan.js";
import { ReconcileNotes } from "#runtime/workflow/dependent-reconciler.js";
import { cleanupWorkflow, reconcileWorkflow, type RunOptions } from "#runtime/workflow/run.js";
import { KubernetesReconciler } from "#runtime/dependents/kubernetes-reconciler.js";
import type { KnownObjects } from "#runtime/sources/dependent-sources.js";
import type { Condition, DependentDefinition, KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import type { Writer } from "#runtime/apply/writer.js";
import { createView } from "../../../support/runtime/resource-view.js";
import { unusedClient } from "../../../support/runtime/clients.js";
import { assert, suite } from "../../../support/suite.js";
import { dependentOf, dependentsOf, graphs, page, workflowOf } from "./graphs.js";

const primary: KubernetesObject & { spec: object } = {
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name: "one", namespace: "home", uid: "u1", resourceVersion: "1" },
  spec: {},
};

/** A client of a cluster that serves every kind. */
const servingClient = { connection: {}, servedVersions: async () => ["v1"] } as unknown as ApiClient;

/** One cache for all dependents and a writer that only writes into it, after a pause that lets others go first. */
function createRun(dependents: readonly KubernetesDependent[], { pauses = [] }: { pauses?: readonly number[] } = {}) {
  const { view, cache } = createView({
    indexes: { [PRIMARY_INDEX]: (object) => linksOf(object, { primary: page, isElsewhere: false }) },
  });
  const history: string[] = [];
  let version = 1;
  let calls = 0;
  const pause = async () => {
    for (let turns = pauses[calls++ % (pauses.length || 1)] ?? 0; turns >= 0; turns--) await Promise.resolve();
  };
  const store = (object: object) => {
    const { metadata, ...rest } = object as KubernetesObject;
    const stored = { ...rest, metadata: { ...metadata, uid: metadata.name, resourceVersion: `${++version}` } };
    const owned = [{ fieldManager: "page", subresource: "", apiVersion: rest.apiVersion, fieldsV1: "{}" }];
    const entry: DecodedResource = { object: stored as unknown as KubernetesObject, owned };
    cache.observe(entry);
    return entry;
  };
  const writer = {
    async apply(_: unknown, desired: KubernetesObject, { live }: { live: DecodedResource | undefined }) {
      history.push(`apply ${desired.metadata.name}`);
      await pause();
      history.push(`applied ${desired.metadata.name}`);
      return { kind: live === undefined ? "created" : "updated", entry: store(desired) };
    },
    async delete(_: unknown, { metadata }: KubernetesObject) {
      history.push(`delete ${metadata.name}`);
      await pause();
      history.push(`deleted ${metadata.name}`);
      view.beginDeletion(keyOf(metadata), metadata.uid ?? "")({ isGone: true });
      return true;
    },
  } as unknown as Writer;
  const source: KnownObjects = {
    cache: view,
    activate: async () => void history.push("activate"),
    deactivate: async () => void history.push("deactivate"),
  };
  const reconcilerOf = (definition: DependentDefinition) =>
    new KubernetesReconciler({
      definition: definition as KubernetesDependent,
      source,
      writer,
      client: () => servingClient,
      controller: "page",
      finalizer: "pages.example.com/finalizer",
    });
  const planOf = (all: readonly KubernetesDependent[]) => buildPlan(workflowOf(all), reconcilerOf);
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const options: RunOptions = {
    plan: planOf(dependents),
    primary,
    context: {
      client: unusedClient,
      signal: new AbortController().signal,
      logger,
      retry: { attempt: 0, isLastAttempt: false },
    } as Partial<RunOptions["context"]> as RunOptions["context"],
    slots: new Semaphore(50),
    reconcile: { definition: page, notes: new ReconcileNotes(), track: async (_, task) => task() },
  };
  return { options, history, cache: view, planOf };
}

const holds: Condition<unknown, unknown> = () => true;
const fails: Condition<unknown, unknown> = () => false;
const throws = (): never => {
  throw new Error("no idea");
};

async function reconcile(dependents: readonly KubernetesDependent[]) {
  const run = createRun(dependents);
  return { ...run, result: await reconcileWorkflow(run.options) };
}

suite("workflow run", (test) => {
  test("writes a dependent with its namespace and its link to the primary", async () => {
    const { cache } = await reconcile([dependentOf("a"), dependentOf("b", { deletion: "ordered" })]);
    const owned = cache.get("home/a")!.object.metadata;
    assert.equal(owned.ownerReferences, [
      {
        apiVersion: "example.com/v1",
        kind: "Page",
        name: "one",
        uid: "u1",
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    // Two dependents of one kind are told apart by an annotation.
    assert.equal(owned.annotations, { "gen-operator.dev/dependent": "a", "gen-operator.dev/object": "home/a" });
    const annotated = cache.get("home/b")!.object.metadata;
    assert.is(annotated.ownerReferences, undefined);
    assert.equal(annotated.annotations, {
      "gen-operator.dev/primary-name": "one",
      "gen-operator.dev/primary-namespace": "home",
      "gen-operator.dev/primary-type": "Page.example.com",
      "gen-operator.dev/primary-uid": "u1",
      "gen-operator.dev/dependent": "b",
      "gen-operator.dev/object": "home/b",
    });
  });

  test("blocks only the dependents of one that is not ready", async () => {
    const { result, history } = await reconcile([
      dependentOf("slow", { readyPostcondition: fails }),
      dependentOf("after", { dependsOn: ["slow"] }),
      dependentOf("other"),
    ]);
    assert.equal(result.dependents, {
      slow: { kind: "created", isReady: false, conditions: { readyPostcondition: { isMet: false } } },
      after: { kind: "waiting", for: ["slow"] },
      other: { kind: "created", isReady: true },
    });
    assert.not(result.isReady);
    assert.not(history.includes("apply after"));
  });

  for (const name of ["desired", "activationCondition", "reconcilePrecondition", "readyPostcondition"] as const)
    test(`fails only the dependent whose ${name} throws, and continues with the others`, async () => {
      const { result } = await reconcile([
        dependentOf("broken", { [name]: throws }),
        dependentOf("after", { dependsOn: ["broken"] }),
        dependentOf("other"),
      ]);
      assert.equal([...result.errors.keys()], ["broken"]);
      assert.is((result.errors.get("broken") as Error).message, 'dependent "broken": no idea');
      assert.equal(result.dependents["after"], { kind: "waiting", for: ["broken"] });
      assert.equal(result.dependents["other"], { kind: "created", isReady: true });
    });

  test("fails with the reason if desired() returns an invalid object", async () => {
    const { result } = await reconcile([
      dependentOf("nothing", { desired: (() => undefined) as never }),
      dependentOf("nameless", { desired: () => ({ metadata: {} }) }),
      dependentOf("away", { desired: () => ({ metadata: { name: "x", namespace: "away" } }) }),
      dependentOf("unlabelled", { labelSelector: "app=web" }),
    ]);
    const messages = [...result.errors.values()].map((error) => (error as Error).message);
    assert.match(messages[0]!, 'dependent "nothing": desired() of dependent "nothing" returned undefined');
    assert.match(messages[1]!, "returned no metadata.name");
    assert.match(messages[2]!, 'puts the object into namespace "away"');
    assert.match(messages[3]!, 'lacks the labels that its labelSelector "app=web" asks for');
  });

  test("deletes a dependent with a false reconcilePrecondition after its dependents", async () => {
    const chain = (precondition: Condition<unknown, unknown>) => [
      dependentOf("a"),
      dependentOf("b", { dependsOn: ["a"], reconcilePrecondition: precondition }),
      dependentOf("c", { dependsOn: ["b"] }),
    ];
    const run = createRun(chain(holds));
    await reconcileWorkflow(run.options);
    run.history.length = 0;
    const plan = run.planOf(chain(fails));
    const result = await reconcileWorkflow({ ...run.options, plan });
    assert.equal(run.history, ["apply a", "applied a", "delete c", "deleted c", "delete b", "deleted b"]);
    assert.equal(result.dependents["b"], {
      kind: "deleted",
      isGone: true,
      because: "its reconcilePrecondition is false",
      conditions: { reconcilePrecondition: { isMet: false } },
    });
    assert.ok(result.isReady, "what must not exist and does not is as it should be");
  });

  test("neither writes nor deletes an inactive dependent, but deletes its dependents", async () => {
    const definitions = (activationCondition: Condition<unknown, unknown>) => [
      dependentOf("a", { activationCondition }),
      dependentOf("b", { dependsOn: ["a"] }),
    ];
    const run = createRun(definitions(holds));
    await reconcileWorkflow(run.options);
    run.history.length = 0;
    const result = await reconcileWorkflow({ ...run.options, plan: run.planOf(definitions(fails)) });
    assert.equal(run.history, ["deactivate", "delete b", "deleted b"]);
    assert.equal(result.dependents["a"], {
      kind: "inactive",
      conditions: { activationCondition: { isMet: false } },
    });
  });

  test("evaluates activationCondition for a primary that is being deleted", async () => {
    const definitions = (activationCondition: Condition<unknown, unknown>) => [
      dependentOf("a", { activationCondition, desired: throws }),
      dependentOf("b", { activationCondition: fails }),
    ];
    const metadata = { ...primary.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    const { options, history } = createRun(definitions(fails));
    const result = await reconcileWorkflow({ ...options, primary: { ...primary, metadata } });
    assert.equal(
      Object.values(result.dependents).map(({ kind }) => kind),
      ["inactive", "inactive"],
    );
    assert.equal(history, ["deactivate", "deactivate"]);
  });

  test("calls desired() of garbage-collected dependents only after their conditions were met, in any graph", async () => {
    const answers = fc.array(fc.boolean(), { minLength: 8, maxLength: 8 });
    const turns = fc.array(fc.nat(6), { minLength: 1, maxLength: 10 });
    const property = fc.asyncProperty(
      ...([graphs, answers, answers, fc.boolean(), turns] as const),
      async (graph, isActive, isWanted, isDeleted, pauses) => {
        const passed: (object | undefined)[][] = [];
        const pass = (index: number, condition: number, answer: boolean): Condition<unknown, unknown> =>
          (({ primary }: { readonly primary: object }) => {
            (passed[index] ??= [])[condition] = answer ? primary : undefined;
            return answer;
          }) as Condition<unknown, unknown>;
        const definitions = (isLater: boolean) =>
          dependentsOf(graph, (index) => ({
            retry: { maxRetries: 1, initialIntervalMs: 1 },
            activationCondition: pass(index, 0, !isLater || isActive[index]!),
            reconcilePrecondition: pass(index, 1, !isLater || isWanted[index]!),
            desired: (({ primary }: { readonly primary: object }) => {
              const seen = [index, ...neededBy(graph, index)].flatMap((each) => [0, 1].map((i) => passed[each]?.[i]));
              assert.ok(
                seen.every((each) => each === primary),
                `n${index} was asked without its conditions`,
              );
              return { metadata: { name: `n${index}` } };
            }) as never,
          }));
        const run = createRun(definitions(false), { pauses });
        await reconcileWorkflow(run.options);
        const metadata = isDeleted
          ? { ...primary.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" }
          : primary.metadata;
        const later = { ...run.options, primary: { ...primary, metadata }, plan: run.planOf(definitions(true)) };
        assert.equal([...(await reconcileWorkflow(later)).errors.values()], []);
        passed.length = 0;
        assert.equal([...(await cleanupWorkflow(later)).errors.values()], []);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  test("deletes in reverse order in a cleanup, except for garbage-collected dependents", async () => {
    const run = createRun([
      dependentOf("a", { deletion: "ordered" }),
      dependentOf("b", { dependsOn: ["a"] }),
      dependentOf("c", { dependsOn: ["b"], deletion: "ordered" }),
    ]);
    await reconcileWorkflow(run.options);
    run.history.length = 0;
    const metadata = { ...primary.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    const result = await cleanupWorkflow({ ...run.options, primary: { ...primary, metadata } });
    assert.equal(run.history, ["delete c", "deleted c", "delete a", "deleted a"]);
    assert.equal(result.dependents["b"], { kind: "left" });
    assert.ok(result.isReady);
  });

  test("keeps dependencies in a cleanup while a deletePostcondition is false", async () => {
    let isGone = false;
    const run = createRun([
      dependentOf("a", { deletion: "ordered" }),
      dependentOf("b", { dependsOn: ["a"], deletion: "ordered", deletePostcondition: () => isGone }),
    ]);
    await reconcileWorkflow(run.options);
    run.history.length = 0;
    const first = await cleanupWorkflow(run.options);
    assert.equal(run.history, ["delete b", "deleted b"]);
    assert.equal(first.dependents["a"], { kind: "waiting", for: ["b"] });
    assert.not(first.isReady);
    isGone = true;
    const second = await cleanupWorkflow(run.options);
    assert.ok(second.isReady);
    assert.ok(run.history.includes("deleted a"));
  });

  test("does not evaluate deletePostcondition of garbage-collected dependents in a cleanup", async () => {
    const asked: string[] = [];
    const postconditionOf = (name: string) => () => {
      asked.push(name);
      return true;
    };
    const run = createRun([
      dependentOf("a", { deletePostcondition: postconditionOf("a") }),
      dependentOf("b", { deletion: "ordered", deletePostcondition: postconditionOf("b") }),
    ]);
    await reconcileWorkflow(run.options);
    const metadata = { ...primary.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    const result = await cleanupWorkflow({ ...run.options, primary: { ...primary, metadata } });
    assert.equal(asked, ["b"]);
    assert.ok(result.isReady);
  });

  test("passes the live object to the built-in conditions", async () => {
    const withReady = (name: string, status: string) =>
      dependentOf(name, {
        readyPostcondition: ready,
        // The writer of these tests stores what it is given.
        desired: (() => ({ metadata: { name }, status: { conditions: [{ type: "Ready", status }] } })) as never,
      });
    const { result } = await reconcile([
      withReady("a", "True"),
      withReady("b", "False"),
      dependentOf("c", { readyPostcondition: deleted }),
    ]);
    assert.equal(
      Object.values(result.dependents).map((outcome) => [outcome.kind, (outcome as { isReady?: boolean }).isReady]),
      [
        ["created", true],
        ["created", false],
        ["created", false],
      ],
    );
    assert.match(result.detailOf<string>("b", "readyPostcondition") ?? "", "home/b is not ready: its condition Ready");
  });

  test("passes the frozen result of an earlier dependent to a later one in the same run", async () => {
    let seen: KubernetesObject | undefined;
    const read = ({ secondary }: { secondary: { first?: KubernetesObject } }) => {
      seen = secondary.first;
      return { metadata: { name: "second" } };
    };
    await reconcile([dependentOf("first"), dependentOf("second", { dependsOn: ["first"], desired: read })]);
    assert.is(seen?.metadata.name, "first");
    assert.ok(Object.isFrozen(seen?.metadata));
  });

  test("calls each function at most once", async () => {
    const calls = new Map<string, number>();
    const counted =
      <Result>(what: string, result: Result) =>
      () => (calls.set(what, (calls.get(what) ?? 0) + 1), result);
    await reconcile(
      ["a", "b"].map((name) =>
        dependentOf(name, {
          dependsOn: name === "b" ? ["a"] : [],
          desired: counted(`desired ${name}`, { metadata: { name } }),
          activationCondition: counted(`activation ${name}`, true),
          reconcilePrecondition: counted(`precondition ${name}`, true),
          readyPostcondition: counted(`postcondition ${name}`, true),
        }),
      ),
    );
    assert.is(calls.size, 8);
    assert.ok([...calls.values()].every((count) => count === 1));
  });

  test("evaluates everything again in the next run", async () => {
    let isWanted = false;
    const asked: string[] = [];
    const asks = (name: string, answer: () => boolean) => () => {
      asked.push(name);
      return answer();
    };
    const run = createRun([
      dependentOf("a", { readyPostcondition: asks("a is ready", () => true) }),
      dependentOf("b", { dependsOn: ["a"], reconcilePrecondition: asks("b is wanted", () => isWanted) }),
    ]);
    const first = await reconcileWorkflow(run.options);
    isWanted = true;
    const second = await reconcileWorkflow(run.options);
    assert.equal([first.dependents["b"]?.kind, second.dependents["b"]?.kind], ["deleted", "created"]);
    assert.equal(
      asked.filter((each) => each === "a is ready"),
      ["a is ready", "a is ready"],
    );
    assert.equal(
      asked.filter((each) => each === "b is wanted"),
      ["b is wanted", "b is wanted"],
    );
  });

  test("keeps the order and isolates errors for any graph, conditions and timing", async () => {
    const kinds = fc.constantFrom("ready", "ready", "ready", "notReady", "throws", "unwanted");
    const fates = fc.array(kinds, { minLength: 8, maxLength: 8 });
    const pauses = fc.array(fc.nat(6), { minLength: 1, maxLength: 10 });
    const property = fc.asyncProperty(graphs, fates, fates, pauses, async (graph, before, after, turns) => {
      const definitions = (fateOf: readonly string[]) =>
        dependentsOf(graph, (index) => ({
          deletion: "ordered",
          reconcilePrecondition: () => fateOf[index] !== "unwanted",
          readyPostcondition: () => fateOf[index] !== "notReady",
          ...(fateOf[index] === "throws" ? { desired: throws } : {}),
        }));
      const run = createRun(definitions(before), { pauses: turns });
      await reconcileWorkflow(run.options);
      run.history.length = 0;
      const plan = run.planOf(definitions(after));
      const result = await reconcileWorkflow({ ...run.options, plan });
      graph.forEach((needed, index) => {
        for (const other of needed) checkOrder(run.history, { index, other });
        const outcome = result.dependents[`n${index}`]!;
        if (after[index] === "throws") assert.ok(["failed", "waiting", "deleted"].includes(outcome.kind));
        assert.is(result.errors.has(`n${index}`), outcome.kind === "failed");
      });
      run.history.length = 0;
      const cleanup = await cleanupWorkflow({ ...run.options, plan });
      assert.ok(cleanup.isReady);
      assert.is([...run.cache.keys()].length, 0);
      graph.forEach((needed, index) => needed.forEach((other) => checkOrder(run.history, { index, other })));
    });
    await fc.assert(property, { numRuns: 200 });
  });
});

/** Returns all that a node of a graph depends on, directly or through others. */
function neededBy(graph: readonly (readonly number[])[], index: number): readonly number[] {
  return graph[index]!.flatMap((other) => [other, ...neededBy(graph, other)]);
}

/** `index` depends on `other`. */
function checkOrder(history: readonly string[], { index, other }: { index: number; other: number }): void {
  const at = (event: string) => history.indexOf(event);
  if (at(`apply n${index}`) !== -1)
    assert.ok(at(`applied n${other}`) !== -1 && at(`applied n${other}`) < at(`apply n${index}`));
  if (at(`delete n${other}`) !== -1 && at(`delete n${index}`) !== -1)
    assert.ok(at(`deleted n${index}`) < at(`delete n${other}`), `n${index} goes before n${other}`);
  assert.is(history.filter((event) => event === `delete n${index}`).length <= 1, true, "deleted at most once");
}
