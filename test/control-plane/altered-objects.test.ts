// Objects of the samples, and of a kind that uses all of a schema, are changed in one place at a time: what parse says of them is what a real API
// server says in a dry run. The status is checked like the rest: the definitions have no subresource of it here, as a creation would drop it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { waitFor } from "#apiserver/wait-for.js";
import { parseResource } from "@gen-operator/runtime/cel";
import { apiRequest, apiRequestOrThrow, createAgent, type ApiObject } from "../support/api/api-request.js";
import { alteredObjects } from "../support/kinds/altered-objects.js";
import { definitionOf } from "../support/kinds/definition-of.js";
import { crdJson } from "../support/kinds/hostile-crds.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

interface Kind {
  /** The CRD as JSON. */
  readonly crd: string;
  readonly objects: readonly object[];
}

const METADATA = {
  name: "x",
  namespace: "default",
  labels: { "example.com/app": "web" },
  annotations: { "example.com/note": "any text" },
  finalizers: ["example.com/cleanup"],
  ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "1", controller: true }],
};

const text = { type: "string" };
const integer = { type: "integer" };

/** A schema with all that a structural schema can say. */
const WHOLE_SCHEMA = {
  type: "object",
  required: ["spec"],
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: "object", properties: { name: { ...text, maxLength: 40 } } },
    spec: {
      type: "object",
      required: ["size"],
      minProperties: 3,
      properties: {
        size: { type: "string", enum: ["small", "1", ""] },
        replicas: { ...integer, nullable: true, default: 1 },
        half: { ...integer, minimum: 1, maximum: 2 ** 62 },
        ratio: { type: "number", exclusiveMinimum: true, minimum: 0, multipleOf: 0.5 },
        isOn: { type: "boolean", default: true },
        port: {
          "x-kubernetes-int-or-string": true,
          anyOf: [{ type: "integer" }, text],
          maximum: 100,
          not: { enum: [0] },
        },
        percent: {
          "x-kubernetes-int-or-string": true,
          allOf: [{ anyOf: [{ type: "integer" }, text] }, { minimum: 0 }],
          pattern: "^[0-9]+%?$",
        },
        label: { ...text, pattern: "^\\p{L}[a-z]*$", maxLength: 8 },
        url: { ...text, format: "uri" },
        data: { ...text, format: "byte" },
        at: { ...text, format: "date-time" },
        wait: { ...text, format: "duration" },
        empty: { type: "object" },
        open: { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { a: integer } },
        any: { "x-kubernetes-preserve-unknown-fields": true },
        openList: {
          type: "array",
          "x-kubernetes-preserve-unknown-fields": true,
          items: { type: "object", properties: { a: { type: "object", properties: { b: text } } } },
        },
        openLists: {
          type: "array",
          "x-kubernetes-preserve-unknown-fields": true,
          items: { type: "array", items: { type: "object" } },
        },
        closed: { type: "object", additionalProperties: false },
        map: { type: "object", additionalProperties: { ...text, minLength: 1 }, maxProperties: 2 },
        set: { type: "array", items: text, "x-kubernetes-list-type": "set" },
        list: { type: "array", items: { ...integer, nullable: true }, minItems: 1, maxItems: 3 },
        ports: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name", "protocol"],
          items: {
            type: "object",
            required: ["name"],
            properties: { name: text, protocol: { ...text, default: "TCP" }, number: { ...integer, format: "int32" } },
          },
        },
        one: {
          type: "object",
          properties: { a: text, b: integer },
          oneOf: [{ required: ["a"] }, { required: ["b"] }],
          not: { required: ["c"] },
        },
        ruled: {
          type: "object",
          properties: { low: integer, high: integer },
          "x-kubernetes-validations": [{ rule: "!has(self.low) || !has(self.high) || self.low <= self.high" }],
        },
        template: {
          type: "object",
          "x-kubernetes-embedded-resource": true,
          "x-kubernetes-preserve-unknown-fields": true,
          properties: { spec: { type: "object", properties: { a: text } } },
        },
      },
    },
    status: {
      type: "object",
      properties: { replicas: { "x-kubernetes-preserve-unknown-fields": true }, selector: { ...text, nullable: true } },
    },
  },
};

const WHOLE_SPEC = {
  ...{ size: "small", replicas: 2, half: 1, ratio: 1.5, isOn: false, port: 80, percent: "50%", label: "éa" },
  ...{ url: "https://example.com/a", data: "YQ==", at: "2026-01-01T00:00:00Z", wait: "1h", empty: {} },
  ...{ open: { a: 1, b: { c: 1 } }, any: [{ a: null }], closed: {}, map: { a: "b" }, set: ["a", "b"], list: [1, null] },
  openList: [{ a: { b: "x" }, c: { d: 1 } }],
  openLists: [[{ a: 1 }]],
  ports: [
    { name: "a", number: 1 },
    { name: "a", protocol: "UDP" },
  ],
  ...{ one: { a: "x" }, ruled: { low: 1, high: 2 } },
  template: {
    ...{ apiVersion: "v1", kind: "ConfigMap", spec: { a: "x" }, more: [1] },
    metadata: { name: "y", namespace: "z", labels: { a: "b" }, annotations: { a: "b" }, finalizers: ["a/b"] },
  },
};

const SCALE = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
  labelSelectorPath: ".status.selector",
};

const WHOLE: Kind = {
  crd: crdJson(WHOLE_SCHEMA, { kind: "Whole", version: { subresources: { scale: SCALE } } }),
  objects: [
    {
      ...{ apiVersion: "example.com/v1", kind: "Whole", metadata: METADATA, spec: WHOLE_SPEC },
      status: { replicas: 1, selector: "a=b" },
    },
  ],
};

/** Where parse has an answer of its own, with the reason. */
const OTHERWISE: readonly RegExp[] = [
  // An API server that is newer may have more fields.
  /^(?:.*\.)?metadata\.(?:[^.]*\[\d+\]\.)?noSuchField is there$/,
  /^(?:.*\.)?metadata is \{".*\}$/,
  // The API server reads null as an empty text, which the types do not allow.
  /^(?:.*\.)?metadata\.(?:labels|annotations)(?:\..+ is null| is \{"a":null\})$/,
  // The API server does not look at the type of a list where a text with a format belongs.
  /^spec\.(?:url|data|at|wait) is \[.*\]$/,
];

interface Definition {
  readonly kind: string;
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly scope: string;
    readonly versions: readonly { readonly name: string; readonly subresources?: object }[];
  };
}

/** The kinds of the samples that have an example. */
function sampleKinds(): Kind[] {
  const samples = join(repositoryRoot, "fixtures/samples");
  const read = (folder: string): unknown[] =>
    readdirSync(folder).flatMap((file) =>
      parseAllDocuments(readFileSync(join(folder, file), "utf8")).map((document): unknown => document.toJS()),
    );
  return readdirSync(samples).flatMap((sample) => {
    const examples = read(join(samples, sample, "examples")) as { readonly kind: string; readonly metadata: object }[];
    return (read(join(samples, sample, "crds")) as Definition[]).flatMap((definition): Kind[] => {
      const { spec } = definition;
      const versions = spec.versions.map(({ subresources: _, ...version }) => version);
      const objects = examples
        .filter(({ kind }) => kind === spec.names.kind)
        .map((example) => ({ ...example, metadata: { ...example.metadata, ...METADATA } }));
      return objects.length === 0
        ? []
        : [{ crd: JSON.stringify({ ...definition, spec: { ...spec, versions } }), objects }];
    });
  });
}

const AS_IT_WAS = "nothing";

suite("parse of objects altered in one field", (test) => {
  test(
    "accepts and rejects the same objects as kube-apiserver",
    async () => {
      await using server = await borrowControlPlane();
      const agent = createAgent(server);
      const kinds = [WHOLE, ...sampleKinds()];
      const answers = { valid: 0, refused: 0 };
      const wrong: string[] = [];
      for (const { crd, objects } of kinds) {
        const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        await apiRequestOrThrow(server, path, { body: JSON.parse(crd) as object, agent });
        const definition = await definitionOf(crd);
        const place = definition.scope === "Namespaced" ? "namespaces/default/" : "";
        const target = `POST /apis/${definition.apiVersion}/${place}${definition.plural}?dryRun=All&fieldValidation=Strict`;
        const ask = (body: object) => apiRequest<ApiObject & { message?: string }>(server, target, { body, agent });
        for (const object of objects) {
          await waitFor(`${definition.kind} is served`, async () => (await ask(object)).status !== 404);
          for (const { change, object: altered } of [{ change: AS_IT_WAS, object }, ...alteredObjects(object)]) {
            const { status, body } = await ask(altered);
            const problem = problemOf(() => parseResource(definition, altered));
            answers[status === 201 ? "valid" : "refused"] += 1;
            if (change === AS_IT_WAS) assert.is(status, 201, body.message);
            if ((status === 201) === (problem === undefined) || OTHERWISE.some((each) => each.test(change))) continue;
            wrong.push(`${definition.kind} ${change}: ${problem ?? "valid"}; server: ${status} ${body.message ?? ""}`);
          }
        }
      }
      agent.destroy();
      assert.is(wrong.join("\n"), "");
      assert.ok(answers.valid > 300 && answers.refused > 1500, JSON.stringify(answers));
    },
    { timeoutMs: 300_000 },
  );
});

function problemOf(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
