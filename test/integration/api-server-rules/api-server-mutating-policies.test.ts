// MutatingAdmissionPolicies; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, apiRequestOrThrow, type ApiAnswer } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { assert, shared, suite } from "../../support/suite.js";
import { startWebhookServer } from "../../support/api/webhook-server.js";
import { waitFor } from "#apiserver/wait-for.js";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const server = shared(() => startTestApiServer());

const apply = (expression: string) => ({ patchType: "ApplyConfiguration", applyConfiguration: { expression } });
const patch = (expression: string) => ({ patchType: "JSONPatch", jsonPatch: { expression } });
const data = (members: string) => apply(`Object{data: ${members}}`);

interface Case {
  readonly title: string;
  readonly mutations: readonly object[];
  /** Default: a ConfigMap. */
  readonly kind?: "ConfigMap" | "Pod" | "Deployment";
  readonly policy?: object;
  readonly binding?: object;
  /** What the answer has to be: parts of the object, or the message of the Status after its code. */
  readonly want: object | string;
}

const denied = (message: string) => `403 Invalid policy 'P' with binding 'P' denied request: ${message}`;
const unfit = (message: string) =>
  denied(`error applying patch: failed to convert patch object to typed object: ${message}`);

const CASES: readonly Case[] = [
  {
    title: "merge an apply configuration into the object",
    mutations: [
      apply("Object{metadata: Object.metadata{labels: {'x': 'y'}}, data: {'b': string(object.data.size())}}"),
    ],
    want: { metadata: { labels: { l: "1", x: "y" } }, data: { a: "1", b: "1" } },
  },
  {
    title: "merge list items of containers by name",
    kind: "Pod",
    mutations: [
      apply(
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: 'E', value: 'v'}]})}}",
      ),
    ],
    want: { spec: { containers: [{ name: "a", image: "i", env: [{ name: "E", value: "v" }] }] } },
  },
  {
    title: "omit optional fields without a value",
    mutations: [apply("Object{?data: optional.of({'z': '1'}), metadata: Object.metadata{?labels: optional.none()}}")],
    want: { metadata: { labels: { l: "1" } }, data: { a: "1", z: "1" } },
  },
  {
    title: "apply the operations of a JSON patch",
    mutations: [
      patch(
        "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}, JSONPatch{op: 'move', from: '/data/a', path: '/data/c'}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x.y/z~'), value: 'q'}, JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey('x.y/z~')}]",
      ),
    ],
    want: { metadata: { labels: { l: "1" } }, data: { b: "1", c: "1" } },
  },
  {
    title: "add objects that a JSON patch constructs",
    kind: "Pod",
    mutations: [
      patch(
        "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'n', image: 'm', ports: [Object.spec.containers.ports{containerPort: 1}]}}]",
      ),
    ],
    want: { spec: { containers: [{ name: "a" }, { name: "n", ports: [{ containerPort: 1, protocol: "TCP" }] }] } },
  },
  {
    title: "apply nothing of a JSON patch whose test operation fails",
    kind: "Deployment",
    mutations: [
      patch(
        "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 3}, JSONPatch{op: 'test', path: '/spec/replicas', value: 100}]",
      ),
    ],
    want: { spec: { replicas: 1 } },
  },
  {
    title: "apply each mutation to the result of the previous one",
    policy: {
      variables: [
        { name: "n", expression: "object.data.size()" },
        { name: "twice", expression: "variables.n * 2" },
      ],
    },
    mutations: [data("{'n': string(variables.twice)}"), data("{'m': string(variables.twice)}")],
    want: { data: { a: "1", n: "2", m: "4" } },
  },
  {
    title: "are skipped if a match condition is false",
    policy: { matchConditions: [{ name: "a", expression: "object.metadata.name != 'x'" }] },
    mutations: [data("{'n': '1'}")],
    want: { data: { a: "1" } },
  },
  {
    title: "are invoked again with reinvocationPolicy IfNeeded",
    policy: { reinvocationPolicy: "IfNeeded" },
    mutations: [data("{'c': (has(object.data.c) ? object.data.c : '') + 'x'}")],
    want: { data: { a: "1", c: "xx" } },
  },
  {
    title: "are invoked once with reinvocationPolicy Never",
    mutations: [data("{'c': (has(object.data.c) ? object.data.c : '') + 'x'}")],
    want: { data: { a: "1", c: "x" } },
  },
  {
    title: "apply once for each parameter object that the binding selects",
    policy: { paramKind: { apiVersion: "v1", kind: "ConfigMap" } },
    binding: { paramRef: { selector: { matchLabels: { param: "1" } }, parameterNotFoundAction: "Deny" } },
    mutations: [data("{params.metadata.name: string(params.data.size())}")],
    want: { data: { a: "1", p1: "1", p2: "1" } },
  },
  {
    title: "skip failing mutations with failurePolicy Ignore",
    policy: { failurePolicy: "Ignore" },
    mutations: [data("{'x': string(object.data.missing)}"), data("{'k': 'v'}")],
    want: { data: { a: "1", k: "v" } },
  },
  {
    title: "reject the request with the failed expression and its error",
    mutations: [data("{'x': string(object.data.missing)}")],
    want: denied(
      "expression 'Object{data: {'x': string(object.data.missing)}}' resulted in error: no such key: missing",
    ),
  },
  {
    title: "reject an object type that does not match its field",
    mutations: [apply("Object{metadata: Object.meta{labels: {'x': 'y'}}}")],
    want: denied(
      'type mismatch: unexpected type name "Object.meta", expected "Object.metadata", which matches field name path from root Object type',
    ),
  },
  {
    title: "reject a field that the kind does not have",
    mutations: [apply("Object{spec: Object.spec{a: 1}}")],
    want: unfit(".spec: field not declared in schema"),
  },
  {
    title: "reject values of a wrong type",
    kind: "Pod",
    mutations: [
      apply("Object{spec: Object.spec{hostNetwork: 'yes', containers: [Object.spec.containers{name: 'a', image: 1}]}}"),
    ],
    want: unfit(
      'errors:\n  .spec.hostNetwork: expected boolean, got &{yes}\n  .spec.containers[name="a"].image: expected string, got &value.valueUnstructured{Value:1}',
    ),
  },
  {
    title: "reject a map where a list of objects is expected",
    kind: "Pod",
    mutations: [apply("Object{spec: Object.spec{containers: [{'name': 'a', 'image': 'z'}]}}")],
    want: unfit(".spec.containers: element 0: associative list with keys may not have non-map elements"),
  },
  {
    title: "reject an apply configuration that would replace atomic lists",
    kind: "Pod",
    mutations: [
      apply(
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['b']}], tolerations: [Object.spec.tolerations{key: 'a'}]}}",
      ),
    ],
    want: denied(
      "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args, .spec.tolerations",
    ),
  },
  ...(
    [
      [
        "{op: 'remove', path: '/data/zz'}",
        "error in remove for path: '/data/zz': Unable to remove nonexistent key: zz: missing value",
      ],
      [
        "{op: 'add', path: '/zz/y', value: 1}",
        'add operation does not apply: doc is missing path: "/zz/y": missing value',
      ],
      [
        "{op: 'replace', path: '/zz/y', value: 1}",
        "replace operation does not apply: doc is missing path: /zz/y: missing value",
      ],
      [
        "{op: 'copy', from: '/y/z', path: '/data/b'}",
        "copy operation does not apply: doc is missing from path: /y/z: missing value",
      ],
      [
        "{op: 'move', from: '/data/zz', path: '/data/b'}",
        "error in move for path: 'zz': Unable to remove nonexistent key: zz: missing value",
      ],
      ["{op: 'foo', path: '/data'}", "Unexpected kind: foo"],
    ] as const
  ).map(([operation, words]) => ({
    title: `reject a JSON patch that does not apply: ${operation}`,
    mutations: [patch(`[JSONPatch${operation}]`)],
    want: denied(`JSON Patch: ${words}`),
  })),
  {
    title: "reject a JSON patch that adds unknown fields",
    mutations: [patch("[JSONPatch{op: 'add', path: '/foo', value: 1}]")],
    want: '500 InternalError Internal error occurred: strict decoding error: unknown field "foo"',
  },
  {
    title: "reject a JSON patch that changes the kind",
    mutations: [patch("[JSONPatch{op: 'replace', path: '/kind', value: 'Foo'}]")],
    want: '500 InternalError Internal error occurred: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
  },
  {
    title: "reject a change of the namespace",
    mutations: [apply("Object{metadata: Object.metadata{namespace: 'other'}}")],
    want: "400 BadRequest the namespace of the provided object does not match the namespace sent on the request",
  },
  {
    title: "reject the request if parameters are required and missing",
    policy: { paramKind: { apiVersion: "v1", kind: "ConfigMap" } },
    binding: { paramRef: { name: "missing", parameterNotFoundAction: "Deny" } },
    mutations: [data("{'n': '1'}")],
    want: "403 Forbidden policy 'P' with binding 'P' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
  },
  {
    title: "reject the request if the paramKind is unknown",
    policy: { paramKind: { apiVersion: "example.com/v1", kind: "Nothing" } },
    binding: { paramRef: { name: "missing", parameterNotFoundAction: "Deny" } },
    mutations: [data("{'n': '1'}")],
    want: "403 Forbidden policy \"P\" denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'",
  },
  {
    title: "reject an expression that exceeds the cost limit",
    mutations: [
      data(
        `{'n': string(${"abcdef".split("").reduce((inner, name) => `[0,1,2,3,4,5,6,7,8,9].map(${name}, ${inner})`, "1")}.size())}`,
      ),
    ],
    want: "operation cancelled: actual cost limit exceeded",
  },
];

const container = { name: "a", image: "i", args: ["x"] };
const OBJECTS = {
  ConfigMap: { metadata: { name: "x", labels: { l: "1" } }, data: { a: "1" } },
  Pod: { metadata: { name: "x" }, spec: { containers: [container], tolerations: [{ operator: "Exists" }] } },
  Deployment: {
    metadata: { name: "x" },
    spec: {
      replicas: 1,
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [container] } },
    },
  },
};
const PATHS = {
  ConfigMap: { group: "", resource: "configmaps", prefix: "/api/v1" },
  Pod: { group: "", resource: "pods", prefix: "/api/v1" },
  Deployment: { group: "apps", resource: "deployments", prefix: "/apis/apps/v1" },
};

let count = 0;

/** Puts a policy in force in a namespace of its own, and returns its name. */
async function policied({ mutations, kind, policy = {}, binding = {} }: Omit<Case, "title" | "want">) {
  const to = await server();
  const name = `mutating-${++count}`;
  await apiRequestOrThrow(to, "POST /api/v1/namespaces", { body: { metadata: { name } } });
  for (const param of ["p1", "p2"]) {
    const body = { metadata: { name: param, labels: { param: "1" } }, data: { a: "1" } };
    await apiRequestOrThrow(to, `POST /api/v1/namespaces/${name}/configmaps`, { body });
  }
  const { group, resource } = PATHS[kind ?? "ConfigMap"];
  const rule = (apiGroup: string, plural: string) => ({
    resourceRules: [
      { apiGroups: [apiGroup], apiVersions: ["*"], operations: ["CREATE", "UPDATE"], resources: [plural] },
    ],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
  });
  const spec = { reinvocationPolicy: "Never", matchConstraints: rule(group, resource), mutations, ...policy };
  const probe = {
    reinvocationPolicy: "Never",
    matchConstraints: rule("", "secrets"),
    mutations: [apply("Object{metadata: Object.metadata{labels: {'in': 'force'}}}")],
  };
  for (const [each, body, more] of [
    [name, spec, binding],
    [`${name}-probe`, probe, {}],
  ] as const) {
    await apiRequestOrThrow(to, `POST ${ADMISSION}/mutatingadmissionpolicies`, {
      body: { metadata: { name: each }, spec: body },
    });
    await apiRequestOrThrow(to, `POST ${ADMISSION}/mutatingadmissionpolicybindings`, {
      body: { metadata: { name: each }, spec: { policyName: each, ...more } },
    });
  }
  // The policy is in force when the one is that was created after it.
  await waitFor(
    "the policy is in force",
    async () => {
      const secret = { metadata: { name: "probe" } };
      const path = `POST /api/v1/namespaces/${name}/secrets?dryRun=All`;
      return (await apiRequest(to, path, { body: secret })).text.includes("force");
    },
    { timeoutMs: 20_000 },
  );
  return { to, name };
}

function said({ status, body }: ApiAnswer, name: string): string {
  const { reason, message } = body as { reason?: string; message?: string };
  return `${status} ${reason} ${message}`.replaceAll(name, "P");
}

/** Whether an object has all that is wanted; lists and the members of `data` and `labels` have nothing else. */
function has(object: unknown, want: unknown, name = ""): boolean {
  if (typeof want !== "object" || want === null) return object === want;
  if (typeof object !== "object" || object === null) return false;
  const isWhole = Array.isArray(want) || name === "data" || name === "labels";
  if (isWhole && Object.keys(object).length !== Object.keys(want).length) return false;
  return Object.entries(want).every(([key, value]) => has((object as Record<string, unknown>)[key], value, key));
}

suite("mutating admission policies", (test) => {
  for (const { title, want, ...given } of CASES)
    test(title, async () => {
      const { to, name } = await policied(given);
      const kind = given.kind ?? "ConfigMap";
      const { prefix, resource } = PATHS[kind];
      const path = `POST ${prefix}/namespaces/${name}/${resource}?dryRun=All`;
      let answer: ApiAnswer | undefined;
      const isWanted = async () => {
        answer = await apiRequest(to, path, { body: OBJECTS[kind] });
        if (typeof want === "string") return said(answer, name).includes(want);
        return answer.status === 201 && has(answer.body, want);
      };
      // What a real server knows of parameters it knows a moment later.
      await waitFor("the answer is the wanted one", isWanted, { timeoutMs: 10_000 }).catch(() => undefined);
      if (typeof want === "string") assert.match(said(answer!, name), want);
      else assert.ok(has(answer?.body, want), `${answer?.text}\n wanted: ${JSON.stringify(want)}`);
    });

  test("run before webhooks, and again after webhooks changed the object", async () => {
    const { to, name } = await policied({
      policy: { reinvocationPolicy: "IfNeeded" },
      mutations: [data("{'seen': (has(object.data.hook) ? 'hook' : 'nothing'), 'policy': '1'}")],
    });
    const asked: string[] = [];
    await using hooks = await startWebhookServer((_path, request) => {
      const { data } = request.object as { data: Record<string, string> };
      asked.push(JSON.stringify(data));
      const operations = [{ op: "add", path: "/data/hook", value: "1" }];
      return {
        response: {
          allowed: true,
          patchType: "JSONPatch",
          patch: Buffer.from(JSON.stringify(operations)).toString("base64"),
        },
      };
    });
    const webhook = {
      name: "hook.example.com",
      clientConfig: { url: `${hooks.url}/0`, caBundle: hooks.caBundle },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
      reinvocationPolicy: "IfNeeded",
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    };
    await apiRequestOrThrow(to, `POST ${ADMISSION}/mutatingwebhookconfigurations`, {
      body: { metadata: { name }, webhooks: [webhook] },
    });
    const path = `POST /api/v1/namespaces/${name}/configmaps?dryRun=All`;
    let body: { data?: object } = {};
    await waitFor("the webhook is asked", async () => {
      asked.length = 0;
      body = (await apiRequest<{ data?: object }>(to, path, { body: OBJECTS.ConfigMap })).body;
      return asked.length > 0;
    });
    assert.equal(body.data, { a: "1", hook: "1", policy: "1", seen: "hook" });
    assert.match(asked[0] ?? "", '"seen":"nothing"');
    assert.match(asked[1] ?? "", '"seen":"hook"');
  });
});
