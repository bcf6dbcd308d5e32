import fc, { type Arbitrary } from "../fast-check.js";
import type { RandomKind } from "./random-kind.js";
import { conditions, count, intOrString, map, some, word, words } from "./random-values.js";

/** The custom kinds of test/conformance/definitions.yaml. */
export const RANDOM_CUSTOM_KINDS: RandomKind[] = [
  {
    path: "$widget",
    kind: "Widget",
    base: { spec: { size: 1 } },
    part: some({
      spec: some({
        size: count,
        replicas: count,
        color: fc.constantFrom("red", "green", "pink"),
        note: fc.constantFrom("n", null),
        names: words,
        tags: words,
        ports: fc.array(
          fc
            .tuple(fc.constantFrom(1, 2), some({ protocol: fc.constantFrom("TCP", "UDP"), name: word, labels: map }))
            .map(([port, rest]) => ({ port, ...rest })),
          { maxLength: 3 },
        ),
        options: map,
        selector: map,
        nested: some({ a: word, b: word, deeper: some({ c: word }) }),
        free: fc.constantFrom<object>({}, { any: [1, { x: null }] }, { a: { b: "c" } }),
        limit: intOrString,
      }),
    }),
    status: some({ ready: fc.boolean(), replicas: count, selector: fc.constantFrom("a=b", ""), conditions }),
    scale: true,
  },
  {
    path: "$record",
    kind: "Record",
    base: { spec: {} },
    part: some({ spec: randomRecordSpec() }),
    status: some({ phase: word, replicas: count, seen: words }),
    scale: true,
  },
  {
    path: "$newrecord",
    kind: "Record",
    apiVersion: "example.com/v2",
    base: { spec: {} },
    part: some({
      spec: some({
        replicas: count,
        mode: word,
        members: fc.dictionary(word, some({ weight: count }), { maxKeys: 2 }),
        steps: fc.array(some({ name: word }), { maxLength: 2 }),
        extra: word,
      }),
    }),
  },
];

function randomRecordSpec(): Arbitrary<object> {
  const step = fc
    .tuple(word, some({ after: words, env: map, arguments: words }))
    .map(([name, rest]) => ({ name, ...rest }));
  const embedded = fc.constantFrom<object>(
    { apiVersion: "v1", kind: "Thing", metadata: { name: "a", labels: { a: "b" } }, spec: { text: "x", other: 1 } },
    { apiVersion: "v1", kind: "Thing" },
    { kind: "Thing", metadata: { unknown: 1 } },
  );
  return some({
    replicas: count,
    mode: fc.constantFrom("slow", null),
    gone: fc.constantFrom("x", null),
    port: intOrString,
    rows: fc.array(fc.array(count, { maxLength: 2 }), { maxLength: 2 }),
    members: fc.dictionary(word, some({ weight: count, note: word, unknown: count }), { maxKeys: 2 }),
    steps: fc.array(step, { maxLength: 3 }),
    template: embedded,
    raw: fc.constantFrom<unknown>(1, "x", [1, { a: null }], { b: {} }, null),
    part: fc.constantFrom<object>({ inner: { a: "b", dropped: 1 }, kept: { x: [] } }, {}, { inner: {} }),
  });
}
