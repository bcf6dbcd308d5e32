// ValidatingAdmissionPolicies and match conditions of webhooks; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, apiRequestOrThrow, type ApiAnswer, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { assert, shared, suite } from "../../support/suite.js";
import { startWebhookServer } from "../../support/api/webhook-server.js";
import { waitFor } from "#apiserver/wait-for.js";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const RULES = [
  { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE", "DELETE"], resources: ["configmaps"] },
];
// Tells whether the policy is in force.
const PROBE = { expression: "request.operation == 'DELETE' || object.metadata.name != 'probe'", message: "in force" };

const server = shared(() => startTestApiServer());

const configMap = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels },
  data,
});

interface Policied {
  readonly to: Connection;
  readonly name: string;
  readonly configMaps: string;
}

let count = 0;

/** Puts a policy in force for the ConfigMaps of a namespace of its own. */
async function policied(
  validations: object[],
  {
    policy = {},
    binding = {},
    before = async () => {},
  }: {
    policy?: object;
    binding?: object;
    before?: (space: Policied) => Promise<void>;
  } = {},
): Promise<Policied> {
  const to = await server();
  const name = `policy-${++count}`;
  const configMaps = `/api/v1/namespaces/${name}/configmaps`;
  const space = { to, name, configMaps };
  await apiRequestOrThrow(to, "POST /api/v1/namespaces", { body: { metadata: { name, labels: { team: "a" } } } });
  await before(space);
  const spec = { matchConstraints: { resourceRules: RULES }, validations: [PROBE, ...validations], ...policy };
  await apiRequestOrThrow(to, `POST ${ADMISSION}/validatingadmissionpolicies`, { body: { metadata: { name }, spec } });
  const bound = {
    policyName: name,
    validationActions: ["Deny"],
    matchResources: { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } },
    ...binding,
  };
  await apiRequestOrThrow(to, `POST ${ADMISSION}/validatingadmissionpolicybindings`, {
    body: { metadata: { name: `${name}-binding` }, spec: bound },
  });
  await waitFor(
    "the policy is in force",
    async () => {
      const { text, headers } = await apiRequest(to, `POST ${configMaps}?dryRun=All`, { body: configMap("probe") });
      return text.includes("in force") || (headers["warning"] ?? "").includes("in force");
    },
    { timeoutMs: 20_000 },
  );
  return space;
}

/** Returns what an answer says: its code, reason, message and causes. */
function said({ status, body, headers }: ApiAnswer, { name }: Policied): string {
  const { reason, message, details } = body as { reason?: string; message?: string; details?: { causes?: unknown } };
  const text = status < 300 ? (headers["warning"] ?? "") : `${reason} ${message} ${JSON.stringify(details)}`;
  return `${status} ${text}`.replaceAll(name, "P").trim();
}

const deniedBy = (message: string, { code = 422, reason = "Invalid", object = "x" } = {}) => {
  const denial = `ValidatingAdmissionPolicy 'P' with binding 'P-binding' denied request: ${message}`;
  const details = { name: object, kind: "configmaps", causes: [{ message: denial }] };
  return `${code} ${reason} configmaps "${object}" is forbidden: ${denial} ${JSON.stringify(details)}`;
};

suite("validating admission policies", (test) => {
  test("reject requests with the message and reason of the failed validation", async () => {
    const space = await policied([
      { expression: "!has(object.data) || !('a' in object.data) || object.data.a != 'bad'" },
      { expression: "object.metadata.name != 'fixed'", message: " has a message ", reason: "Forbidden" },
      {
        expression: "object.metadata.name != 'made'",
        messageExpression: "'name ' + object.metadata.name",
        reason: "RequestEntityTooLarge",
      },
      { expression: "object.metadata.name != 'fails' || object.data.missing == 'x'" },
      { expression: "object.metadata.name != 'blank'", messageExpression: "' '", message: "fallback" },
    ]);
    const create = async (name: string, data = {}) =>
      said(await apiRequest(space.to, `POST ${space.configMaps}?dryRun=All`, { body: configMap(name, data) }), space);
    assert.is(await create("x", { a: "good" }), "201");
    assert.is(
      await create("x", { a: "bad" }),
      deniedBy("failed expression: !has(object.data) || !('a' in object.data) || object.data.a != 'bad'"),
    );
    assert.is(await create("fixed"), deniedBy("has a message", { code: 403, reason: "Forbidden", object: "fixed" }));
    assert.is(
      await create("made"),
      deniedBy("name made", { code: 413, reason: "RequestEntityTooLarge", object: "made" }),
    );
    assert.is(await create("blank"), deniedBy("fallback", { object: "blank" }));
    assert.is(
      await create("fails", { a: "b" }),
      deniedBy(
        "expression 'object.metadata.name != 'fails' || object.data.missing == 'x'' resulted in error: no such key: missing",
        { object: "fails" },
      ),
    );
  });

  test("evaluate request, oldObject, namespaceObject, variables and authorizer", async () => {
    const space = await policied(
      [
        {
          expression: "request.operation != 'UPDATE' || variables.size >= oldObject.data.size()",
          messageExpression: "'had ' + string(oldObject.data.size()) + ', has ' + string(variables.size)",
        },
        {
          expression:
            "namespaceObject.metadata.labels.team == 'a' && request.namespace == namespaceObject.metadata.name",
        },
        {
          expression:
            "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap' && !request.dryRun || request.dryRun",
        },
        { expression: "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()" },
        {
          expression:
            "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()",
        },
        { expression: "authorizer.requestResource.check('delete').allowed()" },
        { expression: "request.operation != 'DELETE' || object == null", message: "has an object" },
        { expression: "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'", message: "is kept" },
        {
          expression:
            "!(request.operation == 'CREATE' && has(object.metadata.labels) && 'v' in object.metadata.labels) || variables.wrong",
          message: "x",
        },
      ],
      {
        policy: {
          variables: [
            { name: "size", expression: "has(object.data) ? object.data.size() : 0" },
            { name: "wrong", expression: "variables.size + 1 > 0 && object.spec.nothing == 1" },
          ],
        },
      },
    );
    const { to, configMaps } = space;
    const created = await apiRequest(to, `POST ${configMaps}`, { body: configMap("x", { a: "1", b: "2" }) });
    assert.is(said(created, space), "201");
    const updated = await apiRequest(to, `PUT ${configMaps}/x`, { body: configMap("x", { a: "1" }) });
    assert.is(said(updated, space), deniedBy("had 2, has 1"));
    const wrong = await apiRequest(to, `POST ${configMaps}`, { body: configMap("w", {}, { v: "1" }) });
    assert.is(
      said(wrong, space),
      deniedBy(
        "expression '!(request.operation == 'CREATE' && has(object.metadata.labels) && 'v' in object.metadata.labels) || variables.wrong' resulted in error: composited variable \"wrong\" fails to evaluate: no such key: spec",
        { object: "w" },
      ),
    );
    await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap("kept") });
    const deleted = await apiRequest(to, `DELETE ${configMaps}/kept`);
    assert.is(said(deleted, space), deniedBy("is kept", { object: "kept" }));
    assert.is(said(await apiRequest(to, `DELETE ${configMaps}/x`), space), "200");
  });

  test("return warnings with validationActions Warn, and are skipped if a match condition is false", async () => {
    const space = await policied([{ expression: "false", message: "never" }], {
      policy: {
        matchConditions: [
          { name: "not-me", expression: "!object.metadata.name.startsWith('free')" },
          { name: "known", expression: "object.metadata.name != 'broken' || object.data.missing == 'x'" },
        ],
      },
      binding: { validationActions: ["Warn", "Audit"] },
    });
    const create = async (name: string) =>
      said(await apiRequest(space.to, `POST ${space.configMaps}?dryRun=All`, { body: configMap(name) }), space);
    const warned = (message: string) =>
      `201 299 - "Validation failed for ValidatingAdmissionPolicy 'P' with binding 'P-binding': ${message}"`;
    assert.is(await create("x"), warned("never"));
    assert.is(await create("free"), "201");
    assert.is(
      await create("broken"),
      warned(
        "expression 'object.metadata.name != 'broken' || object.data.missing == 'x'' resulted in error: no such key: data",
      ),
    );
  });

  test("evaluate params of the binding, and deny the request if they are missing", async () => {
    const space = await policied(
      [
        {
          expression: "params == null || !has(object.data) || object.data.all(k, k.size() <= int(params.data.longest))",
          messageExpression: "'longer than ' + params.data.longest",
        },
      ],
      {
        policy: { paramKind: { apiVersion: "v1", kind: "ConfigMap" } },
        binding: { paramRef: { name: "limits", parameterNotFoundAction: "Deny" } },
        before: async ({ to, configMaps }) => {
          await apiRequestOrThrow(to, `POST ${configMaps}`, { body: configMap("limits", { longest: "3" }) });
        },
      },
    );
    const { to, configMaps } = space;
    const create = async (data: Record<string, string>) =>
      said(await apiRequest(to, `POST ${configMaps}?dryRun=All`, { body: configMap("x", data) }), space);
    assert.is(await create({ abc: "1" }), "201");
    assert.is(await create({ abcd: "1" }), deniedBy("longer than 3"));
    await apiRequestOrThrow(to, `DELETE ${configMaps}/limits`).catch(() => undefined);
    await waitFor("the parameters are gone", async () => (await create({})).startsWith("422"));
    assert.is(
      await create({}),
      deniedBy("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"),
    );
  });

  test("admit requests with failurePolicy Ignore if an expression fails", async () => {
    const space = await policied([{ expression: "object.data.missing == 'x'" }], {
      policy: { failurePolicy: "Ignore" },
    });
    const answer = await apiRequest(space.to, `POST ${space.configMaps}?dryRun=All`, {
      body: configMap("x", { a: "1" }),
    });
    assert.is(said(answer, space), "201");
  });
});

suite("webhook matchConditions", (test) => {
  test("decide which requests call the webhook, and reject with 403 on an evaluation error", async () => {
    const to = await server();
    const name = `conditions-${++count}`;
    const asked: string[] = [];
    await using hooks = await startWebhookServer((_path, request) => {
      asked.push(request.name ?? "");
      return { response: { allowed: true } };
    });
    await apiRequestOrThrow(to, "POST /api/v1/namespaces", { body: { metadata: { name } } });
    const webhook = {
      name: "hook.example.com",
      clientConfig: { url: `${hooks.url}/0`, caBundle: hooks.caBundle },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      matchConditions: [
        { name: "short", expression: "object.metadata.name.size() < 6" },
        { name: "known", expression: "object.metadata.name != 'fails' || object.data.missing == 'x'" },
      ],
    };
    const body = { metadata: { name }, webhooks: [webhook] };
    await apiRequestOrThrow(to, `POST ${ADMISSION}/validatingwebhookconfigurations`, { body });
    const create = (object: string) =>
      apiRequest(to, `POST /api/v1/namespaces/${name}/configmaps?dryRun=All`, { body: configMap(object, { a: "b" }) });
    await waitFor("the webhook is asked", async () => {
      await create("probe");
      return asked.length > 0;
    });
    asked.length = 0;
    assert.is((await create("too-long-a-name")).status, 201);
    assert.is((await create("short")).status, 201);
    assert.equal(asked, ["short"]);
    const failed = await create("fails");
    assert.is(failed.status, 403);
    assert.is(
      (failed.body as unknown as { message: string }).message,
      `configmaps "fails" is forbidden: expression 'object.metadata.name != 'fails' || object.data.missing == 'x'' resulted in error: no such key: missing`,
    );
  });
});
