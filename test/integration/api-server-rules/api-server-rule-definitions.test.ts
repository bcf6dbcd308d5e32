// What a CRD may say in x-kubernetes-validations; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, type ApiAnswer } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { assert, shared, suite } from "../../support/suite.js";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const server = shared(() => startTestApiServer());

const text = (rest: object = {}) => ({ type: "string", maxLength: 64, ...rest });
const integer = (rest: object = {}) => ({ type: "integer", ...rest });
const rules = (...given: object[]) => ({ "x-kubernetes-validations": given });

interface Cause {
  readonly field?: string;
  readonly message?: string;
  readonly reason?: string;
}

/** What an answer says is wrong, as `field | reason | message`; its code if nothing is. */
function causesOf({ status, body }: ApiAnswer): readonly string[] {
  const causes = (body as { details?: { causes?: Cause[] } }).details?.causes ?? [];
  if (causes.length === 0) return [String(status)];
  return causes.map(({ field = "", reason = "", message = "" }) => `${field} | ${reason} | ${message}`);
}

const CHECKED = {
  type: "object",
  properties: {
    a: integer(),
    s: text(),
    l: { type: "array", maxItems: 8, items: text() },
    m: { type: "object", maxProperties: 8, additionalProperties: text() },
    o: { type: "object", properties: { x: integer() } },
    d: { type: "string", format: "date-time" },
    v: { "x-kubernetes-int-or-string": true },
    set: { type: "array", maxItems: 8, "x-kubernetes-list-type": "set", items: text() },
  },
};

const compiled = (offset: number, message: string, expression: string) =>
  `compilation failed: ERROR: <input>:1:${offset + 1}: ${message}\n | ${expression}\n | ${".".repeat(offset)}^`;

/** Rules of definitions: what the server says is wrong, at which member; nothing for a rule that it accepts. */
const DEFINED: readonly { readonly rule: object; readonly at?: string; readonly says?: string }[] = [
  ...[
    "self.l.all(x, x.size() < 10)",
    "self.?a.orValue(1) > 0",
    "self.l[?0].hasValue()",
    "self.d > timestamp('2020-01-01T00:00:00Z')",
    "self.a > 1.0",
    "quantity(self.s).isGreaterThan(quantity('1'))",
    "self.v == 1 || self.v == 'x'",
    "self.m.b == 'x' && 'b' in self.m && self.m.all(k, k != self.m[k])",
    "self.l.map(x, x + 'y').filter(x, x != 'z').size() + self.a == 3",
    "self.l.exists_one(x, x == 'a') || duration('1s') + self.d > self.d",
    "self.d - self.d < duration('1h') && self.d.getFullYear() > 2000",
    "(self.a > 1 ? self.s : 'x').lowerAscii().startsWith('y')",
    "type(self.a) == int && has(self.o.x) && [1, 2].exists(i, i == self.a)",
    "isURL(self.s) && url(self.s).getHost() != '' && self.s.find('a+') != ''",
    "true",
  ].map((rule) => ({ rule: { rule } })),
  ...(
    [
      ["self.b == 1", 4, "undefined field 'b'"],
      ["self.o.y == 1", 6, "undefined field 'y'"],
      ["foo == 1", 0, "undeclared reference to 'foo' (in container '')"],
      ["self.a == 's'", 7, "found no matching overload for '_==_' applied to '(int, string)'"],
      ["self.m.b == 1", 9, "found no matching overload for '_==_' applied to '(string, int)'"],
      ["self.s + 1 == 's'", 7, "found no matching overload for '_+_' applied to '(string, int)'"],
      ["!self.a", 0, "found no matching overload for '!_' applied to '(int)'"],
      ["size(self.a) > 1", 4, "found no matching overload for 'size' applied to '(int)'"],
      ["self.s.startsWith(1)", 17, "found no matching overload for 'startsWith' applied to 'string.(int)'"],
      ["has(self.s) ? 1 : 'x'", 12, "found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
      ["self.l.map(x, x.a) == []", 15, "type 'string' does not support field selection"],
      ["self.s.foo()", 10, "undeclared reference to 'foo' (in container '')"],
      ["self.s.matches('(')", 15, "invalid matches argument"],
      ["self.a && true", 4, "expected type 'bool' but found 'int'"],
    ] as const
  ).map(([rule, offset, message]) => ({ rule: { rule }, at: "rule", says: compiled(offset, message, rule) })),
  { rule: { rule: "self.a" }, at: "rule", says: "cel expression must evaluate to a bool" },
  {
    rule: { rule: "true", messageExpression: "self.a" },
    at: "messageExpression",
    says: "messageExpression must evaluate to a string",
  },
  {
    rule: { rule: "true", messageExpression: "self.b" },
    at: "messageExpression",
    says: `messageExpression ${compiled(4, "undefined field 'b'", "self.b")}`,
  },
  { rule: { rule: " " }, at: "rule", says: "Required value: rule is not specified" },
  { rule: { rule: "true", message: " " }, at: "message", says: 'Invalid value: " ": must be non-empty if specified' },
  {
    rule: { rule: "true", message: "a\nb" },
    at: "message",
    says: 'Invalid value: "a\\nb": must not contain line breaks',
  },
  {
    rule: { rule: "self.a >\n 1" },
    at: "message",
    says: "Required value: message must be specified if rule contains line breaks",
  },
  {
    rule: { rule: "true", messageExpression: " " },
    at: "messageExpression",
    says: "Required value: messageExpression must be non-empty if specified",
  },
  {
    rule: { rule: "true", reason: "X" },
    at: "reason",
    says: 'Unsupported value: "X": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
  },
  { rule: { rule: "true", fieldPath: ".b" }, at: "fieldPath", says: 'Invalid value: ".b": must be a valid path' },
  { rule: { rule: "true", fieldPath: "['o'].x" } },
  {
    rule: { rule: "true", optionalOldSelf: true },
    at: "optionalOldSelf",
    says: "Invalid value: true: may not be set if oldSelf is not used in rule",
  },
];

suite("x-kubernetes-validations of a CRD", (test) => {
  const define = async (spec: object) =>
    apiRequest(await server(), `POST ${CRDS}?dryRun=All`, {
      body: {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: "others.rules.example.com" },
        spec: {
          group: "rules.example.com",
          scope: "Namespaced",
          names: { kind: "Other", plural: "others" },
          versions: [
            {
              name: "v1",
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
            },
          ],
        },
      },
    });

  for (const { rule, at, says } of DEFINED)
    test(`are compiled and validated: ${JSON.stringify(rule).slice(0, 70)}`, async () => {
      const answer = await define({ ...CHECKED, ...rules(rule) });
      const place = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
      const [cause = String(answer.status), ...more] = causesOf(answer);
      assert.equal(more, []);
      // A rule is shown as a whole.
      const found = cause.replace(/Invalid value: \{.*?\}: /s, "").split(" | ");
      assert.equal([found[0], found.slice(2).join(" | ")], says === undefined ? ["201", ""] : [`${place}.${at}`, says]);
    });

  test("may use oldSelf only where values can be correlated", async () => {
    const spec = structuredClone(CHECKED);
    Object.assign(spec.properties.set.items, rules({ rule: "self == oldSelf" }));
    assert.equal(causesOf(await define(spec)), [
      "spec.validation.openAPIV3Schema.properties[spec].properties[set].items.x-kubernetes-validations[0].rule | FieldValueInvalid | " +
        'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[set]',
    ]);
  });
});
