import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { RememberedState } from "#runtime/dependents/external-state.js";
import { ObjectStateStore, STATE_LABEL } from "#runtime/dependents/object-state.js";
import type { ObjectState } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../../support/suite.js";
import { page } from "../graphs.js";
import { createState, primary, primaryNamed, statesIn } from "./object-states.js";

suite("external state", (test) => {
  test("is owned by the primary and deleted with its last id", async () => {
    const { state, objects } = createState();
    await state.set(primary, "", "id-1");
    const [{ metadata, ...rest }] = [...objects.values()] as [KubernetesObject];
    const { data } = rest as unknown as { data: { id: string; mac: string } };
    assert.equal([Object.keys(data), data.id], [["id", "mac"], "id-1"]);
    assert.equal(metadata.labels, { [STATE_LABEL]: "shop", "gen-operator.dev/controller": "shop" });
    const owner = { apiVersion: page.apiVersion, kind: page.kind, name: "one", uid: "u1", controller: true };
    assert.equal(metadata.ownerReferences, [owner]);
    await state.set(primary, "other", undefined);
    assert.is(objects.size, 1);
    await state.set(primary, "", undefined);
    assert.is(objects.size, 0);
  });

  test("stores ids of items with any keys, also if they are written concurrently", async () => {
    const { state, objects } = createState();
    const keys = ["id", "item.", "..", "a_b", "a/b c", "ä", "😀", "_61", "A%41"];
    await Promise.all(keys.map((key, index) => state.set(primary, key, String(index))));
    assert.equal(
      [...statesIn(state, primary)].sort(),
      keys.map((key, index) => [key, String(index)] as [string, string]).sort(),
    );
    const { data } = [...objects.values()][0] as unknown as { readonly data: object };
    assert.ok(Object.keys(data).every((key) => /^[-._a-zA-Z0-9]+$/.test(key) && !/^\.\.?$/.test(key)));
    await Promise.all(keys.slice(1).map((key) => state.set(primary, key, undefined)));
    assert.equal([...statesIn(state, primary)], [["id", "0"]]);
  });

  test("ignores keys that another client wrote", async () => {
    const { state, objects } = createState();
    await state.set(primary, "a", "id-1");
    const [[key, object]] = [...objects.entries()] as [[ObjectKey, KubernetesObject & { data: object }]];
    objects.set(key, { ...object, data: { ...object.data, notes: "x", "item.a_ff": "y" } } as KubernetesObject);
    assert.equal([...statesIn(state, primary)], [["a", "id-1"]]);
  });

  test("is not shared with a previous primary of the same name", async () => {
    const { state, objects } = createState();
    await state.set(primary, "", "id-1");
    const next = primaryNamed("one", "u2");
    assert.is(statesIn(state, next).size, 0);
    // The garbage collector deletes it, and until then it is not written over.
    const refused = await state.set(next, "", "id-2").catch(({ message }: Error) => message);
    assert.match(String(refused), /already exists and belongs to Page "one" \(uid u1\)/);
    objects.clear();
    await state.set(next, "", "id-2");
    assert.equal([...statesIn(state, next)], [["", "id-2"]]);
  });

  test("has a unique, valid object name for each primary and dependent", async () => {
    const names = new Set<string>();
    const primaries = ["a", `${"x".repeat(200)}.${"y".repeat(52)}`, `${"z".repeat(236)}.${"y".repeat(16)}`].map(
      (name) => primaryNamed(name),
    );
    const pairs = primaries.flatMap((each) =>
      ["accounts", "Accounts", "acc_ounts"].map((name) => [each, name] as const),
    );
    for (const [each, name] of pairs) {
      const { state, objects } = createState(name);
      await state.set(each, "", "1");
      names.add([...objects.values()][0]!.metadata.name);
    }
    assert.is(names.size, pairs.length);
    for (const name of names) {
      assert.match(name, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
      assert.ok(name.length <= 253);
    }
  });

  test("has a unique object name for each controller and kind of primary", async () => {
    const objects = new Map<ObjectKey, KubernetesObject>();
    const others = [
      {},
      { label: "other" },
      { primary: { ...page, kind: "Leaf" } },
      { primary: { ...page, group: "a.b" } },
    ];
    const stores = others.map((other) => createState("accounts", undefined, { ...other, objects }).state);
    for (const [index, state] of stores.entries()) await state.set(primary, "", `${index}`);
    assert.is(objects.size, others.length);
    assert.equal(
      stores.map((state) => statesIn(state, primary).get("")),
      ["0", "1", "2", "3"],
    );
  });

  for (const perItem of [false, true])
    test(`is moved to a new name, with a warning if another id is stored there: ${perItem ? "per item" : "together"}`, async () => {
      for (const [kind, said] of [
        ["configMap", 'the id "old"'],
        ["secret", "another id"],
      ] as const) {
        const objects = new Map<ObjectKey, KubernetesObject>();
        const before = createState("before", { kind, perItem }, { objects }).state;
        const now = createState("now", { kind, perItem }, { objects, movedFrom: ["before"] });
        await before.set(primary, "a", "same");
        await now.state.set(primary, "a", "same");
        assert.equal([now.warnings, objects.size], [[], 1]);
        await before.set(primary, "a", "old");
        await now.state.set(primary, "a", "same");
        assert.is(objects.size, 1);
        assert.is(now.warnings.length, 1);
        assert.ok(
          now.warnings[0]!.includes(`keeps ${said} of an earlier version; "now" has an id already`),
          now.warnings[0],
        );
        assert.equal([...statesIn(now.state, primary)], [["a", "same"]]);
      }
    });

  for (const perItem of [false, true])
    for (const kept of [
      { kind: "configMap" },
      { kind: "secret" },
      { kind: "resource", resource: page, path: ["spec"] },
    ] as const)
      for (const movedFrom of [undefined, ["before"]])
        test(`is migrated between one object and one per item: ${kept.kind}, ${perItem ? "per item" : "together"}${movedFrom ? ", and to a new name" : ""}`, async () => {
          const objects = new Map<ObjectKey, KubernetesObject>();
          const former = createState(movedFrom?.[0] ?? "now", { ...kept, perItem: !perItem }, { objects }).state;
          const { state, warnings } = createState("now", { ...kept, perItem }, { objects, movedFrom });
          for (const key of ["a", "b", "c", "d"]) await former.set(primary, key, `id-${key}`);
          const remembered = new RememberedState(state);
          assert.equal(
            [...remembered.read(primary).values()].sort(),
            ["a", "b", "c", "d"].map((key) => `id-${key}`),
          );
          assert.not(remembered.isKept(primary, "a", "id-a"));
          // Whichever comes first moves all, so that the former objects may go.
          await Promise.all([
            remembered.set(primary, "d", undefined),
            remembered.set(primary, "a", "id-a"),
            remembered.set(primary, "b", "other"),
            remembered.set(primary, "e", "id-e"),
          ]);
          assert.ok(remembered.isKept(primary, "a", "id-a"));
          assert.is(objects.size, perItem ? 4 : 1);
          const alone = createState("now", { ...kept, perItem }, { objects }).state;
          const all = { a: "id-a", b: "other", c: "id-c", e: "id-e" };
          assert.equal(Object.fromEntries([...statesIn(alone, primary)].sort()), all);
          assert.equal(warnings, []);
          // An operator that went back to an earlier version may have kept an id in the former place, which counts less.
          const older = createState(movedFrom?.[0] ?? "now", { ...kept, perItem: !perItem });
          await older.state.set(primary, "a", "theirs");
          for (const [key, object] of older.objects) objects.set(key, object);
          assert.equal(Object.fromEntries([...statesIn(state, primary)].sort()), all);
          await state.set(primary, "a", "id-a");
          assert.equal([objects.size, warnings.length], [perItem ? 4 : 1, 1]);
        });

  test("is rejected if an earlier version stored it at another path and in another form", async () => {
    const objects = new Map<ObjectKey, KubernetesObject>();
    const kept = { kind: "resource", resource: page, path: ["spec", "ids"] } as const;
    await createState("accounts", kept, { objects }).state.set(primary, "a", "id-a");
    const { state } = createState("accounts", { ...kept, path: ["spec", "id"], perItem: true }, { objects });
    const said = /"home\/one-accounts-\w+-state" keeps ids of "accounts", and has none at spec\.id; go back to the/;
    assert.throws(() => statesIn(state, primary), said);
    assert.match(String(await state.set(primary, "b", "id-b").catch(({ message }: Error) => message)), said);
    assert.is(objects.size, 1);
  });

  test("can be written after a failed write", async () => {
    const { state, options } = createState();
    const apply = async () => Promise.reject(new Error("the API server is down"));
    const failing = new ObjectStateStore({ ...options, apply });
    const failure = await failing.set(primary, "", "1").catch((error: Error) => error.message);
    assert.is(failure, "the API server is down");
    await state.set(primary, "", "1");
    assert.equal([...statesIn(failing, primary)], [["", "1"]]);
  });
});

suite("external state by object kind", (test) => {
  const widget = { ...page, kind: "AccountState" };

  test("is base64-encoded in a Secret", async () => {
    const { state, objects } = createState("accounts", { kind: "secret" });
    await state.set(primary, "", "id-1");
    const [object] = [...objects.values()] as [KubernetesObject & { data?: object }];
    const { id, mac } = object.data as { id: string; mac: string };
    assert.is(id, Buffer.from("id-1").toString("base64"));
    assert.match(Buffer.from(mac, "base64").toString(), /^[-\w]{22}$/);
    assert.equal([...statesIn(state, primary)], [["", "id-1"]]);
  });

  test("is a string or a map of strings at the path of a custom kind", async () => {
    const kept = { kind: "resource", resource: widget, path: ["spec", "account"] } as const;
    const single = createState("accounts", kept, { isBulk: false });
    await single.state.set(primary, "", "id-1");
    const bodyOf = (objects: ReadonlyMap<ObjectKey, KubernetesObject>) =>
      [...objects.values()].map((object) => (object as { spec?: object }).spec);
    assert.equal(bodyOf(single.objects), [{ account: "id-1" }]);
    assert.equal([...statesIn(single.state, primary)], [["", "id-1"]]);
    const many = createState("accounts", kept);
    await Promise.all(["a", "b"].map((key) => many.state.set(primary, key, `id-${key}`)));
    assert.equal(bodyOf(many.objects), [{ account: { a: "id-a", b: "id-b" } }]);
    await many.state.set(primary, "a", undefined);
    assert.equal([...statesIn(many.state, primary)], [["b", "id-b"]]);
  });

  for (const kept of [
    { kind: "configMap", perItem: true },
    { kind: "secret", perItem: true },
    { kind: "resource", resource: widget, path: ["spec", "id"], perItem: true },
  ] as const)
    test(`has one object per item with perItem, in a ${kept.kind}`, async () => {
      const { state, objects } = createState("accounts", kept);
      await Promise.all(["a", "b/c"].map((key) => state.set(primary, key, `id-${key}`)));
      await createState("others", kept).state.set(primary, "a", "other");
      assert.is(objects.size, 2);
      assert.equal([...statesIn(state, primary)].sort(), [
        ["a", "id-a"],
        ["b/c", "id-b/c"],
      ]);
      assert.is(statesIn(state, primaryNamed("one", "u2")).size, 0);
      await state.set(primary, "a", undefined);
      await state.set(primary, "never", undefined);
      assert.equal([...statesIn(state, primary)], [["b/c", "id-b/c"]]);
      assert.is(objects.size, 1);
    });
});

suite("external state with more than an id", (test) => {
  const widget = { ...page, kind: "AccountState" };
  const states = { a: { id: "id-a", token: "t", at: { region: "eu" } }, "b/c": { id: "{", token: "" } };
  const places: readonly ObjectState[] = [
    { kind: "configMap" },
    { kind: "secret" },
    { kind: "resource", resource: widget, path: ["spec", "accounts"] },
    { kind: "configMap", perItem: true },
    { kind: "resource", resource: widget, path: ["spec"], perItem: true },
  ];

  for (const place of places)
    test(`is read as it was stored: ${JSON.stringify({ ...place, resource: undefined })}`, async () => {
      const { state } = createState("accounts", place, { isObject: true });
      await Promise.all(Object.entries(states).map(([key, each]) => state.set(primary, key, each)));
      assert.equal(Object.fromEntries(statesIn(state, primary)), states);
      await state.set(primary, "a", undefined);
      assert.equal(Object.fromEntries(statesIn(state, primary)), { "b/c": states["b/c"] });
    });

  for (const place of places)
    test(`is compatible with an id alone in both directions: ${JSON.stringify({ ...place, resource: undefined })}`, async () => {
      const before = createState("accounts", place);
      await before.state.set(primary, "a", "id-a");
      const { state, objects } = createState("accounts", place, { isObject: true, objects: before.objects });
      assert.equal([...statesIn(state, primary)], [["a", { id: "id-a" }]]);
      await state.set(primary, "a", states.a);
      const after = createState("accounts", place, { objects });
      // In a text nothing tells an object from an id that looks like one.
      const isText = place.kind !== "resource";
      assert.equal([...statesIn(after.state, primary)], [["a", isText ? JSON.stringify(states.a) : "id-a"]]);
    });

  test("is stored as a single object at its path for a single dependent", async () => {
    const place = { kind: "resource", resource: widget, path: ["spec"] } as const;
    const { state, objects } = createState("accounts", place, { isBulk: false, isObject: true });
    await state.set(primary, "", states.a);
    assert.equal([...statesIn(state, primary)], [["", states.a]]);
    assert.equal(
      [...objects.values()].map((object) => (object as { spec?: object }).spec),
      [states.a],
    );
  });
});
