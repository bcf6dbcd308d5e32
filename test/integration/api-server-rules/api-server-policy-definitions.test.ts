// What admission policies and their bindings may say; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { assert, shared, suite } from "../../support/suite.js";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const RULES = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }];
const DNS_1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const server = shared(() => startTestApiServer());

/** What a policy may say: what is wrong, by the fields of its spec; nothing for one that is accepted. */
const DEFINED: readonly { readonly spec: object; readonly says?: readonly string[] }[] = [
  { spec: { validations: [{ expression: "object.x == 1 && request.operation == 'CREATE'" }] } },
  { spec: { validations: [{ expression: "variables.x == 1" }], variables: [{ name: "x", expression: "1" }] } },
  {
    spec: { validations: [{ expression: "objct.x == 1" }] },
    says: [`validations[0].expression: ${undeclared("objct", "objct.x == 1")}`],
  },
  {
    spec: { validations: [{ expression: "params.x == 1" }] },
    says: [`validations[0].expression: ${undeclared("params", "params.x == 1")}`],
  },
  {
    spec: { validations: [{ expression: "variables.x == 1" }] },
    says: [`validations[0].expression: ${undeclared("variables", "variables.x == 1")}`],
  },
  {
    spec: { validations: [{ expression: "1" }] },
    says: ['validations[0].expression: Invalid value: "1": must evaluate to bool but got int'],
  },
  {
    spec: { validations: [{ expression: " " }] },
    says: ["validations[0].expression: Required value: expression is not specified"],
  },
  {
    spec: { validations: [{ expression: "true", messageExpression: "1" }] },
    says: ['validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int'],
  },
  {
    spec: { validations: [{ expression: "true", message: " " }] },
    says: ['validations[0].message: Invalid value: " ": must be non-empty if specified'],
  },
  {
    spec: { validations: [{ expression: "true", reason: "X" }] },
    says: [
      'validations[0].reason: Unsupported value: "X": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
    ],
  },
  {
    spec: { validations: [{ expression: "true" }], variables: [{ name: "x-y", expression: "1" }] },
    says: ['variables[0].name: Invalid value: "x-y": must be a valid CEL identifier'],
  },
  {
    spec: { validations: [{ expression: "true" }], variables: [{ name: "x", expression: "q" }] },
    says: [`variables[0].expression: ${undeclared("q", "q")}`],
  },
  {
    spec: { validations: [{ expression: "true" }], matchConditions: [{ name: "a", expression: "q" }] },
    says: [`matchConditions[0].expression: ${undeclared("q", "q")}`],
  },
  {
    spec: { validations: [] },
    says: ["validations", "auditAnnotations"].map(
      (name) => `${name}: Required value: validations or auditAnnotations must contain at least one item`,
    ),
  },
];

function undeclared(name: string, expression: string): string {
  const reference = `undeclared reference to '${name}' (in container '')`;
  return `Invalid value: ${JSON.stringify(expression)}: compilation failed: ERROR: <input>:1:1: ${reference}\n | ${expression}\n | ^`;
}

suite("ValidatingAdmissionPolicy definitions", (test) => {
  for (const { spec, says = [] } of DEFINED)
    test(`are validated: ${JSON.stringify(spec).slice(0, 70)}`, async () => {
      const body = { metadata: { name: "p" }, spec: { matchConstraints: { resourceRules: RULES }, ...spec } };
      const path = `POST ${ADMISSION}/validatingadmissionpolicies?dryRun=All`;
      const answer = await apiRequest<{ details?: { causes?: { field: string; message: string }[] } }>(
        await server(),
        path,
        { body },
      );
      const causes = answer.body.details?.causes ?? [];
      assert.equal(
        causes.map(({ field, message }) => `${field.replace("spec.", "")}: ${message}`),
        says,
      );
      assert.is(answer.status, says.length === 0 ? 201 : 422);
    });
});

const applied = (expression: string) => ({ patchType: "ApplyConfiguration", applyConfiguration: { expression } });
const patched = (expression: string) => ({ patchType: "JSONPatch", jsonPatch: { expression } });
const invalid = (field: string, expression: string, words: string) =>
  `${field}.expression: Invalid value: ${JSON.stringify(expression)}: ${words}`;

/** What mutating policies and the bindings of both kinds may say. */
const OTHERS: readonly { readonly plural: string; readonly spec: object; readonly says?: readonly string[] }[] = [
  ...[
    {
      mutations: [
        applied("Object{spec: Object.spec{?a: object.?a, b: [Object.spec.b{}]}}"),
        patched("[JSONPatch{op: 'x'}]"),
      ],
    },
    {
      mutations: [],
      reinvocationPolicy: "X",
      says: [
        "mutations: Required value: mutations must contain at least one item",
        'reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never"',
      ],
    },
    {
      matchConstraints: { resourceRules: [{ ...RULES[0], operations: ["DELETE"] }] },
      mutations: [applied("Object{}")],
      says: [
        'matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
      ],
    },
    {
      mutations: [{ patchType: "JSONPatch", applyConfiguration: { expression: "Object{}" } }],
      says: [
        "mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        'mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
      ],
    },
    {
      mutations: [
        applied("1"),
        patched("[]"),
        applied("Object.spec{}"),
        applied("Objects{}"),
        patched("[JSONPatch{op: 1}]"),
        patched("[JSONPatch{op: 'x'}, Object{}]"),
        applied("object"),
        applied("Object{a: [1, 'a']}"),
      ],
      says: [
        ["applyConfiguration", "1", "must evaluate to Object but got int"],
        ["jsonPatch", "[]", "must evaluate to list(JSONPatch) but got list(dyn)"],
        ["applyConfiguration", "Object.spec{}", "must evaluate to Object but got Object.spec"],
        [
          "applyConfiguration",
          "Objects{}",
          wrongAt("Objects{}", 8, "undeclared reference to 'Objects' (in container '')"),
        ],
        [
          "jsonPatch",
          "[JSONPatch{op: 1}]",
          wrongAt("[JSONPatch{op: 1}]", 14, "expected type of field 'op' is 'string' but provided type is 'int'"),
        ],
        [
          "jsonPatch",
          "[JSONPatch{op: 'x'}, Object{}]",
          wrongAt("[JSONPatch{op: 'x'}, Object{}]", 28, "expected type 'JSONPatch' but found 'Object'"),
        ],
        ["applyConfiguration", "object", "must evaluate to Object but got dyn"],
        [
          "applyConfiguration",
          "Object{a: [1, 'a']}",
          wrongAt("Object{a: [1, 'a']}", 15, "expected type 'int' but found 'string'"),
        ],
      ].map(([member = "", text = "", words = ""], index) => invalid(`mutations[${index}].${member}`, text, words)),
    },
    {
      mutations: [applied("Object{}")],
      variables: [{ name: "x", expression: "Object{}" }],
      paramKind: { apiVersion: "a/b/c", kind: "X y" },
      says: [
        'paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        `paramKind.kind: Invalid value: "X y": may have mixed case, but should otherwise match: ${DNS_1035}`,
        invalid(
          "variables[0]",
          "Object{}",
          wrongAt("Object{}", 7, "undeclared reference to 'Object' (in container '')"),
        ),
      ],
    },
  ].map(({ says, ...spec }: { says?: string[] }) => ({
    plural: "mutatingadmissionpolicies",
    spec: { reinvocationPolicy: "Never", ...spec },
    ...(says === undefined ? {} : { says }),
  })),
  { plural: "mutatingadmissionpolicybindings", spec: { policyName: "x" } },
  {
    plural: "mutatingadmissionpolicybindings",
    spec: { policyName: "x", paramRef: { name: "a", selector: {} }, matchResources: { resourceRules: [{}] } },
    says: [
      "paramRef.name: Forbidden: name and selector are mutually exclusive",
      "paramRef.selector: Forbidden: name and selector are mutually exclusive",
      "paramRef.parameterNotFoundAction: Required value",
      ...["operations", "apiGroups", "apiVersions", "resources"].map(
        (name) => `matchResources.resourceRules[0].${name}: Required value`,
      ),
    ],
  },
  {
    plural: "validatingadmissionpolicybindings",
    spec: { validationActions: ["Deny", "Warn", "Deny", "X"] },
    says: [
      "policyName: Required value",
      'validationActions[2]: Duplicate value: "Deny"',
      'validationActions[3]: Unsupported value: "X": supported values: "Audit", "Deny", "Warn"',
      'validationActions: Invalid value: ["Deny","Warn","Deny","X"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
    ],
  },
];

function wrongAt(text: string, column: number, words: string): string {
  return `compilation failed: ERROR: <input>:1:${column}: ${words}\n | ${text}\n | ${".".repeat(column - 1)}^`;
}

suite("MutatingAdmissionPolicy and binding definitions", (test) => {
  for (const { plural, spec, says = [] } of OTHERS)
    test(`are validated: ${plural} ${JSON.stringify(spec).slice(0, 70)}`, async () => {
      const constraints = plural.endsWith("policies") ? { matchConstraints: { resourceRules: RULES } } : {};
      const body = { metadata: { name: "p" }, spec: { ...constraints, ...spec } };
      const path = `POST ${ADMISSION}/${plural}?dryRun=All`;
      const answer = await apiRequest<{ details?: { causes?: { field: string; message: string }[] } }>(
        await server(),
        path,
        { body },
      );
      const causes = answer.body.details?.causes ?? [];
      assert.equal(
        causes.map(({ field, message }) => `${field.replace("spec.", "")}: ${message}`),
        says,
      );
      assert.is(answer.status, says.length === 0 ? 201 : 422, answer.text);
    });
});
