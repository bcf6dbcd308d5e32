import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import {
  ConfigMapState,
  STATE_LABEL,
  StatusState,
  type AppliedConfigMap,
} from "#runtime/workflow/dependents/external-state.js";
import { RememberedState } from "#runtime/workflow/dependents/remembered-state.js";
import { assert, suite } from "../../../support/suite.js";
import { page } from "./graphs.js";

const primaryNamed = (name: string, uid = "u1"): KubernetesObject => ({
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name, namespace: "home", uid },
});
const primary = primaryNamed("one");

/** A store over ConfigMaps in memory, which are there as soon as they are applied, and a turn later than that is asked for. */
function createState(dependent = "accounts") {
  const objects = new Map<ObjectKey, KubernetesObject>();
  const state = new ConfigMapState({
    dependent,
    primary: page,
    label: "shop",
    view: { get: (key) => (objects.has(key) ? { object: objects.get(key)! } : undefined) },
    apply: async (object: AppliedConfigMap) => {
      await Promise.resolve();
      objects.set(keyOf(object.metadata), object as unknown as KubernetesObject);
    },
    delete: async ({ metadata }) => objects.delete(keyOf(metadata)),
  });
  return { state, objects };
}

suite("the state of an external dependent in a ConfigMap", (test) => {
  test("belongs to the primary, and goes with the last id", async () => {
    const { state, objects } = createState();
    await state.write({ primary }, "", "id-1");
    const [{ metadata, ...rest }] = [...objects.values()] as [KubernetesObject];
    assert.equal(rest as object, { data: { id: "id-1" } });
    assert.equal(metadata.labels, { [STATE_LABEL]: "shop", "gen-operator.dev/controller": "shop" });
    const owner = { apiVersion: page.apiVersion, kind: page.kind, name: "one", uid: "u1", controller: true };
    assert.equal(metadata.ownerReferences, [owner]);
    await state.remove({ primary }, "other");
    assert.is(objects.size, 1);
    await state.remove({ primary }, "");
    assert.is(objects.size, 0);
  });

  test("keeps the ids of items under any keys, although they are written at once", async () => {
    const { state, objects } = createState();
    const keys = ["id", "item.", "..", "a_b", "a/b c", "ä", "😀", "_61", "A%41"];
    await Promise.all(keys.map((key, index) => state.write({ primary }, key, String(index))));
    assert.equal(
      [...state.read(primary)].sort(),
      keys.map((key, index) => [key, String(index)] as [string, string]).sort(),
    );
    const { data } = [...objects.values()][0] as unknown as AppliedConfigMap;
    assert.ok(Object.keys(data).every((key) => /^[-._a-zA-Z0-9]+$/.test(key) && !/^\.\.?$/.test(key)));
    await Promise.all(keys.slice(1).map((key) => state.remove({ primary }, key)));
    assert.equal([...state.read(primary)], [["id", "0"]]);
  });

  test("of an earlier primary of the name is not that of this one", async () => {
    const { state } = createState();
    await state.write({ primary }, "", "id-1");
    const next = primaryNamed("one", "u2");
    assert.is(state.read(next).size, 0);
    await state.write({ primary: next }, "", "id-2");
    assert.equal([...state.read(next)], [["", "id-2"]]);
  });

  test("has a name of its own for each primary and dependent, which is a name of Kubernetes", async () => {
    const names = new Set<string>();
    const primaries = ["a", `${"x".repeat(200)}.${"y".repeat(52)}`, `${"z".repeat(236)}.${"y".repeat(16)}`].map(
      (name) => primaryNamed(name),
    );
    const pairs = primaries.flatMap((each) =>
      ["accounts", "Accounts", "acc_ounts"].map((name) => [each, name] as const),
    );
    for (const [each, name] of pairs) {
      const { state, objects } = createState(name);
      await state.write({ primary: each }, "", "1");
      names.add([...objects.values()][0]!.metadata.name);
    }
    assert.is(names.size, pairs.length);
    for (const name of names) {
      assert.match(name, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
      assert.ok(name.length <= 253);
    }
  });

  test("can be written after a write that failed", async () => {
    const { state, objects } = createState();
    const failing = new ConfigMapState({
      dependent: "accounts",
      primary: page,
      label: "shop",
      view: { get: (key) => (objects.has(key) ? { object: objects.get(key)! } : undefined) },
      apply: async () => Promise.reject(new Error("the API server is down")),
      delete: async () => {},
    });
    const failure = await failing.write({ primary }, "", "1").catch((error: Error) => error.message);
    assert.is(failure, "the API server is down");
    await state.write({ primary }, "", "1");
    assert.equal([...failing.read(primary)], [["", "1"]]);
  });
});

suite("the state of an external dependent in the status", (test) => {
  const patches: object[] = [];
  const stateAt = (isBulk: boolean, status: unknown) =>
    new StatusState({
      path: ["ids", "account"],
      isBulk,
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
    await stateAt(false, undefined).write({ primary }, "", "1");
    await stateAt(true, undefined).write({ primary }, "a", "1");
    await stateAt(true, { ids: { account: { a: "1" } } }).remove({ primary }, "a");
    await stateAt(true, undefined).remove({ primary }, "a");
    assert.equal(patches, [
      { ids: { account: "1" } },
      { ids: { account: { a: "1" } } },
      { ids: { account: { a: null } } },
    ]);
  });
});

suite("kept ids that are remembered", (test) => {
  const createRemembered = () => {
    const { state: kept, objects } = createState();
    let failure: Error | undefined;
    const state = new RememberedState({
      read: (each) => kept.read(each),
      remove: (run, key) => kept.remove(run, key),
      write: (run, key, id) => (failure === undefined ? kept.write(run, key, id) : Promise.reject(failure)),
    });
    const fail = (error?: Error) => void (failure = error);
    return { state, kept, objects, fail };
  };

  test("are known although somebody deleted what they are kept in, and are not said to be kept", async () => {
    const { state, objects } = createRemembered();
    await state.write({ primary }, "a", "1");
    await state.write({ primary }, "b", "2");
    assert.ok(state.isKept(primary, "a", "1"));
    objects.clear();
    assert.equal([...state.read(primary)].sort(), [
      ["a", "1"],
      ["b", "2"],
    ]);
    assert.not.ok(state.isKept(primary, "a", "1"));
    await state.write({ primary }, "a", "1");
    assert.ok(state.isKept(primary, "a", "1"));
    assert.not.ok(state.isKept(primary, "b", "2"));
  });

  test("are known although they could not be written", async () => {
    const { state, fail } = createRemembered();
    fail(new Error("the API server is down"));
    await state.write({ primary }, "a", "1").catch(() => {});
    assert.equal([...state.read(primary)], [["a", "1"]]);
    fail();
    assert.not.ok(state.isKept(primary, "a", "1"));
  });

  test("are those that somebody wrote there", async () => {
    const { state, kept } = createRemembered();
    await state.write({ primary }, "a", "1");
    await kept.write({ primary }, "a", "theirs");
    assert.equal([...state.read(primary)], [["a", "theirs"]]);
  });

  test("are forgotten with the resource, and with the primary", async () => {
    const { state, objects } = createRemembered();
    await state.write({ primary }, "a", "1");
    await state.write({ primary }, "b", "2");
    await state.remove({ primary }, "a");
    objects.clear();
    assert.equal([...state.read(primary)], [["b", "2"]]);
    assert.is(state.read(primaryNamed("one", "u2")).size, 0, "another primary of the name");
    state.forget(keyOf(primary.metadata));
    assert.is(state.read(primary).size, 0);
  });
});
