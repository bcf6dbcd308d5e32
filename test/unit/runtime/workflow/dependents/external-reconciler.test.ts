// The reconciler of external dependents over an event source and a service in memory.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { singleResource } from "#runtime/sources/external-cache.js";
import type { ExternalDependentSource } from "#runtime/sources/dependent-sources.js";
import { cachingInboundSource } from "#runtime/sources/caching-inbound-source.js";
import type { DependentRun } from "#runtime/workflow/dependent-reconciler.js";
import { ExternalReconciler } from "#runtime/dependents/external-reconciler.js";
import type { RememberedState } from "#runtime/dependents/external-state.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../../support/suite.js";

interface Row {
  readonly id?: string;
  readonly value: string;
}

const primary: KubernetesObject = {
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name: "one", namespace: "home", uid: "u1" },
};

const run = {
  primary,
  secondary: {},
  context: { signal: new AbortController().signal },
} as unknown as DependentRun;

/** Keeps ids in memory, and notes when. */
class MemoryState implements Pick<
  RememberedState,
  "read" | "isKept" | "unprovenOf" | "lookUp" | "beginEnd" | "endingOf" | "set"
> {
  readonly ids = new Map<string, string>();
  failure: Error | undefined;
  isWritten: Promise<void> | undefined;
  readonly #history: string[];

  constructor(history: string[]) {
    this.#history = history;
  }

  read(): ReadonlyMap<string, string> {
    return this.ids;
  }

  isKept(_: unknown, key: string, id: string): boolean {
    return this.ids.get(key) === id;
  }

  unprovenOf(): undefined {}

  async lookUp(): Promise<boolean> {
    return false;
  }

  beginEnd(): void {}

  endingOf(): readonly string[] {
    return [];
  }

  async set(_: unknown, key: string, id: string | undefined): Promise<void> {
    this.#history.push(id === undefined ? `forget ${key}` : `keep ${key}=${id}`);
    if (id !== undefined && this.failure !== undefined) throw this.failure;
    if (id === undefined) this.ids.delete(key);
    else this.ids.set(key, id);
    await this.isWritten;
  }
}

interface Options {
  readonly functions?: { readonly [name: string]: unknown };
  readonly hasState?: boolean;
  readonly isShared?: boolean;
  readonly isBulk?: boolean;
}

function createReconciler({ functions = {}, hasState = false, isShared = false, isBulk = false }: Options = {}) {
  const history: string[] = [];
  const rows = new Map<string, Row>();
  const known = new Map<string, Row>();
  const idOf = ({ id = "" }: Row) => id;
  let next = 1;
  const definition = {
    name: "row",
    dependsOn: [],
    ...(isBulk ? { bulk: {} } : {}),
    source: { kind: "inbound" },
    idOf,
    create: (desired: Row, { state }: { state?: string }) => {
      const row = { id: `new-${next++}`, ...desired };
      history.push(`create ${row.id} with ${state}`);
      rows.set(row.id, row);
      return row;
    },
    update: (desired: Row, live: Row, { state }: { state?: string }) => {
      history.push(`update ${live.id} with ${state}`);
      return { ...live, ...desired };
    },
    delete: ({ id }: Row, { state }: { state?: string }) => void history.push(`delete ${id} with ${state}`),
    ...functions,
  } as ExternalDependent;
  let isStale = false;
  const source: ExternalDependentSource = {
    isShared,
    secondariesOf: () => [...known.values()],
    load: async () => {
      if (!isStale) return;
      history.push("load");
      isStale = false;
      for (const [id, row] of rows) known.set(id, row);
    },
    recordCreated: (key, row) => void (history.push(`created for ${key}`), known.set(idOf(row as Row), row as Row)),
    recordUpdated: (_, row) => void (history.push("updated"), known.set(idOf(row as Row), row as Row)),
    recordDeleted: (_, row) => void (history.push("deleted"), known.delete(idOf(row as Row))),
    invalidate: () => void (isStale = true),
    activate: async (key) => void history.push(`activate ${key}`),
    deactivate: async (key) => void history.push(`deactivate ${key}`),
  };
  const state = new MemoryState(history);
  const reconciler = new ExternalReconciler({ definition, source, state: hasState ? state : undefined });
  const write = (desired: Row, item?: string) => {
    const wanted = reconciler.complete(run, desired, item);
    return reconciler.write(run, wanted, reconciler.find(run, wanted)).then(({ kind }) => kind);
  };
  return { reconciler, history, rows, known, state, write };
}

async function rejected(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => assert.unreachable("it did not fail"),
    (error: Error) => error,
  ) as Promise<Error>;
}

suite("ExternalReconciler", (test) => {
  test("creates, keeps, updates and deletes a resource, and records each change", async () => {
    const { reconciler, history, write } = createReconciler();
    assert.is(await write({ id: "a", value: "1" }), "created");
    assert.is(await write({ id: "a", value: "1" }), "unchanged");
    assert.is(await write({ id: "a", value: "2" }), "updated");
    await reconciler.remove(run, reconciler.find(run)!);
    assert.is(reconciler.find(run), undefined);
    const expected = ["create a with undefined", "created for home/one", "update a with undefined", "updated"];
    assert.equal(history, [...expected, "delete a with undefined", "deleted"]);
  });

  test("reports write and remove as capabilities only for existing functions", () => {
    const without = (...names: readonly string[]) =>
      createReconciler({ functions: Object.fromEntries(names.map((name) => [name, undefined])) }).reconciler
        .capabilities;
    assert.equal(without(), { write: true, remove: true });
    assert.equal(without("create"), { write: true, remove: true });
    assert.equal(without("create", "update"), { write: false, remove: true });
    assert.equal(without("delete"), { write: true, remove: false });
  });

  test("waits for another client without create, and keeps differences without update", async () => {
    const { known, write } = createReconciler({ functions: { create: undefined } });
    assert.is(await write({ id: "a", value: "1" }), "absent");
    known.set("a", { id: "a", value: "0" });
    assert.is(await write({ id: "a", value: "1" }), "updated");
    const fixed = createReconciler({ functions: { update: undefined } });
    fixed.known.set("a", { id: "a", value: "0" });
    assert.is(await fixed.write({ id: "a", value: "1" }), "unchanged");
  });

  test("compares with a custom matches function", async () => {
    const { known, write, history } = createReconciler({ functions: { matches: () => true } });
    known.set("a", { id: "a", value: "0" });
    assert.is(await write({ id: "a", value: "1" }), "unchanged");
    assert.equal(history, []);
  });

  test("fails if idOf does not return a string, without storing the id", async () => {
    const numbered = (row: Row) => ({ ...row, id: 1 });
    const { reconciler, history, known, write } = createReconciler({
      ...{ hasState: true, isBulk: true },
      functions: { create: numbered },
    });
    const message = "idOf() returned a number (1); it has to return a text";
    assert.is((await rejected(write({ value: "1" }, "a"))).message, message);
    known.set("1", numbered({ value: "1" }) as never);
    assert.throws(() => reconciler.findItems(run), message);
    assert.equal(history, []);
  });

  test("looks up the resource after a failed create instead of creating it twice", async () => {
    const { rows, write, history } = createReconciler({
      functions: {
        create: (row: Row) => {
          history.push("create");
          rows.set("a", row);
          throw new Error("the answer was lost");
        },
      },
    });
    assert.match((await rejected(write({ id: "a", value: "1" }))).message, "the answer was lost");
    assert.is(await write({ id: "a", value: "1" }), "unchanged");
    assert.equal(history, ["create", "load"]);
  });

  test("looks up the resource after an aborted create that has not returned", async () => {
    const answers: (() => void)[] = [];
    const { reconciler, history, rows, write } = createReconciler({
      functions: {
        create: async (row: Row) => {
          history.push("create");
          rows.set("a", row);
          await new Promise<void>((resolve) => answers.push(resolve));
          return row;
        },
      },
    });
    const abort = new AbortController();
    const limited = { ...run, context: { signal: abort.signal } } as unknown as DependentRun;
    const desired = { id: "a", value: "1" };
    const first = reconciler.write(limited, reconciler.complete(limited, desired), undefined);
    await new Promise((resolve) => setImmediate(resolve));
    abort.abort(new Error("it took too long"));
    assert.is(await write(desired), "unchanged");
    assert.equal(history, ["create", "load"]);
    answers[0]!();
    await first;
  });

  test("finds the only resource without an id, and fails if there are several", async () => {
    const { reconciler, known, write } = createReconciler({
      functions: { matches: (a: Row, b: Row) => a.value === b.value },
    });
    assert.is(await write({ value: "1" }), "created");
    assert.is(await write({ value: "1" }), "unchanged");
    known.set("theirs", { id: "theirs", value: "1" });
    assert.throws(
      () => reconciler.find({ primary }),
      /expected one resource, found 2 \("new-1", "theirs"\) that belong to this primary; delete those that it does not need/,
    );
    assert.is(reconciler.find(run, { id: "theirs", object: {} })?.object, known.get("theirs"), "an id tells which");
  });

  test("rejects invalid results of desired() and create()", async () => {
    const { reconciler } = createReconciler();
    assert.throws(() => reconciler.complete(run, undefined), /desired\(\) returned undefined/);
    const silent = createReconciler({ functions: { create: () => undefined } });
    assert.match((await rejected(silent.write({ id: "a", value: "1" }))).message, /create\(\) returned undefined/);
    const other = createReconciler({ functions: { create: () => ({ id: "b", value: "1" }) } });
    assert.match((await rejected(other.write({ id: "a", value: "1" }))).message, /the id "b" for one with the id "a"/);
  });

  test("finds its own resources in a shared source by isOwn", async () => {
    const functions = {
      isOwn: ({ id = "" }: Row, { metadata }: KubernetesObject) => id.startsWith(`${metadata.name}-a`),
    };
    const { reconciler, known, write } = createReconciler({ isShared: true, functions });
    known.set("one-b", { id: "one-b", value: "theirs" });
    assert.is(reconciler.find(run), undefined, "before it is known what is wanted, as in a cleanup");
    assert.is(await write({ id: "one-a", value: "1" }), "created");
    assert.equal(reconciler.find(run)?.object, { id: "one-a", value: "1" });
    const bulk = createReconciler({ isShared: true, isBulk: true, functions });
    for (const id of ["one-a1", "one-a2", "one-b"]) bulk.known.set(id, { id, value: "1" });
    assert.equal([...bulk.reconciler.findItems(run).keys()], ["one-a1", "one-a2"]);
    assert.match(
      (await rejected(bulk.write({ id: "two", value: "1" }, "two"))).message,
      /a resource \(id "two"\) that isOwn says is of another dependent/,
    );
  });

  test("activates and deactivates its source", async () => {
    const { reconciler, history } = createReconciler();
    await reconciler.source.activate("home/one");
    await reconciler.source.deactivate("home/one");
    assert.equal(history, ["activate home/one", "deactivate home/one"]);
  });

  test("finds items by id, which must equal their key", async () => {
    const { reconciler, write } = createReconciler({ isBulk: true });
    await write({ id: "a", value: "1" }, "a");
    await write({ id: "b", value: "1" }, "b");
    assert.equal([...reconciler.findItems(run).keys()], ["a", "b"]);
    assert.is(reconciler.find(run), undefined, "there is no one resource");
    assert.throws(() => reconciler.complete(run, { id: "x", value: "1" }, "a"), /the item "a" has the id "x"/);
  });
});

suite("ExternalReconciler with state", (test) => {
  test("stores the id before it records a creation, and removes it after the resource", async () => {
    const { reconciler, history, state, write } = createReconciler({ hasState: true });
    assert.is(await write({ value: "1" }), "created");
    assert.equal([...state.ids], [["", "new-1"]]);
    await write({ value: "2" });
    await reconciler.remove(run, reconciler.find(run)!);
    const created = ["create new-1 with undefined", "keep =new-1", "created for home/one"];
    const deleted = ["delete new-1 with new-1", "deleted", "forget "];
    assert.equal(history, [...created, "update new-1 with new-1", "updated", ...deleted]);
  });

  test("records a creation before the id is stored, so that a poll in between emits no event", async () => {
    const { history, state, write } = createReconciler({ hasState: true });
    let written = () => {};
    state.isWritten = new Promise<void>((resolve) => (written = resolve));
    const writing = write({ value: "1" });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(history.slice(1), ["keep =new-1", "created for home/one"]);
    written();
    assert.is(await writing, "created");
  });

  test("stores the id if stateOf throws, and does not create twice", async () => {
    const stateOf = () => {
      throw new Error("no such field");
    };
    const { history, state, write } = createReconciler({ hasState: true, functions: { stateOf } });
    assert.is((await rejected(write({ value: "1" }))).message, "no such field");
    assert.equal([...state.ids] as unknown[], [["", { id: "new-1" }]]);
    await write({ value: "1" });
    assert.is(history.filter((event) => event.startsWith("create ")).length, 1);
  });

  test("stores an id later if it could not be stored, and does not create twice", async () => {
    const { history, state, write } = createReconciler({ hasState: true });
    state.failure = new Error("the API server is down");
    assert.is(await rejected(write({ value: "1" })), state.failure);
    state.failure = undefined;
    await write({ value: "1" });
    assert.equal([...state.ids], [["", "new-1"]]);
    assert.is(history.filter((event) => event.startsWith("create ")).length, 1);
  });

  test("stores the id of a late create unless another one was stored meanwhile", async () => {
    for (const isReplaced of [false, true]) {
      const answers: (() => void)[] = [];
      const { reconciler, state } = createReconciler({
        hasState: true,
        functions: {
          create: async (row: Row) => {
            await new Promise<void>((resolve) => answers.push(resolve));
            return { ...row, id: "late" };
          },
        },
      });
      const abort = new AbortController();
      const limited = { ...run, context: { signal: abort.signal } } as unknown as DependentRun;
      const writing = reconciler.write(limited, reconciler.complete(limited, { value: "1" }), undefined);
      await new Promise((resolve) => setImmediate(resolve));
      abort.abort(new Error("it took too long"));
      if (isReplaced) state.ids.set("", "second");
      answers[0]!();
      await writing;
      assert.is(state.ids.get(""), isReplaced ? "second" : "late");
    }
  });

  test("ignores foreign resources in a shared source", async () => {
    for (const isBulk of [false, true]) {
      const { reconciler, known, write } = createReconciler({ hasState: true, isShared: true, isBulk });
      known.set("theirs", { id: "theirs", value: "1" });
      assert.is(await write({ value: "1" }, isBulk ? "k" : undefined), "created");
      const found = isBulk ? [...reconciler.findItems(run).values()] : [reconciler.find(run)];
      assert.equal(
        found.map((live) => live?.object),
        [{ id: "new-1", value: "1" }],
      );
    }
  });

  test("stores one id per item by key", async () => {
    const { reconciler, state, write } = createReconciler({ hasState: true, isBulk: true });
    await write({ value: "1" }, "a");
    await write({ value: "1" }, "b");
    assert.equal(
      [...state.ids],
      [
        ["a", "new-1"],
        ["b", "new-2"],
      ],
    );
    const items = reconciler.findItems(run);
    assert.equal([...items.keys()], ["a", "b"]);
    await reconciler.remove(run, items.get("a")!);
    assert.equal([...state.ids], [["b", "new-2"]]);
  });
});

suite("event source with singleResource", (test) => {
  test("has one resource per primary", () => {
    const source = cachingInboundSource<Row>({ name: "rows", idOf: singleResource });
    source.recordCreated("home/one", { value: "1" });
    source.recordCreated("home/one", { value: "2" });
    assert.equal(source.secondariesOf(primary), [{ value: "1" }]);
    source.recordDeleted("home/one", { value: "1" });
    assert.equal(source.secondariesOf(primary), []);
  });
});
