// Rules of CRDs in CEL (x-kubernetes-validations); the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, apiRequestOrThrow, type ApiAnswer, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { assert, shared, suite } from "../../support/suite.js";
import { waitFor } from "#apiserver/wait-for.js";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS = "/apis/rules.example.com/v1/namespaces/default/gadgets";

interface Cause {
  readonly field?: string;
  readonly message?: string;
  readonly reason?: string;
}

const text = (rest: object = {}) => ({ type: "string", maxLength: 64, ...rest });
const integer = (rest: object = {}) => ({ type: "integer", ...rest });
const rules = (...given: object[]) => ({ "x-kubernetes-validations": given });

const SPEC = {
  type: "object",
  properties: {
    min: integer(),
    max: integer(),
    divisor: integer(),
    even: integer(rules({ rule: "self % 2 == 0", message: "must be even" })),
    color: text(rules({ rule: "self == oldSelf", message: "cannot be changed" })),
    once: text(
      rules({ rule: "oldSelf.hasValue() ? self == oldSelf.value() : self != 'never'", optionalOldSelf: true }),
    ),
    level: text(
      rules({
        rule: "self in ['low', 'high']",
        messageExpression: "'no level: ' + self",
        reason: "FieldValueForbidden",
      }),
    ),
    broken: text(rules({ rule: "self != 'x'", messageExpression: "self.substring(5)", message: "is x" })),
    "a-b": text(),
    anything: { "x-kubernetes-int-or-string": true },
    ports: {
      type: "array",
      maxItems: 8,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        required: ["name"],
        properties: { name: text(), port: integer(rules({ rule: "self >= oldSelf", message: "cannot shrink" })) },
      },
      ...rules({ rule: "self.all(each, each.port > 0)", message: "need numbers" }),
    },
    labels: {
      type: "object",
      maxProperties: 4,
      additionalProperties: text(rules({ rule: "self.startsWith('l')" })),
    },
  },
  ...rules(
    {
      rule: "!has(self.min) || !has(self.max) || self.min <= self.max",
      fieldPath: ".max",
      reason: "FieldValueInvalid",
    },
    { rule: "!has(self.divisor) || 10 / self.divisor >= 0", message: "divides" },
    {
      rule: "!has(self.a__dash__b) || self.a__dash__b.matches('^[a-z]+$')",
      message: "a-b is no word",
      reason: "FieldValueRequired",
      fieldPath: "['a-b']",
    },
    { rule: "!has(self.anything) || type(self.anything) == int || self.anything > 3", message: "is anything" },
    { rule: "!has(self.labels) || self.labels['one'] != ''", message: "has one" },
  ),
};

const STATUS = {
  type: "object",
  properties: { replicas: integer(rules({ rule: "self < 5", message: "too many" })), ready: integer() },
};

const CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "gadgets.rules.example.com" },
  spec: {
    group: "rules.example.com",
    names: { kind: "Gadget", plural: "gadgets" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: SPEC, status: STATUS },
            ...rules({ rule: "self.metadata.name != 'forbidden'", message: "bad name" }),
          },
        },
        subresources: { status: {}, scale: { specReplicasPath: ".spec.even", statusReplicasPath: ".status.replicas" } },
      },
    ],
  },
};

const server = shared(async () => {
  const started = await startTestApiServer();
  await apiRequestOrThrow(started, `POST ${CRDS}`, { body: CRD });
  await waitFor("gadgets are served", async () => {
    const { status } = await apiRequest(started, `POST ${GADGETS}?dryRun=All`, { body: gadget("probe") });
    return status === 201;
  });
  return started;
});

const gadget = (name: string, spec: object = {}, rest: object = {}) => ({
  apiVersion: "rules.example.com/v1",
  kind: "Gadget",
  metadata: { name },
  spec,
  ...rest,
});

/** What an answer says is wrong, as `field | reason | message`; its code if nothing is. */
function causesOf({ status, body }: ApiAnswer): readonly string[] {
  const causes = (body as { details?: { causes?: Cause[] } }).details?.causes ?? [];
  if (causes.length === 0) return [String(status)];
  return causes.map(({ field = "", reason = "", message = "" }) => `${field} | ${reason} | ${message}`);
}

const patch = (to: Connection, name: string, body: object) =>
  apiRequest(to, `PATCH ${GADGETS}/${name}`, { body, contentType: "application/merge-patch+json" });

const json = (to: Connection, path: string, body: object[]) =>
  apiRequestOrThrow(to, `PATCH ${path}`, { body, contentType: "application/json-patch+json" });

const CREATED: readonly { readonly spec: object; readonly says: readonly string[] }[] = [
  { spec: { min: 1, max: 2, even: 4 }, says: ["201"] },
  {
    spec: { min: 3, max: 2 },
    says: [
      "spec.max | FieldValueInvalid | Invalid value: failed rule: !has(self.min) || !has(self.max) || self.min <= self.max",
    ],
  },
  { spec: { even: 3 }, says: ["spec.even | FieldValueInvalid | Invalid value: 3: must be even"] },
  { spec: { color: "red" }, says: ["201"] },
  {
    spec: { once: "never" },
    says: [
      "spec.once | FieldValueInvalid | Invalid value: \"never\": failed rule: oldSelf.hasValue() ? self == oldSelf.value() : self != 'never'",
    ],
  },
  { spec: { level: "middle" }, says: ["spec.level | FieldValueForbidden | Forbidden: no level: middle"] },
  { spec: { broken: "x" }, says: ['spec.broken | FieldValueInvalid | Invalid value: "x": is x'] },
  {
    spec: { divisor: 0 },
    says: ['spec | FieldValueInvalid | Invalid value: "object": division by zero evaluating rule: divides'],
  },
  { spec: { "a-b": "1" }, says: ["spec.a-b | FieldValueRequired | Required value: a-b is no word"] },
  {
    spec: { anything: "text" },
    says: [
      "spec | FieldValueInvalid | Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: is anything",
    ],
  },
  {
    spec: { labels: { two: "l" } },
    says: ['spec | FieldValueInvalid | Invalid value: "object": no such key: one evaluating rule: has one'],
  },
  {
    spec: { labels: { one: "x" } },
    says: ["spec.labels[one] | FieldValueInvalid | Invalid value: \"x\": failed rule: self.startsWith('l')"],
  },
  { spec: { ports: [{ name: "a", port: 0 }] }, says: ["spec.ports | FieldValueInvalid | Invalid value: need numbers"] },
  {
    spec: { ports: [{ name: "a" }] },
    says: ['spec.ports | FieldValueInvalid | Invalid value: "array": no such key: port evaluating rule: need numbers'],
  },
  {
    spec: { even: 3, color: "c".repeat(65) },
    says: [
      "spec.color | FieldValueTooLong | Too long: may not be more than 64 bytes",
      "<nil> | FieldValueInvalid | Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    ],
  },
];

suite("x-kubernetes-validations", (test) => {
  for (const { spec, says } of CREATED)
    test(`are evaluated on create: ${JSON.stringify(spec).slice(0, 60)}`, async () => {
      const answer = await apiRequest(await server(), `POST ${GADGETS}?dryRun=All`, { body: gadget("new", spec) });
      assert.equal(causesOf(answer), says);
    });

  test("with oldSelf are evaluated on update where the old value correlates", async () => {
    const to = await server();
    const spec = {
      color: "red",
      once: "a",
      ports: [
        { name: "a", port: 5 },
        { name: "b", port: 5 },
      ],
    };
    await apiRequestOrThrow(to, `POST ${GADGETS}`, { body: gadget("transition", spec) });
    const change = (next: object) => patch(to, "transition", { spec: next });
    assert.equal(causesOf(await change({ color: "blue" })), [
      'spec.color | FieldValueInvalid | Invalid value: "blue": cannot be changed',
    ]);
    assert.equal(causesOf(await change({ once: "b" })), [
      `spec.once | FieldValueInvalid | Invalid value: "b": failed rule: oldSelf.hasValue() ? self == oldSelf.value() : self != 'never'`,
    ]);
    // The items changed their order: they are known by their names.
    assert.equal(
      causesOf(
        await change({
          ports: [
            { name: "b", port: 4 },
            { name: "a", port: 6 },
          ],
        }),
      ),
      ["spec.ports[0].port | FieldValueInvalid | Invalid value: 4: cannot shrink"],
    );
    assert.equal(causesOf(await change({ ports: [{ name: "c", port: 1 }] })), ["200"]);
    assert.equal(causesOf(await change({ color: null })), ["200"]);
    assert.equal(causesOf(await change({ color: "blue" })), ["200"]);
  });

  test("return a warning for unchanged invalid values, and reject changed ones (ratcheting)", async () => {
    const to = await server();
    await apiRequestOrThrow(to, `POST ${GADGETS}`, { body: gadget("kept", { min: 7, level: "low" }) });
    const base = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/min";
    const add = [
      { op: "add", path: `${base}/x-kubernetes-validations`, value: [{ rule: "self < 5", message: "too large" }] },
    ];
    await json(to, `${CRDS}/gadgets.rules.example.com`, add);
    await waitFor("the new rule is checked", async () => {
      const { status } = await apiRequest(to, `POST ${GADGETS}?dryRun=All`, { body: gadget("other", { min: 7 }) });
      return status === 422;
    });
    const answer = await patch(to, "kept", { spec: { level: "high" } });
    assert.equal(causesOf(answer), ["200"]);
    assert.is(answer.headers["warning"], '299 - "spec.min: Invalid value: 7: too large"');
    assert.equal(causesOf(await patch(to, "kept", { spec: { min: 8 } })), [
      "spec.min | FieldValueInvalid | Invalid value: 8: too large",
    ]);
    await json(to, `${CRDS}/gadgets.rules.example.com`, [{ op: "remove", path: `${base}/x-kubernetes-validations` }]);
    await waitFor("the rule is gone", async () => {
      const { status } = await apiRequest(to, `POST ${GADGETS}?dryRun=All`, { body: gadget("other", { min: 7 }) });
      return status === 201;
    });
  });

  test("are evaluated for apply, status, scale and metadata.name", async () => {
    const to = await server();
    await apiRequestOrThrow(to, `POST ${GADGETS}`, { body: gadget("written", { even: 2 }) });
    const at = `${GADGETS}/written`;
    const merge = { contentType: "application/merge-patch+json" };
    const applied = await apiRequest(to, `PATCH ${at}?fieldManager=me&force=true`, {
      body: JSON.stringify(gadget("written", { even: 5 })),
      contentType: "application/apply-patch+yaml",
    });
    assert.equal(causesOf(applied), ["spec.even | FieldValueInvalid | Invalid value: 5: must be even"]);
    const status = await apiRequest(to, `PATCH ${at}/status`, { ...merge, body: { status: { replicas: 9 } } });
    assert.equal(causesOf(status), ["status.replicas | FieldValueInvalid | Invalid value: 9: too many"]);
    const scale = await apiRequest(to, `PATCH ${at}/scale`, { ...merge, body: { spec: { replicas: 3 } } });
    assert.equal(causesOf(scale), ["spec.even | FieldValueInvalid | Invalid value: 3: must be even"]);
    const named = await apiRequest(to, `POST ${GADGETS}`, { body: gadget("forbidden") });
    assert.equal(causesOf(named), ["<nil> | FieldValueInvalid | Invalid value: bad name"]);
  });
});
