// The way from an event to the write that it causes, as the stacks of a running operator show it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { Transport } from "#runtime/client/transport.js";
import { PrimaryReconciler } from "#runtime/reconcile/primary-reconciler.js";
import { WorkflowRuns } from "#runtime/reconcile/workflow-runs.js";
import { Dispatcher } from "#runtime/queue/work-queue.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, createPage, startPageOperator, untilText } from "../page-operator.js";

/** The files of the page's table, one after another. */
function filesOfPage(): string[] {
  const page = readFileSync(join(repositoryRoot, "runtime/docs/architecture.md"), "utf8");
  return [...page.matchAll(/^\| \d+ +\|[^|]*\| `([^`]+)\.ts`/gm)].map(([, file]) => file!);
}

/** The files of the runtime on the stack, the outermost first, each once for calls within it. */
function filesOnStack(): string[] {
  const files = [...(new Error().stack ?? "").matchAll(/runtime\/(?:dist|src)\/([\w/-]+)\.[jt]s:/g)].map(
    ([, file]) => file!,
  );
  // A loop that only calls back.
  const callers = files.filter((file) => file !== "base/wait").reverse();
  return callers.filter((file, index) => file !== callers[index - 1]);
}

/** Notes the stack of the first call of a method that is meant. */
function traceCalls<Method extends string>(
  { prototype }: { readonly prototype: { [Name in Method]: (...args: never[]) => unknown } },
  method: Method,
  isMeant: (...args: never[]) => boolean = () => true,
): Disposable & { readonly files: string[] } {
  const original = prototype[method];
  const traced = { files: [] as string[], [Symbol.dispose]: () => void (prototype[method] = original) };
  prototype[method] = function (this: unknown, ...args: never[]) {
    if (traced.files.length === 0 && isMeant(...args)) traced.files = filesOnStack();
    return original.apply(this, args);
  } as (typeof prototype)[Method];
  return traced;
}

suite("path from a watch event to a write", (test) => {
  test("passes through the files in architecture.md in order", async () => {
    const limit = Error.stackTraceLimit;
    using _restored = { [Symbol.dispose]: () => void (Error.stackTraceLimit = limit) };
    Error.stackTraceLimit = 200;
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    using submitted = traceCalls(Dispatcher, "submit");
    using begun = traceCalls(PrimaryReconciler, "run");
    using run = traceCalls(WorkflowRuns, "run");
    using sent = traceCalls(Transport, "send", ({ path }: { path: string }) =>
      path.includes("/configmaps/one-text?fieldManager=page"),
    );
    const ref = { name: "one-text", namespace: "default" };
    await page.operator.client.mergePatch(ConfigMap, ref, { data: { text: "theirs" } });
    await waitFor("it is written", () => sent.files.length > 0);
    // No stack has the callers of a function that nobody awaits, so the way is put together from four.
    const parts = [
      [...submitted.files, "queue/work-queue"],
      [...begun.files, "reconcile/primary-reconciler"],
      [...run.files, "reconcile/workflow-runs"],
      [...sent.files, "client/transport"],
    ];
    const way = parts.flat().filter((file, index, all) => file !== all[index - 1]);
    assert.equal(way, filesOfPage());
  });
});
