import { keyOf, type KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { RememberedState, type StateProofs, StatusStateStore } from "#runtime/dependents/external-state.js";
import { applyMergePatch } from "@gen-operator/schema";
import { assert, suite } from "../../../../support/suite.js";
import { createState, primary, primaryNamed, proofsOf, statesIn } from "./object-states.js";

interface Stated {
  readonly isMap?: boolean;
  readonly isObject?: boolean;
  readonly status?: object;
  readonly stop?: number;
  readonly proofs?: StateProofs;
}

suite("state of an external dependent in the status", (test) => {
  const proofs = proofsOf(["accounts"]);
  /** A primary in memory, whose status and annotations a store changes; `stop` ends it before a patch. */
  const createPrimary = ({ isMap = false, isObject = false, status = {}, stop = Infinity, ...stated }: Stated = {}) => {
    let object = { ...primary, status } as KubernetesObject;
    const patches: object[] = [];
    const write = async (patch: object) => {
      if (patches.length === stop) throw new Error("the operator ended");
      patches.push(patch);
      object = applyMergePatch(object as never, patch as never) as unknown as KubernetesObject;
      return { kind: "updated" as const, object };
    };
    const store = new StatusStateStore({
      ...{ path: ["ids", "account"], form: { isMap, isObject }, proofs: stated.proofs ?? proofs },
      latest: () => object,
      mergePatchStatus: (_, patch) => write({ status: patch }),
      mergePatchAnnotations: (_, annotations) => write({ metadata: { annotations } }),
    });
    const edit = (patch: object) => void (object = applyMergePatch(object as never, patch as never) as never);
    return { store, patches, edit, current: () => object };
  };

  test("is read from the latest primary and written at its path after its proof", async () => {
    const single = createPrimary();
    await single.store.set(primary, "", "1");
    assert.equal([...statesIn(single.store, primary)], [["", "1"]]);
    const [annotation, status] = single.patches as [{ metadata: { annotations: object } }, object];
    assert.match(Object.keys(annotation.metadata.annotations).join(), /^gen-operator\.dev\/proof-[0-9a-f]{16}$/);
    assert.equal(status, { status: { ids: { account: "1" } } });
    const many = createPrimary({ isMap: true });
    await Promise.all(["a", "b"].map((key) => many.store.set(primary, key, `id-${key}`)));
    assert.equal(Object.fromEntries(statesIn(many.store, primary)), { a: "id-a", b: "id-b" });
    await many.store.set(primary, "a", undefined);
    assert.equal([...statesIn(many.store, primary)], [["b", "id-b"]]);
    assert.is(Object.keys(many.current().metadata.annotations ?? {}).length, 1, "the proof goes with the state");
    const before = many.patches.length;
    await many.store.set(primary, "a", undefined);
    await many.store.set(primary, "b", "id-b");
    assert.is(many.patches.length, before, "what is kept is not written again");
  });

  test("with more than an id is replaced completely", async () => {
    const { store, current } = createPrimary({ isObject: true });
    await store.set(primary, "", { id: "1", region: "eu" } as never);
    await store.set(primary, "", { id: "2" });
    assert.equal((current() as never as { status: object }).status, { ids: { account: { id: "2" } } });
    assert.equal([...statesIn(store, primary)], [["", { id: "2" }]]);
  });

  test("has a valid proof wherever the operator stops while it is written or overwritten", async () => {
    for (const stop of [1, 2, 3]) {
      const { store } = createPrimary({ stop });
      for (const id of ["1", "2"]) await store.set(primary, "", id).catch(() => {});
      const all = [...store.read(primary).values()];
      assert.equal(
        all.map(({ standing }) => standing),
        stop === 1 ? [] : ["current"],
        `${stop}`,
      );
    }
  });

  test("has no valid proof if it was modified, its proof removed, or that of another item copied", async () => {
    const { store, edit, current } = createPrimary({ isMap: true });
    await Promise.all(["a", "b"].map((key) => store.set(primary, key, `id-${key}`)));
    const names = ["a", "b"].map((key) => proofs.annotationsOn(key)[0]);
    const [ofA, ofB] = names.map((name) => current().metadata.annotations?.[name]);
    const attacks = [
      { status: { ids: { account: { a: "id-of-bob" } } } },
      { metadata: { annotations: { [names[0]!]: null } } },
      { metadata: { annotations: { [names[0]!]: ofB } } },
      { status: { ids: { account: { a: "id-b" } } }, metadata: { annotations: { [names[0]!]: ofB } } },
    ];
    for (const attack of attacks) {
      edit(attack);
      assert.equal([...statesIn(store, primary)], [["b", "id-b"]], JSON.stringify(attack));
      edit({ status: { ids: { account: { a: "id-a" } } }, metadata: { annotations: { [names[0]!]: ofA } } });
      assert.is(statesIn(store, primary).size, 2);
    }
  });

  test("is accepted under former names of dependent and controller, and signed again", async () => {
    const before = createPrimary();
    await before.store.set(primary, "", "1");
    for (const [dependents, controllers] of [
      [["users", "accounts"], ["shop"]],
      [["accounts"], ["store", "shop"]],
    ] as const) {
      const { store, edit, current } = createPrimary({
        proofs: proofsOf(dependents as never, { controllers: controllers as never }),
      });
      edit({ metadata: before.current().metadata, status: { ids: { account: "1" } } });
      assert.is(store.read(primary).get("")?.standing, "former");
      await store.set(primary, "", "1");
      assert.is(store.read(primary).get("")?.standing, "current");
      assert.is(Object.keys(current().metadata.annotations ?? {}).length, 1);
    }
  });

  test("without a proof is signed for all items in one write", async () => {
    const { store, patches } = createPrimary({ isMap: true, status: { ids: { account: { a: "1", b: "2" } } } });
    assert.is(statesIn(store, primary).size, 0);
    assert.is(await store.adopt(primary), 2);
    assert.is(statesIn(store, primary).size, 2);
    assert.is(patches.length, 1);
    assert.is(await store.adopt(primary), 0);
    assert.is(patches.length, 1);
  });
});

suite("remembered state", (test) => {
  const createRemembered = () => {
    const { state: kept, objects } = createState();
    let failure: Error | undefined;
    const state = new RememberedState({
      read: (each) => kept.read(each),
      adopt: (each) => kept.adopt(each),
      set: (each, key, id) =>
        failure === undefined || id === undefined ? kept.set(each, key, id) : Promise.reject(failure),
    });
    const fail = (error?: Error) => void (failure = error);
    return { state, kept, objects, fail };
  };

  test("is known after another client deleted its storage, but not reported as stored", async () => {
    const { state, objects } = createRemembered();
    await state.set(primary, "a", "1");
    await state.set(primary, "b", "2");
    assert.ok(state.isKept(primary, "a", "1"));
    objects.clear();
    assert.equal([...state.read(primary)].sort(), [
      ["a", "1"],
      ["b", "2"],
    ]);
    assert.not.ok(state.isKept(primary, "a", "1"));
    await state.set(primary, "a", "1");
    assert.ok(state.isKept(primary, "a", "1"));
    assert.not.ok(state.isKept(primary, "b", "2"));
  });

  test("is known if it could not be written", async () => {
    const { state, fail } = createRemembered();
    fail(new Error("the API server is down"));
    await state.set(primary, "a", "1").catch(() => {});
    assert.equal([...state.read(primary)], [["a", "1"]]);
    fail();
    assert.not.ok(state.isKept(primary, "a", "1"));
  });

  test("is the new value as soon as a write starts", async () => {
    const { state } = createRemembered();
    await state.set(primary, "a", "1");
    const writing = state.set(primary, "a", "2");
    assert.equal([...state.read(primary)], [["a", "2"]]);
    await Promise.resolve();
    assert.equal([...state.read(primary)], [["a", "2"]]);
    const next = state.set(primary, "a", "3");
    await writing;
    assert.equal([...state.read(primary)], [["a", "3"]], "what an earlier write brought is not news");
    await next;
    assert.equal([...state.read(primary)], [["a", "3"]]);
    assert.ok(state.isKept(primary, "a", "3"));
  });

  test("is the new value after a failed write, until another client writes it", async () => {
    const { state, kept, fail } = createRemembered();
    await state.set(primary, "a", "1");
    fail(new Error("the API server is down"));
    await state.set(primary, "a", "2").catch(() => {});
    assert.equal([...state.read(primary)], [["a", "2"]]);
    assert.not.ok(state.isKept(primary, "a", "2"));
    await kept.set(primary, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("stays deleted while its storage still returns it", async () => {
    const { kept } = createRemembered();
    const state = new RememberedState({ read: (each) => kept.read(each), set: async () => {}, adopt: async () => 0 });
    await kept.set(primary, "a", "1");
    assert.equal([...state.read(primary)], [["a", "1"]]);
    await state.set(primary, "a", undefined);
    assert.equal([...state.read(primary)], []);
    await kept.set(primary, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("is the value that another client wrote", async () => {
    const { state, kept } = createRemembered();
    await state.set(primary, "a", "1");
    await kept.set(primary, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("is dropped with the resource and with the primary", async () => {
    const { state, objects } = createRemembered();
    await state.set(primary, "a", "1");
    await state.set(primary, "b", "2");
    await state.set(primary, "a", undefined);
    objects.clear();
    assert.equal([...state.read(primary)], [["b", "2"]]);
    assert.is(state.read(primaryNamed("one", "u2")).size, 0, "another primary of the name");
    assert.equal([...state.read(primary)], [["b", "2"]], "it was not forgotten for the other");
    state.forget(keyOf(primary.metadata));
    assert.is(state.read(primary).size, 0);
  });
});
