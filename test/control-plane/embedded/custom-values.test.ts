// What the embedded server and kube-apiserver say of values that few write: whole numbers that are spelled as floats, unknown fields in open lists, and
// fields that a schema forbids.
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { crdJson } from "../../support/kinds/hostile-crds.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { assert, shared, suite } from "../../support/suite.js";

const text = { type: "string" };
const integer = { type: "integer" };
const open = { "x-kubernetes-preserve-unknown-fields": true };
const declared = { type: "object", properties: { a: { type: "object", properties: { b: text } } } };
const PROPERTIES = {
  ...{ integer, int32: { ...integer, format: "int32" }, number: { type: "number" }, any: open },
  ...{
    either: { "x-kubernetes-int-or-string": true },
    one: { ...integer, enum: [1, 2] },
    even: { ...integer, multipleOf: 2 },
  },
  openList: { type: "array", ...open, items: declared },
  openBare: { type: "array", ...open, items: { type: "object" } },
  openLists: { type: "array", ...open, items: { type: "array", items: declared } },
  openResources: {
    type: "array",
    ...open,
    items: { type: "object", "x-kubernetes-embedded-resource": true, properties: { spec: declared } },
  },
  listOfOpen: { type: "array", items: { ...declared, ...open } },
  closed: { type: "object", additionalProperties: false },
  closedItems: { type: "array", items: { type: "object", additionalProperties: false } },
};
const SCALE = { specReplicasPath: ".spec.integer", statusReplicasPath: ".status.replicas" };
const SCHEMA = {
  type: "object",
  properties: {
    spec: { type: "object", properties: PROPERTIES },
    status: { type: "object", properties: { replicas: integer } },
  },
};
const CRDS = [
  crdJson(SCHEMA, { kind: "Plain" }),
  crdJson(SCHEMA, { kind: "Scaled", version: { subresources: { scale: SCALE } } }),
];

const NUMBERS = ["1", "1.0", "-1.0", "1e0", "10e-1", "2.0", "0.0", "1e3", "0.1e1", "1.5", "-1"];
const OBJECT = '{"a":{"b":"x","c":1},"d":{"e":1}}';
const SPECS = [
  ...["integer", "int32", "number", "either", "one", "even", "any"].flatMap((name) =>
    NUMBERS.map((number) => `{"${name}":${number}}`),
  ),
  ...["openList", "openBare", "listOfOpen"].flatMap((name) =>
    [OBJECT, "1", "null", '{"a":5}'].map((item) => `{"${name}":[${item}]}`),
  ),
  `{"openLists":[[${OBJECT}]]}`,
  '{"openResources":[{"apiVersion":"v1","kind":"A","metadata":{"name":"x","f":1},"spec":{"a":{"c":1}},"z":1}]}',
  '{"openResources":[{"z":1}]}',
  ...["{}", '{"a":1}', '{"b":{"c":1}}', "null", '{"":1}'].map((value) => `{"closed":${value}}`),
  '{"closedItems":[{},{"x":1}]}',
];

const DEPLOYMENT = (replicas: string) =>
  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":${replicas},"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`;
const SERVICE = (port: string) =>
  `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":80,"targetPort":${port}}]}}`;

interface Body {
  readonly path: string;
  readonly body: string;
}

const BODIES: readonly Body[] = [
  ...["Plain", "Scaled"].flatMap((kind) =>
    SPECS.map((spec) => ({
      path: `/apis/example.com/v1/namespaces/default/${kind.toLowerCase()}s`,
      body: `{"apiVersion":"example.com/v1","kind":"${kind}","metadata":{"name":"x"},"spec":${spec}}`,
    })),
  ),
  ...NUMBERS.flatMap((number) => [
    { path: "/apis/apps/v1/namespaces/default/deployments", body: DEPLOYMENT(number) },
    { path: "/api/v1/namespaces/default/services", body: SERVICE(number) },
  ]),
];

async function answerOf(server: Connection, { path, body }: Body, validation: string): Promise<string> {
  const answer = await apiRequest<ApiObject & { message?: string }>(
    server,
    `POST ${path}?dryRun=All&fieldValidation=${validation}`,
    { body, contentType: "application/json" },
  );
  const { spec, message } = answer.body;
  const shown = path.includes("example.com") ? spec : { replicas: spec?.["replicas"] };
  return `${answer.status} ${answer.status === 201 ? JSON.stringify(shown) : message}`;
}

suite("unusual values", (test) => {
  const servers = shared(async () => {
    const [real, embedded] = await Promise.all([borrowControlPlane(), startTestApiServer()]);
    const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (const server of [real, embedded])
      for (const crd of CRDS) {
        const { spec } = await apiRequestOrThrow(server, path, { body: JSON.parse(crd) as object });
        const { plural } = spec?.["names"] as { readonly plural: string };
        const list = `GET /apis/example.com/v1/namespaces/default/${plural}`;
        await waitFor(`${plural} are served`, async () => (await apiRequest(server, list)).status === 200);
      }
    return {
      ...{ real, embedded },
      async [Symbol.asyncDispose]() {
        await Promise.all([real[Symbol.asyncDispose](), embedded[Symbol.asyncDispose]()]);
      },
    };
  });

  for (const validation of ["Strict", "Ignore"])
    test(
      `are stored or rejected as by kube-apiserver, with fieldValidation ${validation}`,
      async () => {
        const { real, embedded } = await servers();
        for (const body of BODIES)
          assert.is(await answerOf(embedded, body, validation), await answerOf(real, body, validation), body.body);
      },
      { timeoutMs: 120_000 },
    );
});
