// The page about the architecture of the runtime says what the code says.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Transport } from "#runtime/client/transport.js";
import { PrimaryReconciler } from "#runtime/reconcile/primary-reconciler.js";
import { WorkflowRuns } from "#runtime/reconcile/workflow-runs.js";
import { Dispatcher } from "#runtime/queue/work-queue.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  startPageOperator,
  untilText,
} from "../../integration/runtime/page-operator.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { layers } from "../layer-table.js";
import { isDeclaredIn, namesIn, rowsWith } from "./declared-names.js";

const HOPS = 22;

suite("architecture page", (test) => {
  const page = readFileSync(join(repositoryRoot, "runtime/docs/architecture.md"), "utf8");
  const wayRows = () => rowsWith(page, ["no.", "function", "file", "what it adds"]);

  test("contains the table of layers as the tests enforce it", () => {
    const rows = rowsWith(page, ["room", "holds", "values of", "types of"]).filter(([room]) => room !== "`api`");
    const told = rows.map(([room, , values, types]) => [namesIn(room)[0], namesIn(values), namesIn(types)]);
    const wanted = Object.entries(layers.runtime).map(([room, { values, types = [] }]) => [room, values, types]);
    const sorted = (table: unknown[][]) =>
      table
        .map(([room, ...lists]) => [room, ...lists.map((each) => [...(each as string[])].sort())])
        .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    assert.equal(sorted(told), sorted(wanted));
  });

  test(`lists at most ${HOPS} functions from watch event to write, each declared in its file`, () => {
    const rows = wayRows();
    assert.is(rows.length > 0 && rows.length <= HOPS, true, `${rows.length} rows`);
    const missing = rows.flatMap(([, functions, file]) => {
      const text = readFileSync(join(repositoryRoot, "runtime/src", namesIn(file)[0]!), "utf8");
      const names = namesIn(functions).flatMap((name) => name.split("."));
      return names.filter((name) => !isDeclaredIn(text, name)).map((name) => `${file} declares no ${name}`);
    });
    assert.equal(missing, []);
  });

  test("lists these functions in call order", async () => {
    const rows = wayRows().map(([, functions, file]) => {
      const names = namesIn(functions).flatMap((name) => name.split("."));
      return { file: namesIn(file)[0]!.replace(/\.ts$/, ""), names };
    });
    const stacks = await stacksOfWrite();
    for (const [{ file, names }, next] of rows.slice(0, -1).map((row, index) => [row, rows[index + 1]!] as const)) {
      const handsOver = stacks.some((frames) => {
        const inner = frames.findIndex((frame) => frame.file === next.file && next.names.includes(frame.name));
        const outer = frames.slice(inner + 1).find((frame) => frame.file !== next.file && isListed(frame));
        return inner >= 0 && outer !== undefined && outer.file === file && names.includes(outer.name);
      });
      assert.ok(handsOver, `${file} (${names.join(", ")}) hands over to ${next.file} (${next.names.join(", ")})`);
    }

    function isListed(frame: Frame): boolean {
      return rows.some(({ file, names }) => file === frame.file && names.includes(frame.name));
    }
  });
});

interface Frame {
  readonly file: string;
  readonly name: string;
}

/** Returns the stacks of the functions that somebody else's change of a dependent runs through, each with the innermost frame first. */
async function stacksOfWrite(): Promise<Frame[][]> {
  const stacks: Frame[][] = [];
  let isRecorded = false;
  const record = (file: string, name: string) => {
    if (!isRecorded) return;
    const lines = new Error().stack!.matchAll(
      /at (?:async )?(?:[\w$]+\.)?(#?[\w$]+) \(\S*\/runtime\/dist\/(\S+)\.js:/g,
    );
    stacks.push([{ file, name }, ...[...lines].map(([, frame, path]) => ({ file: path!, name: frame! }))]);
  };
  const watched: readonly (readonly [object: object, file: string, name: string])[] = [
    [Dispatcher.prototype, "queue/work-queue", "submit"],
    [PrimaryReconciler.prototype, "reconcile/primary-reconciler", "run"],
    [WorkflowRuns.prototype, "reconcile/workflow-runs", "run"],
    [Transport.prototype, "client/transport", "send"],
  ];
  const { stackTraceLimit } = Error;
  const originals = watched.map(([object, file, name]) => {
    const original = Object.getOwnPropertyDescriptor(object, name)!;
    const value = function (this: unknown, ...args: unknown[]): unknown {
      record(file, name);
      return (original.value as (...args: unknown[]) => unknown).apply(this, args);
    };
    Object.defineProperty(object, name, { ...original, value });
    return () => void Object.defineProperty(object, name, original);
  });
  Error.stackTraceLimit = 100;
  try {
    const activationCondition = () => {
      record("the user", "activationCondition");
      return true;
    };
    await using page = await startPageOperator({ dependents: [configMapOf("text", { activationCondition })] });
    await createPage(page);
    await page.quiet();
    isRecorded = true;
    await page.operator.client.mergePatch(
      ConfigMap,
      { name: "one-text", namespace: "default" },
      { data: { text: "x" } },
    );
    await untilText(page, "first");
    return stacks;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    for (const putBack of originals) putBack();
  }
}
