// Objects that are parsed when they are read look as if they had been parsed at once, whatever states came before them.
import { deepStrictEqual } from "node:assert";
import fc from "../../../support/fast-check.js";
import { type DecodedResource, type KubernetesObject, keyOf } from "#runtime/base/kubernetes-object.js";
import { DeferredDecoder, decodeResource } from "#runtime/client/object-decoder.js";
import { deepFreeze } from "#runtime/base/lazy-object.js";
import { isReadRight } from "../../../support/runtime/json-names.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const MANAGER = "web-page";

type Json = { [name: string]: unknown };

/** A decoder with the states that it is told of. */
function createDecoder(fieldManagers: Iterable<string> = [MANAGER]) {
  const states = new Map<string, DecodedResource>();
  const decoder = new DeferredDecoder({ fieldManagers, known: (key) => states.get(key) });
  return {
    decode(text: string): DecodedResource {
      const [before, behind] = ['{"type":"MODIFIED","object":', "}"];
      const bytes = Buffer.from(before + text + behind);
      return decoder.decode(bytes, { start: before.length, end: bytes.length - behind.length });
    },
    remember(entry: DecodedResource) {
      // What has no metadata is not cached.
      if (entry.object.metadata !== null && typeof entry.object.metadata === "object")
        states.set(keyOf(entry.object.metadata), entry);
    },
  };
}

function decodeAtOnce(text: string): DecodedResource {
  return decodeResource(Buffer.from(text), { fieldManagers: [MANAGER] });
}

const membersOf = ({ object }: DecodedResource) => object as KubernetesObject & Json;
const decode = (text: string) => membersOf(createDecoder().decode(text));

const isDeferred = (object: object, name: string) => Object.getOwnPropertyDescriptor(object, name)?.get !== undefined;

/** Ways to look at an object that must not tell how it was decoded; each returns what it sees. */
const LOOKS: { readonly [name: string]: (object: Json) => unknown } = {
  keys: (object) => Object.keys(object),
  names: (object) => Object.getOwnPropertyNames(object),
  symbols: (object) => Object.getOwnPropertySymbols(object),
  entries: (object) => Object.entries(object),
  "for in": (object) => {
    const names = [];
    for (const name in object) names.push(name);
    return names;
  },
  in: (object) => ["spec", "status", "data", "nothing", "__proto__", "toString"].map((name) => name in object),
  hasOwn: (object) => ["spec", "status", "__proto__", "toString"].map((name) => Object.hasOwn(object, name)),
  "every member": (object) => Object.keys(object).map((name) => object[name]),
  spread: (object) => ({ ...object }),
  rest: ({ spec: _spec, ...rest }) => rest,
  assign: (object) => Object.assign(Object.create(null) as Json, object),
  stringify: (object) => JSON.stringify(object),
  structuredClone: (object) => structuredClone(object),
  "a copy with another status": (object) => ({ ...object, status: { ready: true } }),
  inherit: (object) => (Object.create(object) as Json)["spec"],
  "set spec": (object) => {
    object["spec"] = 1;
    return object;
  },
  "set through an heir": (object) => {
    const heir = Object.create(object) as Json;
    heir["spec"] = 1;
    return [{ ...heir }, { ...object }];
  },
  "delete spec": (object) => {
    delete object["spec"];
    return { ...object };
  },
  "define spec": (object) => {
    Object.defineProperty(object, "spec", { value: 2, enumerable: true, configurable: true, writable: true });
    return { ...object };
  },
  "a shallow freeze": (object) => {
    Object.freeze(object);
    return [{ ...object }, Object.isFrozen(object), JSON.stringify(object)];
  },
  "a deep freeze": (object) => {
    deepFreeze(object);
    return [object, Object.getOwnPropertyDescriptors(object), Object.isFrozen(object["spec"])];
  },
  prototype: (object) => Object.getPrototypeOf(object) === Object.prototype,
};

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.constantFrom('"', "\\", '\\"', "}]}", '"managedFields":[', "é", "ключ", "😀", "\u0000", "\u2028"),
);
const name = fc.oneof(
  fc.constantFrom("spec", "status", "data", "kind", "metadata", "__proto__", "constructor", "0", "17", 's"p', "ключ"),
  text.filter(isReadRight),
);
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.constantFrom(0, 1, -1.5, 1e21, 5e-324, true, false, null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
})).value;

/** A member as text; its name may be written with escapes, and it may come twice. */
const member = fc.tuple(name, value, fc.boolean()).map(([key, any, isEscaped]) => {
  const quoted = JSON.stringify(key);
  const escaped = quoted.replace(/^"([a-z])/, (_, first: string) => `"\\u00${first.charCodeAt(0).toString(16)}`);
  return `${isEscaped ? escaped : quoted}:${JSON.stringify(any)}`;
});
const owned = fc.record({
  manager: fc.constantFrom(MANAGER, "other"),
  operation: fc.constantFrom("Apply", "Update"),
  apiVersion: fc.constantFrom("v1", "v2"),
  fieldsV1: fc.constantFrom({}, { "f:data": { 'k:{"a":"}"}': {} } }, { "f:spec": { "f:a": {} } }, { "f:é": {} }),
  subresource: fc.constantFrom("", "status"),
});
/** Orders of the members of metadata: that of built-in kinds, that of custom resources, and others. */
const order = fc.shuffledSubarray(["labels", "managedFields", "name", "namespace", "resourceVersion"], {
  minLength: 5,
});
const metadata = fc
  .record({
    name: fc.constantFrom("a", "b"),
    namespace: fc.constantFrom("x", undefined),
    resourceVersion: fc.oneof(fc.nat(9).map(String), fc.constantFrom("1\\u0032", undefined)),
    labels: fc.dictionary(name, text, { maxKeys: 3 }),
    managedFields: fc.option(fc.array(owned, { maxLength: 2 }), { nil: undefined }),
  })
  .chain((members) => fc.tuple(fc.constant(members), order, fc.boolean()))
  .map(([members, names, isIndented]) => {
    const ordered = Object.fromEntries(names.map((each) => [each, members[each as keyof typeof members]]));
    return `"metadata":${JSON.stringify(ordered, undefined, isIndented ? 1 : undefined)}`;
  });
const object = fc
  .tuple(
    fc.array(member, { maxLength: 2 }),
    metadata,
    fc.array(member, { maxLength: 3 }),
    fc.constantFrom("", " ", "\n"),
  )
  .map(([before, own, behind, space]) => `{${[...before, own, ...behind].join(`${space},${space}`)}${space}}`);

suite("DeferredDecoder", (test) => {
  test("does not parse members before they are read", () => {
    const decoded = decode('{"kind":"X","metadata":{"name":"a"},"spec":{"a":1},"status":{"b":[]}}');
    assert.equal([isDeferred(decoded, "spec"), isDeferred(decoded, "status")], [true, true]);
    assert.is(decoded.metadata.name, "a");
    assert.equal([isDeferred(decoded, "spec"), isDeferred(decoded, "status")], [true, true]);
    assert.equal(decoded["spec"], { a: 1 });
    assert.equal([isDeferred(decoded, "spec"), isDeferred(decoded, "status")], [false, false]);
    assert.is(decoded["spec"], decoded["spec"]);
  });

  test("returns an object with plain members after a deep freeze", () => {
    const decoded = decode('{"kind":"X","metadata":{"name":"a"},"spec":{"a":{"b":1}}}');
    deepFreeze(decoded);
    const { spec } = Object.getOwnPropertyDescriptors(decoded);
    assert.equal(spec, { value: { a: { b: 1 } }, writable: false, enumerable: true, configurable: false });
    assert.ok(Object.isFrozen((decoded["spec"] as { a: object }).a));
  });

  test("throws if an unread member is read through a proxy", () => {
    const proxy = new Proxy(decode('{"kind":"X","metadata":{"name":"a"},"spec":{"a":1}}'), {});
    assert.throws(() => proxy["spec"], /cannot be read through a proxy before it was read from the object/);
  });

  test("returns objects that behave like parsed ones in every operation, after any previous states", () => {
    const looks = fc.constantFrom(...Object.keys(LOOKS));
    fc.assert(
      fc.property(fc.array(fc.tuple(object, looks, fc.boolean()), { minLength: 1, maxLength: 5 }), (states) => {
        const decoder = createDecoder();
        for (const [state, look, isRead] of states) {
          const [entry, expected] = [decoder.decode(state), decodeAtOnce(state)];
          deepStrictEqual(entry.owned, expected.owned);
          decoder.remember(entry);
          if (!isRead) continue;
          // Deep equality of Node compares prototypes and own members, too.
          deepStrictEqual(LOOKS[look]!(membersOf(entry)), LOOKS[look]!(membersOf(expected)));
          // What a user did to an object is not what the server said.
          decoder.remember(decoder.decode(state));
        }
      }),
      { numRuns: runs(3000) },
    );
  });

  test("returns no numeric member of a previous state", () => {
    const decoder = createDecoder();
    decoder.remember(decoder.decode('{"metadata":{"name":"a","resourceVersion":"1"},"0":0}'));
    const { object } = decoder.decode('{"metadata":{"name":"a","resourceVersion":"2"}}');
    assert.equal(Object.keys(object), ["metadata"]);
  });

  test("keeps a member named __proto__ if only the version changes", () => {
    const decoder = createDecoder();
    const stateOf = (version: number) =>
      `{"__proto__":{"a":1},"metadata":{"name":"a","resourceVersion":"${version}","__proto__":{"b":1}},"spec":{}}`;
    decoder.remember(decoder.decode(stateOf(1)));
    const entry = decoder.decode(stateOf(2));
    deepStrictEqual(structuredClone(entry), decodeAtOnce(stateOf(2)));
    assert.equal(Object.keys(entry.object), ["__proto__", "metadata", "spec"]);
  });

  test("uses the last of duplicate members for version and manager, however they are escaped", () => {
    const decoder = createDecoder();
    const stateOf = (version: number, time: string) =>
      `{"metadata":{"name":"a","resourceVersion":"${version}","resourceV\\u0065rsion":"6","managedFields":` +
      `[{"manager":"other","operation":"Apply","time":${time},"fieldsV1":{}}]},"spec":{}}`;
    const secondManager = `"a","manager":"${MANAGER}"`;
    for (const time of [JSON.stringify("x".repeat(secondManager.length - 2)), secondManager])
      for (const version of [1, 2]) {
        const text = stateOf(version, time);
        deepStrictEqual(structuredClone(decoder.decode(text)), decodeAtOnce(text));
        decoder.remember(decoder.decode(text));
      }
  });

  test("returns owned fields as soon as their field manager is registered", () => {
    const fieldManagers = new Set([MANAGER]);
    const decoder = createDecoder(fieldManagers);
    const decodeVersion = (version: number) => {
      const managed = [MANAGER, "late"].map(
        (name) => `{"manager":"${name}","operation":"Apply","fieldsV1":{"f:a":{}}}`,
      );
      const entry = decoder.decode(
        `{"metadata":{"name":"a","resourceVersion":"${version}","managedFields":[${managed.join()}]},"spec":{}}`,
      );
      decoder.remember(entry);
      return entry.owned?.map(({ fieldManager }) => fieldManager);
    };
    assert.equal([decodeVersion(1), decodeVersion(2)], [[MANAGER], [MANAGER]]);
    fieldManagers.add("late");
    assert.equal(
      [decodeVersion(3), decodeVersion(4)],
      [
        [MANAGER, "late"],
        [MANAGER, "late"],
      ],
    );
  });

  test("returns the latest write by its field managers to the last decoded object only", () => {
    const decoder = new DeferredDecoder({ fieldManagers: [MANAGER, "web-page-conditions"], known: () => undefined });
    const timeOf = (managedFields?: readonly object[]) => {
      const bytes = Buffer.from(JSON.stringify({ metadata: { name: "a", managedFields }, spec: {} }));
      decoder.decode(bytes, { start: 0, end: bytes.length });
      return decoder.latestWrite;
    };
    const entry = (manager: string, time?: string, operation = "Apply") => ({ manager, operation, time, fieldsV1: {} });
    const [early, late] = ["2026-11-29T10:00:00Z", "2026-11-29T10:00:01Z"];
    assert.equal(timeOf([entry(MANAGER, early)]), { fieldManager: MANAGER, time: early });
    assert.is(timeOf(undefined), undefined);
    assert.equal(timeOf([entry("kubectl", late), entry(MANAGER, early, "Update")]), {
      fieldManager: MANAGER,
      time: early,
    });
    assert.is(timeOf([entry("kubectl", late)]), undefined);
    assert.is(timeOf([entry(MANAGER)]), undefined);
    const both = [entry(MANAGER, early), entry("web-page-conditions", late)];
    assert.equal(timeOf(both), { fieldManager: "web-page-conditions", time: late });
    assert.equal(timeOf(both.reverse()), { fieldManager: "web-page-conditions", time: late });
  });

  test("returns the exact state of an object after small changes", () => {
    const time = fc.constantFrom(
      '"2026-11-27T09:00:00Z"',
      '"2026-11-27T09:00:01Z"',
      '"a\\"b"',
      '"ab"',
      "1",
      "[1]",
      '["a"]',
    );
    const change = fc.record({
      version: fc.constantFrom("1", "2", '1","uid":"5', "12345678901", "\\u0031", "é"),
      time: fc.tuple(time, time),
      label: fc.constantFrom("a", "b"),
      spec: fc.constantFrom("1", '"é"', '"s"', '"ų"'),
      status: fc.constantFrom("{}", "[]"),
      fields: fc.constantFrom('{"f:é":{}}', '{"f:Ã©":{}}', '{"f:a":{}}', '{"f:b":{}}', '{"f:bb":{}}', "1", "12"),
      isCustom: fc.boolean(),
    });
    const textOf = ({ version, time, label, spec, status, fields, isCustom }: Record<string, unknown>) => {
      const [othersTime, ownTime] = time as [string, string];
      const named = '"name":"a","namespace":"x"';
      const managed =
        `"managedFields":[{"manager":"other","time":${othersTime},"fieldsV1":{"f:x":{}}},` +
        `{"manager":"${MANAGER}","operation":"Apply","time":${ownTime},"fieldsV1":${fields}}]`;
      const [labels, versioned] = [`"labels":{"l":"${label}"}`, `"resourceVersion":"${version}"`];
      const members = isCustom ? [labels, managed, named, versioned] : [named, versioned, labels, managed];
      return `{"kind":"X","apiVersion":"v1","metadata":{${members.join()}},"spec":${spec},"status":${status}}`;
    };
    fc.assert(
      fc.property(fc.array(fc.tuple(change, fc.boolean()), { minLength: 2, maxLength: 8 }), (changes) => {
        const decoder = createDecoder();
        for (const [each, isRead] of changes) {
          const text = textOf(each);
          deepStrictEqual(structuredClone(decoder.decode(text)), decodeAtOnce(text));
          // What was compared has been read.
          const entry = decoder.decode(text);
          decoder.remember(entry);
          if (isRead) deepFreeze(entry.object);
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  test("returns the exact state of similar objects", () => {
    const said = fc.record({
      name: fc.stringMatching(/^[a-z]{1,10}$/),
      version: fc.nat(2000),
      strings: fc.tuple(text, text, text),
      manager: fc.constantFrom(MANAGER, MANAGER, "other"),
      isCustom: fc.boolean(),
    });
    const textOf = ({ name, version, strings: [label, field, spec], manager, isCustom }: Record<string, any>) => {
      const named = { name, resourceVersion: String(version) };
      const fieldsV1 = { "f:a": { [`k:{"b":"${field}"}`]: {} } };
      const managedFields = [
        { manager: "first", fieldsV1 },
        { manager, operation: "Apply", apiVersion: "v1", time: label, fieldsV1 },
      ];
      const own = isCustom
        ? { labels: { label }, managedFields, ...named }
        : { ...named, labels: { label }, managedFields };
      return JSON.stringify({ kind: "X", metadata: own, spec: { [spec]: spec }, status: {} });
    };
    fc.assert(
      fc.property(fc.array(said, { minLength: 2, maxLength: 8 }), (states) => {
        const decoder = createDecoder();
        for (const each of states) {
          const text = textOf(each);
          deepStrictEqual(structuredClone(decoder.decode(text)), decodeAtOnce(text));
          decoder.remember(decoder.decode(text));
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  test("shares owned fields between states of a custom resource whose name follows managedFields", () => {
    const decoder = createDecoder();
    const [first, , later] = ["a", "b", "a"].map((name, version) => {
      const fields = `{"f:${name}":{}}`;
      const managed = `"managedFields":[{"fieldsV1":${fields},"manager":"${MANAGER}","operation":"Apply"}]`;
      const entry = decoder.decode(
        `{"metadata":{${managed},"name":"${name}","resourceVersion":"${version}"},"spec":{}}`,
      );
      decoder.remember(entry);
      return entry;
    });
    assert.is(later?.owned, first?.owned);
    assert.equal(first?.owned?.length, 1);
  });

  test("shares unchanged members between states of an object", () => {
    const decoder = createDecoder();
    const stateOf = (version: number, ready: boolean) =>
      `{"kind":"X","metadata":{"name":"a","resourceVersion":"${version}","labels":{"a":"b"},"managedFields":[{"manager":"${MANAGER}",` +
      `"operation":"Apply","fieldsV1":{"f:a":{}}}]},"spec":{"a":1},"status":{"ready":${ready}}}`;
    const [first, second, third] = [stateOf(1, true), stateOf(2, true), stateOf(3, false)].map((state) => {
      const entry = decoder.decode(state);
      decoder.remember(entry);
      return entry;
    }) as [DecodedResource, DecodedResource, DecodedResource];
    for (const later of [second, third]) {
      assert.is(later.object.metadata.labels, first.object.metadata.labels);
      assert.is(later.owned, first.owned);
    }
    assert.equal(
      [first, second, third].map(({ object: { metadata: own } }) => own.resourceVersion),
      ["1", "2", "3"],
    );
    assert.equal((third.object as KubernetesObject & Json)["status"], { ready: false });
  });
});
