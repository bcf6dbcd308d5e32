import { keyOf, type KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { createStatusState, RememberedState } from "#runtime/workflow/dependents/external-state.js";
import { assert, suite } from "../../../../support/suite.js";
import { createState, primary, primaryNamed } from "./object-states.js";

suite("the state of an external dependent in the status", (test) => {
  const patches: object[] = [];
  const stateAt = (isMap: boolean, status: unknown, isObject = false) =>
    createStatusState({
      path: ["ids", "account"],
      form: { isMap, isObject },
      latest: (object) => ({ ...object, status }) as KubernetesObject,
      mergePatchStatus: async (object, patch) => {
        patches.push(patch);
        return { kind: "updated", object };
      },
    });

  test("is read from the latest state of the primary, and written at its path", async () => {
    assert.equal([...stateAt(false, undefined).read(primary)], []);
    assert.equal([...stateAt(false, { ids: { account: "1" } }).read(primary)], [["", "1"]]);
    assert.equal([...stateAt(true, { ids: { account: { a: "1" } } }).read(primary)], [["a", "1"]]);
    patches.length = 0;
    await stateAt(false, undefined).set(primary, "", "1");
    await stateAt(true, undefined).set(primary, "a", "1");
    await stateAt(true, { ids: { account: { a: "1" } } }).set(primary, "a", undefined);
    await stateAt(true, undefined).set(primary, "a", undefined);
    assert.equal(patches, [
      { ids: { account: "1" } },
      { ids: { account: { a: "1" } } },
      { ids: { account: { a: null } } },
    ]);
  });

  test("with more than an id has nothing of the state before", async () => {
    patches.length = 0;
    const state = stateAt(false, { ids: { account: { id: "1", region: "eu" } } }, true);
    assert.equal([...state.read(primary)], [["", { id: "1", region: "eu" }]]);
    await state.set(primary, "", { id: "2" });
    assert.equal(patches, [{ ids: { account: null } }, { ids: { account: { id: "2" } } }]);
  });
});

suite("kept ids that are remembered", (test) => {
  const createRemembered = () => {
    const { state: kept, objects } = createState();
    let failure: Error | undefined;
    const state = new RememberedState({
      read: (each) => kept.read(each),
      set: (each, key, id) =>
        failure === undefined || id === undefined ? kept.set(each, key, id) : Promise.reject(failure),
    });
    const fail = (error?: Error) => void (failure = error);
    return { state, kept, objects, fail };
  };

  test("are known although somebody deleted what they are kept in, and are not said to be kept", async () => {
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

  test("are known although they could not be written", async () => {
    const { state, fail } = createRemembered();
    fail(new Error("the API server is down"));
    await state.set(primary, "a", "1").catch(() => {});
    assert.equal([...state.read(primary)], [["a", "1"]]);
    fail();
    assert.not.ok(state.isKept(primary, "a", "1"));
  });

  test("are the new ones as soon as they are written over others, and not the ones before", async () => {
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

  test("are known although they could not be written over others, until somebody writes there", async () => {
    const { state, kept, fail } = createRemembered();
    await state.set(primary, "a", "1");
    fail(new Error("the API server is down"));
    await state.set(primary, "a", "2").catch(() => {});
    assert.equal([...state.read(primary)], [["a", "2"]]);
    assert.not.ok(state.isKept(primary, "a", "2"));
    await kept.set(primary, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("stay forgotten while what they were kept in still shows them", async () => {
    const { kept } = createRemembered();
    const state = new RememberedState({ read: (each) => kept.read(each), set: async () => {} });
    await kept.set(primary, "a", "1");
    assert.equal([...state.read(primary)], [["a", "1"]]);
    await state.set(primary, "a", undefined);
    assert.equal([...state.read(primary)], []);
    await kept.set(primary, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("are those that somebody wrote there", async () => {
    const { state, kept } = createRemembered();
    await state.set(primary, "a", "1");
    await kept.set(primary, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("are forgotten with the resource, and with the primary", async () => {
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
