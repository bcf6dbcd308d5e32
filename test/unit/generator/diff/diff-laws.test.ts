// The comparison of CRDs is complete: whatever is changed in one is reported, unless the API server makes no difference.
import { collectInto, type Change } from "#generator/diff/change.js";
import { compareSchemas } from "#generator/diff/compare-schemas.js";
import fc from "../../../support/fast-check.js";
import { crdWith, diffOf } from "../../../support/crds/crd-changes.js";
import { assert, suite } from "../../../support/suite.js";

type Schema = Record<string, unknown>;

const names = ["a", "b", "c"] as const;
const texts = fc.constantFrom("a", "b", "^a", "date");

/** Values of a keyword; the first is what the keyword means if it is absent, if it has such a value. */
const KEYWORDS: { readonly [keyword: string]: readonly unknown[] } = {
  format: ["", "date", "int32", "float", "shoe-size"],
  pattern: ["", "^a", "^b"],
  nullable: [false, true],
  minLength: [0, 1, 2],
  maxLength: [undefined, 3, 4],
  minItems: [0, 1],
  maxItems: [undefined, 3],
  minProperties: [0, 1],
  maxProperties: [undefined, 3],
  minimum: [undefined, 1, 2],
  maximum: [undefined, 8, 9],
  multipleOf: [undefined, 2, 4, 3],
  enum: [[], ["a"], ["a", "b"]],
  default: [undefined, "a", { a: "b" }],
  "x-kubernetes-list-type": ["atomic", "set", "map"],
  "x-kubernetes-map-type": ["granular", "atomic"],
  "x-kubernetes-embedded-resource": [false, true],
  "x-kubernetes-int-or-string": [false, true],
  "x-kubernetes-preserve-unknown-fields": [undefined, true],
  "x-kubernetes-validations": [[], [{ rule: "self != 'a'" }], [{ rule: "self != 'a'", message: "no" }]],
  "x-future-keyword": [undefined, "a"],
  anyOf: [[], [{ required: ["a"] }], [{ required: ["b"] }, { required: ["a"] }]],
  oneOf: [[], [{ required: ["a"] }], [{ required: ["b"] }, { required: ["a"] }]],
  allOf: [[], [{ required: ["a"] }], [{ minLength: 2 }]],
  not: [undefined, { required: ["a"] }, { required: ["b"] }],
  required: [[], ["a"], ["a", "b"], ["undeclared"]],
  additionalProperties: [undefined, true, false, { type: "string" }, { type: "integer" }],
  properties: [{}, { a: { type: "string" } }, { a: { type: "integer" } }, { b: { type: "string" } }],
  items: [undefined, { type: "string" }, { type: "integer" }],
  type: [undefined, "string", "integer", "number", "boolean", "object", "array"],
};

/** Keywords that a type of values ignores, and those that mean nothing where another one is. */
const TYPES_OF: { readonly [keyword: string]: readonly string[] } = {
  ...Object.fromEntries(["pattern", "minLength", "maxLength"].map((keyword) => [keyword, ["string"]])),
  ...Object.fromEntries(["minimum", "maximum", "multipleOf"].map((keyword) => [keyword, ["integer", "number"]])),
  ...Object.fromEntries(["minItems", "maxItems"].map((keyword) => [keyword, ["array"]])),
  ...Object.fromEntries(
    ["minProperties", "maxProperties", "x-kubernetes-map-type"].map((keyword) => [keyword, ["object"]]),
  ),
};

const schemas = fc.letrec<{ schema: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small" },
    fc.record({ type: fc.constantFrom("string", "integer", "number", "boolean") }),
    fc.record(
      { type: fc.constant("string"), pattern: texts, maxLength: fc.constantFrom(3, 4), enum: fc.constant(["a"]) },
      { requiredKeys: ["type"] },
    ),
    fc.record({ type: fc.constant("array"), items: tie("schema") }),
    fc.record({ type: fc.constant("object"), additionalProperties: tie("schema") }),
    fc.record({
      type: fc.constant("object"),
      properties: fc.dictionary(fc.constantFrom(...names), tie("schema"), { maxKeys: 3 }),
    }),
  ),
})).schema;

/** Lists the schemas in a schema, itself first. */
function nodesOf(schema: Schema): Schema[] {
  const inner = [schema["items"], schema["additionalProperties"], ...Object.values(schema["properties"] ?? {})];
  return [
    schema,
    ...inner.flatMap((each) => (typeof each === "object" && each !== null ? nodesOf(each as Schema) : [])),
  ];
}

/** Tells whether the API server makes no difference between two values of a keyword, by what the keyword means. */
function isNeutral(node: Schema, keyword: string, value: unknown): boolean {
  const [absent] = KEYWORDS[keyword]!;
  const [before, after] = [node[keyword], value].map((each) => JSON.stringify(each ?? absent));
  if (before === after) return true;
  const type = node["type"] as string;
  if (TYPES_OF[keyword]?.includes(type) === false) return true;
  return false;
}

suite("diff", (test) => {
  test("reports every change of a keyword that affects the API server, in both directions", () => {
    const change = fc
      .constantFrom(...Object.keys(KEYWORDS))
      .chain((keyword) =>
        fc.record({ keyword: fc.constant(keyword), value: fc.constantFrom(...KEYWORDS[keyword]!), at: fc.nat() }),
      );
    fc.assert(
      fc.property(schemas, change, (schema, { keyword, value, at }) => {
        const root = { type: "object", properties: { spec: schema } };
        const changed = structuredClone(root);
        const nodes = nodesOf(changed.properties.spec);
        const node = nodes[at % nodes.length]!;
        if (isNeutral(node, keyword, value)) return;
        if (value === undefined) delete node[keyword];
        else node[keyword] = value;
        const [there, back] = [compare(root, changed), compare(changed, root)];
        assert.ok(there.length > 0 && back.length > 0, `${keyword} ${JSON.stringify(value)}: nothing`);
      }),
      { numRuns: 3_000 },
    );
  });

  test("ignores keywords set to their default, and descriptions", () => {
    fc.assert(
      fc.property(schemas, (schema) => {
        const root = { type: "object", properties: { spec: schema } };
        const spelt = structuredClone(root);
        for (const node of nodesOf(spelt.properties.spec)) {
          for (const [keyword, [absent]] of Object.entries(KEYWORDS))
            if (absent !== undefined && !Object.hasOwn(node, keyword) && keyword !== "properties")
              node[keyword] = absent;
          Object.assign(node, { description: "a" });
        }
        assert.equal(compare(root, spelt), []);
      }),
      { numRuns: 500 },
    );
  });

  const version = {
    subresources: { status: {}, scale: { specReplicasPath: ".spec.a", statusReplicasPath: ".status.a" } },
    additionalPrinterColumns: [{ name: "A", type: "string", jsonPath: ".spec.a" }],
    selectableFields: [{ jsonPath: ".spec.b" }],
  };
  const schema = {
    type: "object",
    properties: {
      spec: { type: "object", properties: { a: { type: "integer" }, b: { type: "string" } } },
      status: { type: "object", properties: { a: { type: "integer" } } },
    },
  };
  type Crd = { spec: { names: Schema; versions: Schema[] } & Schema };
  const EDITS: { readonly [what: string]: (crd: Crd) => unknown } = {
    scope: ({ spec }) => (spec["scope"] = "Cluster"),
    kind: ({ spec }) => (spec.names["kind"] = "Other"),
    listKind: ({ spec }) => (spec.names["listKind"] = "OtherList"),
    singular: ({ spec }) => (spec.names["singular"] = "other"),
    shortNames: ({ spec }) => (spec.names["shortNames"] = ["ga"]),
    categories: ({ spec }) => (spec.names["categories"] = ["all"]),
    conversion: ({ spec }) => (spec["conversion"] = webhook("https://a.example.com/")),
    "an unknown field of the spec": ({ spec }) => (spec["future"] = 1),
    "an unknown field of the names": ({ spec }) => (spec.names["future"] = "a"),
    served: ({ spec }) => Object.assign(spec.versions[1]!, { served: false }),
    storage: ({ spec }) => spec.versions.forEach((each, index) => (each["storage"] = index === 1)),
    deprecated: ({ spec }) => (spec.versions[0]!["deprecated"] = true),
    "a version": ({ spec }) => spec.versions.pop(),
    "the status subresource": ({ spec }) => delete (spec.versions[0]!["subresources"] as Schema)["status"],
    "the scale subresource": ({ spec }) => delete (spec.versions[0]!["subresources"] as Schema)["scale"],
    "a path of the scale subresource": ({ spec }) =>
      Object.assign((spec.versions[0]!["subresources"] as { scale: Schema }).scale, { specReplicasPath: ".spec.c" }),
    "a selector of the scale subresource": ({ spec }) =>
      Object.assign((spec.versions[0]!["subresources"] as { scale: Schema }).scale, { labelSelectorPath: ".status.b" }),
    "an unknown subresource": ({ spec }) => ((spec.versions[0]!["subresources"] as Schema)["future"] = {}),
    columns: ({ spec }) => delete spec.versions[0]!["additionalPrinterColumns"],
    "the priority of a column": ({ spec }) =>
      Object.assign((spec.versions[0]!["additionalPrinterColumns"] as Schema[])[0]!, { priority: 1 }),
    "selectable fields": ({ spec }) => delete spec.versions[0]!["selectableFields"],
    "an unknown field of a version": ({ spec }) => (spec.versions[0]!["future"] = "a"),
  };
  const webhook = (url: string) => ({
    strategy: "Webhook",
    webhook: { clientConfig: { url }, conversionReviewVersions: ["v1"] },
  });
  const created = () => {
    const crd = crdWith(schema, version) as Crd;
    crd.spec.versions.push({ ...structuredClone(crd.spec.versions[0]!), name: "v2", storage: false });
    return structuredClone(crd);
  };

  for (const [what, edit] of Object.entries(EDITS))
    test(`reports a change of ${what}, in both directions`, () => {
      const [before, after] = [created(), created()];
      edit(after);
      assert.ok(diffOf(before, after).length > 0);
      assert.ok(diffOf(after, before).length > 0);
    });

  test("reports a changed URL of a conversion webhook as breaking, and a changed caBundle as compatible", () => {
    const [before, moved, renewed] = [created(), created(), created()];
    before.spec["conversion"] = webhook("https://a.example.com/");
    moved.spec["conversion"] = webhook("https://b.example.com/");
    const { webhook: config, ...rest } = webhook("https://a.example.com/");
    renewed.spec["conversion"] = {
      ...rest,
      webhook: { ...config, clientConfig: { ...config.clientConfig, caBundle: "YQ==" } },
    };
    assert.equal(
      diffOf(before, moved).map(({ effect }) => effect),
      ["breaking"],
    );
    assert.equal(
      diffOf(before, renewed).map(({ effect }) => effect),
      ["compatible"],
    );
  });

  test("ignores values that the API server defaults", () => {
    const [before, after] = [created(), created()];
    Object.assign(after.spec.names, { singular: "gadget", listKind: "GadgetList", shortNames: [], categories: null });
    Object.assign(after.spec, { conversion: { strategy: "None" }, preserveUnknownFields: false });
    Object.assign(after.spec.versions[0]!, { deprecated: false });
    Object.assign(after, { status: { storedVersions: ["v1"] } });
    assert.equal(diffOf(before, after), []);
  });

  function compare(before: Schema, after: Schema) {
    // Not every such schema could be in a CRD.
    const changes: Change[] = [];
    compareSchemas(before, after, collectInto(changes, "v1"));
    return changes;
  }
});
