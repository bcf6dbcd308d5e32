// CRDs with unusual parts, to test how they are read, compiled, and stored.

type Schema = { readonly [keyword: string]: unknown };

/** A CRD as JSON, with a description of its unusual part. */
export interface HostileCrd {
  readonly name: string;
  readonly text: string;
}

/** The unusual parts other than the schema. */
export interface CrdParts {
  readonly kind?: string;
  readonly version?: object;
  readonly spec?: object;
}

export function crdJson(schema: unknown, { kind = "Thing", version = {}, spec = {} }: CrdParts = {}): string {
  const singular = kind.toLowerCase();
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${singular}s.example.com` },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { kind, plural: `${singular}s`, singular, listKind: `${kind}List` },
      versions: [
        {
          ...{ name: "v1", served: true, storage: true, subresources: { status: {} } },
          schema: { openAPIV3Schema: schema },
          ...version,
        },
      ],
      ...spec,
    },
  });
}

const KEYWORDS = ["type", "format", "description", "title", "nullable", "default", "enum", "required", "properties"];
const LIMITS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "uniqueItems"];
const SIZES = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
const SCHEMAS = ["items", "additionalProperties", "allOf", "anyOf", "oneOf", "not", "example", "externalDocs"];
const EXTENSIONS = ["preserve-unknown-fields", "embedded-resource", "int-or-string", "list-type", "list-map-keys"];

export const SCHEMA_KEYWORDS: readonly string[] = [
  ...[...KEYWORDS, ...LIMITS, ...SIZES, ...SCHEMAS],
  ...[...EXTENSIONS, "map-type", "validations"].map((name) => `x-kubernetes-${name}`),
];

const WRONG = [5, "text", true, false, [], {}, [5], -1, 1.5, null, 0, "", ["k"], ["a", "a"], [{ rule: "true" }], [{}]];

export const FIELD_SCHEMAS: readonly Schema[] = [
  { type: "string" },
  { type: "integer" },
  { type: "object", properties: { k: { type: "string" } } },
  { type: "array", items: { type: "object", properties: { k: { type: "string" } } } },
];

/** Returns CRDs in which a field of each type has each keyword with each of many values. */
export function crdsWithKeywords(): HostileCrd[] {
  return SCHEMA_KEYWORDS.flatMap((keyword) =>
    WRONG.flatMap((value) =>
      FIELD_SCHEMAS.map((field) => ({
        name: `${keyword}: ${JSON.stringify(value)} of a field of type ${String(field["type"])}`,
        text: crdJson({ type: "object", properties: { spec: { ...field, [keyword]: value } } }),
      })),
    ),
  );
}

const text = { type: "string" };
const of = (a: Schema): Schema => ({ type: "object", properties: { a } });
const mapOf = (items: Schema): Schema =>
  of({ type: "array", items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] });

const STRUCTURES: readonly Schema[] = [
  ...[{}, text, { type: "array", items: text }, { type: "object", nullable: true }],
  ...[
    { "x-kubernetes-preserve-unknown-fields": true },
    { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  ],
  { type: "object", properties: { metadata: { type: "object", properties: { name: { ...text, maxLength: 3 } } } } },
  { type: "object", properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } } },
  ...[{ metadata: text }, { apiVersion: { type: "integer" } }, { kind: { type: "object" } }].map((properties) => ({
    type: "object",
    properties,
  })),
  ...[{}, { type: "" }, { type: "array" }, { type: "array", items: {} }].map(of),
  of({ type: "object", properties: { b: text }, additionalProperties: text }),
  of({ type: "object", properties: { b: text }, additionalProperties: false }),
  of({ type: "object", properties: { b: text }, additionalProperties: true }),
  of({ type: "object", additionalProperties: {} }),
  ...[{ anyOf: [text] }, { ...text, anyOf: [text] }, { ...text, not: text }, { ...text, not: { enum: ["a"] } }].map(of),
  of({ "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, text] }),
  of({ "x-kubernetes-int-or-string": true, allOf: [{ anyOf: [{ type: "integer" }, text] }] }),
  mapOf({ type: "object", properties: { k: text } }),
  mapOf({ type: "object", properties: { k: text }, required: ["k"] }),
  mapOf({ type: "object", properties: { k: { ...text, default: "x" } } }),
  mapOf({ type: "object", properties: { b: text } }),
  of({ type: "array", items: text, "x-kubernetes-list-type": "map" }),
  of({ type: "integer", default: "x" }),
  of({ type: "object", properties: { b: { type: "integer" } }, default: { b: "x" } }),
  of({ type: "object", properties: { b: { type: "integer" } }, default: { c: 1 } }),
  of({ type: "object", properties: { b: { type: "integer" } }, default: { b: 1 } }),
  of({ ...text, enum: ["a"], default: "b" }),
  of({ ...text, nullable: true, default: null }),
  of({ type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true }),
];

const VERSIONS: readonly object[] = [
  ...[{ scale: {} }, { status: 5 }, "text", { scale: 5 }, null].map((subresources) => ({ subresources })),
  ...[
    [".spec.replicas", ".status.replicas"],
    ["spec.replicas", ".status.replicas"],
    [".status.replicas", ".spec.replicas"],
    [".spec", ".status"],
  ].map(([specReplicasPath, statusReplicasPath]) => ({
    subresources: { scale: { specReplicasPath, statusReplicasPath } },
  })),
  ...[{ deprecated: true }, { deprecated: true, deprecationWarning: "" }, { deprecationWarning: "x" }],
  { deprecated: true, deprecationWarning: "soon" },
  ...["V1", "1", "v1.1", "v1beta1"].map((name) => ({ name })),
  ...[".spec.x", ".metadata.name", "spec.x", ".spec.a"].map((jsonPath) => ({ selectableFields: [{ jsonPath }] })),
];

const COLUMNS: readonly unknown[] = [
  ...[[], "text", ["text"], [{}], [{ name: "a" }], [{ name: "a", type: "string" }]],
  ...[".spec.a", "spec.a", "{.spec.a}", '.status.conditions[?(@.type=="Ready")].status', ""].map((jsonPath) => [
    { name: "a", type: "string", jsonPath },
  ]),
  ...["date", "text", ""].map((type) => [{ name: "a", type, jsonPath: ".spec.a" }]),
  [{ name: "", type: "string", jsonPath: ".spec.a" }],
];

const SPECS: readonly object[] = [
  ...[
    { strategy: "None" },
    { strategy: "Webhook" },
    { strategy: "x" },
    { strategy: "" },
    { strategy: null },
    {},
    null,
  ].map((conversion) => ({ conversion })),
  ...[{ strategy: "Webhook" }, { strategy: "" }, {}, null].map((conversion) => ({
    ...{ conversion, preserveUnknownFields: true },
  })),
  { names: { kind: "Thing", plural: "things", listKind: "Thing" } },
  ...["Example.com", "example", ""].map((group) => ({ group })),
  ...[{ kind: "thing", plural: "things" }, { kind: "Thing", plural: "Things" }, { kind: "Thing" }].map((names) => ({
    names,
  })),
  ...[{ scope: "x" }, { preserveUnknownFields: true }, { versions: [] }],
];

/** Returns CRDs with an unusual structure, version, or names. */
export function crdsWithStructures(): HostileCrd[] {
  const plain = { type: "object", properties: { spec: { type: "object", properties: { a: text } } } };
  return [
    ...STRUCTURES.map((schema) => ({ name: `schema ${JSON.stringify(schema)}`, text: crdJson(schema) })),
    ...[...VERSIONS, ...COLUMNS.map((additionalPrinterColumns) => ({ additionalPrinterColumns }))].map((version) => ({
      name: `version ${JSON.stringify(version)}`,
      text: crdJson(plain, { version }),
    })),
    ...SPECS.map((spec) => ({ name: `spec ${JSON.stringify(spec)}`, text: crdJson(plain, { spec }) })),
  ];
}
