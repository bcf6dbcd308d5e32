// The cases of `control-plane/types-accuracy` that need no API server: what one accepts compiles and parses, what it refuses does neither.
import { join } from "node:path";
import { emitResources } from "#generator/emit/emit-project.js";
import { apiRequest } from "../support/api/api-request.js";
import { startTestApiServer } from "../support/api/api-server.js";
import { checkFiles, strictOptions, writeProject } from "../support/projects/compile.js";
import { defineResource, parseResource } from "@gen-operator/runtime/codegen";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import { resourcesOfCrds } from "../support/runtime/resource-models.js";
import { assert, shared, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const CRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gadgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                note: { type: string, nullable: true }
                level: { type: string, nullable: true, enum: [low, high, null] }
                items: { type: array, nullable: true, items: { type: string, nullable: true } }
                values: { type: object, nullable: true, additionalProperties: { type: integer, nullable: true } }
                size: { type: integer }
                port: { x-kubernetes-int-or-string: true }
                template: { type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true }
            status: { type: object, properties: { phase: { type: string } } }
`;

const base = { apiVersion: "example.com/v1", kind: "Gadget" };
const named = { name: "x", namespace: "default" };
const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "1" };
const entry = { manager: "kubectl", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1" };
const spec = (fields: object) => ({ ...base, metadata: named, spec: fields });
const metadata = (fields: object) => ({ ...base, metadata: { ...named, ...fields } });

/** What each object has, whether it is right, and the object. */
const cases: readonly [what: string, isRight: boolean, object: object][] = [
  ["a name", true, { ...base, metadata: named }],
  ["no metadata", false, base],
  ["metadata that is null", false, { ...base, metadata: null }],
  ["an owner reference", true, metadata({ ownerReferences: [owner] })],
  [
    "an owner reference with all of its fields",
    true,
    metadata({ ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }] }),
  ],
  ["an owner reference without a uid", false, metadata({ ownerReferences: [{ ...owner, uid: undefined }] })],
  [
    "managedFields",
    true,
    metadata({ managedFields: [{ ...entry, fieldsV1: { "f:spec": { ".": {}, "f:size": {} } } }] }),
  ],
  ["managedFields that are no list", false, metadata({ managedFields: { ...entry } })],
  [
    "labels, annotations and finalizers",
    true,
    metadata({ labels: { a: "b" }, annotations: { c: "d" }, finalizers: ["example.com/x"] }),
  ],
  ["a label that is a number", false, metadata({ labels: { a: 1 } })],
  ["null of a nullable enum", false, spec({ level: null })],
  ["null where it may be", true, spec({ note: null, items: null, values: null })],
  ["null in a list and in a map where it may be", true, spec({ items: [null, "a"], values: { a: null, b: 1 } })],
  ["a value of another type beside null", false, spec({ note: 7 })],
  ["a value that the enum lacks", false, spec({ level: "middle" })],
  ["a text for a number", false, spec({ size: "1" })],
  ["a number or a text", true, spec({ port: "http" })],
  ["neither a number nor a text", false, spec({ port: true })],
  [
    "a template without metadata",
    true,
    spec({ template: { apiVersion: "v1", kind: "Pod", spec: { containers: [] } } }),
  ],
  ["a template without a kind", false, spec({ template: { apiVersion: "v1" } })],
  ["an unknown field", false, spec({ sise: 1 })],
  ["another kind", false, { ...base, kind: "Widget", metadata: named }],
];

/** What is to be created need not have a name yet. What is stored has one, so parse insists on it. */
const created: readonly [what: string, isRight: boolean, object: object][] = [
  ["generateName alone", true, { ...base, metadata: { generateName: "x-", namespace: "default" } }],
  ["generateName that is a number", false, { ...base, metadata: { generateName: 7, namespace: "default" } }],
  ["neither a name nor generateName", false, { ...base, metadata: { namespace: "default" } }],
];

const module = "./src/generated/resources/example.com/v1/gadget.js";

suite("types and parse of a custom kind", (test) => {
  const [resource] = resourcesOfCrds(CRD);
  if (resource === undefined) throw new Error("the CRD has a kind");
  const definition = defineResource({ ...resource, schema: buildRuntimeSchema(resource) });
  const problems = shared(async () => {
    const folder = await createTemporaryFolder();
    const files = [...cases, ...created].map(([, , object], index) => ({
      path: `case-${index}.ts`,
      content:
        index < cases.length
          ? `import type { GadgetInput } from "${module}";\nexport const object: GadgetInput = ${JSON.stringify(object)};\n`
          : `import { Gadget } from "${module}";\nexport const object = Gadget.create(${JSON.stringify(object)});\n`,
    }));
    await writeProject(folder.path, [...(await emitResources([resource])), ...files]);
    const found = checkFiles(
      files.map(({ path }) => join(folder.path, path)),
      strictOptions(),
    );
    return {
      of: (index: number) => found.get(join(folder.path, `case-${index}.ts`)),
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    };
  });
  const server = shared(() => startTestApiServer({ crds: [{ ...(resource.crd as object) }] }));

  for (const [index, [what, isRight, object]] of [...cases, ...created].entries())
    test(`${isRight ? "accept" : "reject"} ${what}, as the API server does`, async () => {
      const path = `POST /apis/example.com/v1/namespaces/default/gadgets?dryRun=All&fieldValidation=Strict`;
      const { status, body } = await apiRequest(await server(), path, { body: object });
      assert.is(status === 201, isRight, JSON.stringify(body));
      const compiled = (await problems()).of(index);
      assert.is(compiled === undefined, isRight, String(compiled ?? "it compiles"));
      if (index >= cases.length) return;
      const parsed = parsing(object);
      assert.is(parsed === "", isRight, parsed || "it parses");
    });

  function parsing(object: object): string {
    try {
      parseResource(definition, JSON.parse(JSON.stringify(object)));
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  }
});
