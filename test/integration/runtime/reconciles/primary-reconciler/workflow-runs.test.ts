// Who runs the workflows of a controller, and what becomes of their errors; the dependents are in memory, the primaries on a server.
import { checkController } from "#runtime/api/controller-validation.js";
import { keepFinalizer, updateStatus } from "#runtime/reconcile/reconciler.js";
import type { Deletion } from "#runtime/workflow/workflow-definition.js";
import type { WorkflowResult } from "#runtime/workflow/run.js";
import { assert, suite } from "../../../../support/suite.js";
import { fails, holds } from "../../../../unit/runtime/workflow/fake-cluster.js";
import { dependentOf, workflowOf } from "../../../../unit/runtime/workflow/graphs.js";
import { FINALIZER } from "./page-dispatcher.js";
import { createWorkflowDispatcher as create, type Args } from "./workflow-dispatcher.js";
import { finalizerOf } from "#runtime/reconcile/controller-definition.js";

const explicit = { invocation: "explicit" } as const;
const errorsAreResults = { exceptions: "result" } as const;

async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    return (error as Error).message;
  }
  return "nothing was thrown";
}

suite("explicit invocation", (test) => {
  test("runs nothing before the reconciler calls it, and returns the same result to concurrent calls", async () => {
    const seen: unknown[] = [];
    const reconciler = {
      async reconcile({ context, workflow, secondary }: Args) {
        seen.push(workflow, bed.cluster.writes.length, secondary["a"]);
        const [first, second] = await Promise.all([context.workflow.reconcile(), context.workflow.reconcile()]);
        seen.push(first === second, first?.dependents["a"]?.kind, (secondary["a"] as { id: string }).id);
      },
    };
    const bed = await create({ workflow: explicit, reconciler });
    const outcome = await bed.reconcile();
    assert.equal(seen, [undefined, 0, undefined, true, "created", "a"]);
    assert.equal(bed.cluster.writes, ["a"]);
    assert.is(outcome.workflow?.dependents["a"]?.kind, "created", "an observer is told");
    assert.is(outcome.failure, undefined);
  });

  test("can be omitted by the reconciler", async () => {
    const bed = await create({ workflow: explicit, reconciler: { reconcile: () => {} } });
    const outcome = await bed.reconcile();
    assert.equal(bed.cluster.history, []);
    assert.is(outcome.workflow, undefined);
  });

  test("awaits a run that the reconciler did not await", async () => {
    const reconciler = {
      reconcile({ context }: Args) {
        void context.workflow.reconcile();
        return updateStatus({ text: "now" });
      },
    };
    const bed = await create({ workflow: explicit, reconciler });
    bed.cluster.pauses = [20];
    const outcome = await bed.reconcile();
    assert.equal(bed.cluster.history, ["write a", "written a"]);
    assert.ok(outcome.wroteStatus);
  });

  test("throws errors to the reconciler, which can handle them", async () => {
    let message: string | undefined;
    const reconciler = {
      reconcile: async ({ context }: Args) => void (message = await messageOf(() => context.workflow.reconcile())),
    };
    const bed = await create({ workflow: explicit, reconciler });
    bed.cluster.failures.set("a", new Error("no room"));
    const outcome = await bed.reconcile();
    assert.is(message, 'the workflow failed: dependent "a": no room');
    assert.is(outcome.failure, undefined);
    const careless = await create({
      workflow: explicit,
      reconciler: { reconcile: async ({ context }: Args) => void (await context.workflow.reconcile()) },
    });
    careless.cluster.failures.set("a", new Error("no room"));
    assert.is((await careless.reconcile()).failure?.error instanceof Error, true);
  });

  test("deletes all dependents on context.workflow.cleanup(), including garbage-collected ones", async () => {
    const reconciler = { reconcile: async ({ context }: Args) => void (await context.workflow.cleanup()) };
    const dependents = [
      { name: "a", garbageCollected: true },
      { name: "b", dependsOn: ["a"] },
    ];
    const bed = await create({ workflow: explicit, reconciler, dependents });
    for (const name of ["a", "b"]) bed.cluster.put(name);
    await bed.reconcile();
    assert.equal(bed.cluster.removals, ["b", "a"]);
  });

  test("warns if cleanup() does not call context.workflow.cleanup()", async () => {
    const dependents = [{ name: "a", garbageCollected: true }, { name: "b" }];
    const reconcile = () => {};
    const careless = await create({ workflow: explicit, reconciler: { reconcile, cleanup: () => {} }, dependents });
    careless.cluster.put("b");
    assert.not((await careless.cleanUp()).isKept);
    const warnings = careless.dispatcher.logs.filter((line) => line.startsWith("warn"));
    assert.equal(warnings, [
      "warn cleanup() did not call context.workflow.cleanup(): the objects of b are not deleted",
    ]);
    const cleanup = async ({ context }: Args) => void (await context.workflow.cleanup());
    const careful = await create({ workflow: explicit, reconciler: { reconcile, cleanup }, dependents });
    await careful.cleanUp();
    assert.equal(
      careful.dispatcher.logs.filter((line) => line.startsWith("warn")),
      [],
    );
  });

  test("does not overlap a concurrent reconcile and cleanup", async () => {
    const reconciler = {
      async reconcile({ context }: Args) {
        await Promise.all([context.workflow.cleanup(), context.workflow.reconcile()]);
      },
    };
    const bed = await create({ workflow: explicit, reconciler });
    bed.cluster.put("a");
    bed.cluster.pauses = [5];
    await bed.reconcile();
    assert.equal(bed.cluster.history, ["remove a", "removed a", "write a", "written a"]);
  });

  test("is rejected without invocation: explicit", async () => {
    const messages: string[] = [];
    const reconciler = {
      async reconcile({ context }: Args) {
        messages.push(await messageOf(() => context.workflow.reconcile()));
        messages.push(await messageOf(() => context.workflow.cleanup()));
      },
    };
    await (await create({ reconciler })).reconcile();
    const wanted = (name: string) =>
      `context.workflow.${name}() is for workflows with invocation: explicit; this one runs by itself, and its result is the argument "workflow"`;
    assert.equal(messages, [wanted("reconcile"), wanted("cleanup")]);
  });

  test("is rejected without a reconciler", async () => {
    assert.match(
      await messageOf(() => checkController({ name: "web", workflow: { ...workflowOf([]), ...explicit } })),
      "and no reconciler that invokes it by context.workflow",
    );
  });
});

// JOSDK's ControllerTest: whether the reconciler cleans up, whether the workflow has something to delete, whether it is explicit.
suite("cleanup of a workflow", (test) => {
  const cases = [
    { number: 1, hasCleanup: true, hasDeletable: true, isExplicit: true, isRun: false },
    { number: 2, hasCleanup: true, hasDeletable: true, isExplicit: false, isRun: true },
    { number: 3, hasCleanup: false, hasDeletable: true, isExplicit: true, isRun: true },
    { number: 4, hasCleanup: false, hasDeletable: true, isExplicit: false, isRun: true },
    { number: 5, hasCleanup: true, hasDeletable: false, isExplicit: false, isRun: false },
  ];
  for (const { number, hasCleanup, hasDeletable, isExplicit, isRun } of cases)
    test(`is ${isRun ? "run" : "not run"} by the runtime: cleanup ${hasCleanup}, deletable ${hasDeletable}, explicit ${isExplicit} [ControllerTest ${number}]`, async () => {
      const calls: string[] = [];
      const cleanup = { cleanup: () => void calls.push("cleanup") };
      const bed = await create({
        workflow: isExplicit ? explicit : {},
        reconciler: { reconcile: () => {}, ...(hasCleanup ? cleanup : {}) },
        dependents: [{ name: "a", garbageCollected: !hasDeletable }],
      });
      bed.cluster.put("a");
      const { isKept } = await bed.cleanUp();
      assert.equal(bed.cluster.removals, isRun ? ["a"] : []);
      assert.equal(calls, hasCleanup ? ["cleanup"] : []);
      assert.not(isKept);
    });

  test("keeps the finalizer until all objects are deleted if the reconciler invokes it", async () => {
    let gone = fails;
    const reconciler = {
      reconcile: () => {},
      cleanup: async ({ context }: Args) => void (await context.workflow.cleanup()),
    };
    const dependents = [
      { name: "a" },
      { name: "b", dependsOn: ["a"], deletePostcondition: (...args: Parameters<typeof gone>) => gone(...args) },
    ];
    const bed = await create({ workflow: explicit, reconciler, dependents });
    for (const name of ["a", "b"]) bed.cluster.put(name);
    const first = await bed.cleanUp();
    assert.ok(first.isKept);
    assert.equal(bed.cluster.removals, ["b"]);
    assert.is(first.failure, undefined);
    gone = holds;
    assert.not((await bed.cleanUp()).isKept);
    assert.equal(bed.cluster.ids, []);
  });
});

suite("finalizer of a controller", (test) => {
  test("is set for a cleanup or dependents that the runtime deletes [ManagedWorkflowTest, WorkflowBuilderTest]", () => {
    const finalizerFor = (hasCleanup: boolean, ...deletions: Deletion[]) =>
      finalizerOf({
        name: "page",
        workflow: workflowOf(deletions.map((deletion, index) => dependentOf(`n${index}`, { deletion }))),
        reconciler: { reconcile: () => {}, ...(hasCleanup ? { cleanup: () => {} } : {}) },
      });
    assert.is(finalizerFor(false), undefined);
    assert.is(finalizerFor(false, "garbageCollected", "garbageCollected"), undefined);
    assert.is(finalizerFor(true), FINALIZER);
    for (const deletion of ["ordered", "orphan"] as const) {
      assert.is(finalizerFor(false, deletion), FINALIZER);
      assert.is(finalizerFor(false, "garbageCollected", deletion), FINALIZER);
    }
  });
});

suite("errors of dependents", (test) => {
  test("fail the reconcile before the reconciler is called, except with exceptions: result", async () => {
    for (const [workflow, wanted] of [
      [{}, { calls: 0, isFailed: true }],
      [errorsAreResults, { calls: 1, isFailed: false }],
    ] as const) {
      const results: (WorkflowResult | undefined)[] = [];
      const bed = await create({
        workflow,
        reconciler: { reconcile: (args: Args) => void results.push(args.workflow) },
      });
      bed.cluster.failures.set("a", new Error("no room"));
      const outcome = await bed.reconcile();
      assert.is(results.length, wanted.calls);
      assert.is(outcome.failure !== undefined, wanted.isFailed);
      for (const result of results) assert.equal([...(result?.errors.keys() ?? [])], ["a"]);
    }
  });

  test("fail a reconcile without a reconciler, also with exceptions: result", async () => {
    const bed = await create({ workflow: errorsAreResults });
    bed.cluster.failures.set("a", new Error("no room"));
    assert.match(((await bed.reconcile([])).failure?.error as Error).message, "no room");
  });

  for (const [how, workflow] of [
    ["throws them", {}],
    ["returns them", errorsAreResults],
    ["runs explicitly", { ...explicit, ...errorsAreResults }],
  ] as const)
    test(`keep the finalizer and are retried in a cleanup that ${how}`, async () => {
      const reconciler = {
        reconcile: () => {},
        cleanup: async ({ context }: Args) => {
          if ("invocation" in workflow) await context.workflow.cleanup();
        },
      };
      const bed = await create({ workflow, reconciler, dependents: [{ name: "a" }, { name: "b", dependsOn: ["a"] }] });
      for (const name of ["a", "b"]) bed.cluster.put(name);
      bed.cluster.failures.set("b", new Error("no answer"));
      const first = await bed.cleanUp();
      assert.ok(first.isKept);
      assert.match((first.failure?.error as Error).message, 'dependent "b": no answer');
      assert.equal(bed.cluster.ids, ["a", "b"], "what was not reached is still there");
      bed.cluster.failures.clear();
      const second = await bed.cleanUp();
      assert.not(second.isKept);
      assert.equal(bed.cluster.ids, []);
    });

  test("are not retried before the rescheduleAfterMs of keepFinalizer()", async () => {
    const reconciler = { reconcile: () => {}, cleanup: () => keepFinalizer({ rescheduleAfterMs: 5_000 }) };
    const bed = await create({ workflow: errorsAreResults, reconciler });
    bed.cluster.put("a");
    bed.cluster.failures.set("a", new Error("no answer"));
    const outcome = await bed.cleanUp();
    assert.ok(outcome.isKept);
    assert.is(outcome.failure, undefined);
    assert.is(outcome.rescheduleAfterMs, 5_000);
  });
});

suite("additional workflows", (test) => {
  test("run when the reconciler calls them, and see dependents of the other workflows", async () => {
    const seen: unknown[] = [];
    const reconciler = {
      async reconcile({ context, secondary }: Args) {
        seen.push(Object.keys(secondary), secondary["extra"]);
        const result = await context.workflows.get("backup").reconcile();
        seen.push(result.dependents["extra"]?.kind, (secondary["extra"] as { id: string }).id);
      },
    };
    const desired = ({ secondary }: Args) => ({ sees: (secondary["a"] as { id: string }).id });
    const bed = await create({ reconciler, workflows: { backup: [{ name: "extra", desired }] } });
    const outcome = await bed.reconcile();
    assert.equal(seen, [["a", "extra"], undefined, "created", "extra"]);
    assert.equal(bed.cluster.writes, ["a", "extra"]);
    assert.equal(bed.cluster.of("extra").get("extra")?.value, { sees: "a" });
    assert.equal(Object.keys(outcome.workflow?.dependents ?? {}), ["a"], "an observer is told of the workflow itself");
  });

  test("throw errors to the reconciler and keep the finalizer until all objects are deleted", async () => {
    const messages: string[] = [];
    const reconciler = {
      reconcile: async ({ context }: Args) =>
        void messages.push(await messageOf(() => context.workflows.get("backup").reconcile())),
      cleanup: async ({ context }: Args) => void (await context.workflows.get("backup").cleanup()),
    };
    const bed = await create({ reconciler, workflows: { backup: [{ name: "extra" }] } });
    bed.cluster.failures.set("extra", new Error("no room"));
    await bed.reconcile();
    assert.equal(messages, ['the workflow failed: dependent "extra": no room']);
    bed.cluster.put("extra");
    assert.ok((await bed.cleanUp()).isKept);
    bed.cluster.failures.clear();
    assert.not((await bed.cleanUp()).isKept);
    assert.equal(bed.cluster.ids, []);
  });

  test("reject an unknown name with the available names", async () => {
    const messages: string[] = [];
    const reconciler = {
      reconcile: async ({ context }: Args) =>
        void messages.push(await messageOf(() => context.workflows.get("backups").reconcile())),
    };
    await (await create({ reconciler, workflows: { backup: [{ name: "extra" }] } })).reconcile();
    await (await create({ reconciler })).reconcile();
    assert.equal(messages, [
      'the controller has no workflow "backups"; it has "backup"',
      'the controller has no workflow "backups"; it has none besides its own',
    ]);
  });

  test("are returned for their definition, but not for a copy of it", async () => {
    const seen: unknown[] = [];
    const reconciler = {
      async reconcile({ context }: Args) {
        const { backup } = bed.workflows;
        const { dependents } = await context.workflows.get(backup!).reconcile();
        seen.push(dependents["extra"]?.kind, await messageOf(() => context.workflows.get({ ...backup! }).reconcile()));
      },
    };
    const bed = await create({ reconciler, workflows: { backup: [{ name: "extra" }] } });
    await bed.reconcile();
    assert.equal(seen, ["created", 'the workflow is none of the "workflows" of the controller; it has "backup"']);
  });

  test("reject two dependents of the same name in different workflows", async () => {
    const message = await messageOf(() => create({ workflows: { backup: [{ name: "a" }] } }));
    assert.is(message, 'controller "page" has two dependents named "a"');
  });

  test("forget a deleted primary", async () => {
    const bed = await create({
      dependents: [{ name: "a", activationCondition: holds }],
      workflows: { backup: [{ name: "extra", activationCondition: holds }, { name: "other" }] },
    });
    bed.dispatcher.primary.release("default/gone");
    assert.equal(bed.cluster.history, ["deactivate a for default/gone", "deactivate extra for default/gone"]);
  });
});
