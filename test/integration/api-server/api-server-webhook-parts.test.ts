// What webhooks are asked about besides objects: evictions, bindings, connections, tokens and reviews; and which of their answers are none. The same laws on the embedded server and, with
// TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { ALLOWED, configMap, hookedOn, patchOf, type Answer } from "../../support/hooked.js";
import { assert, shared, suite } from "../../support/suite.js";
import type { ReviewRequest, WebhookAnswer } from "../../support/api/webhook-server.js";

const server = shared(() => startTestApiServer());
const RULES = [
  {
    apiGroups: [""],
    apiVersions: ["v1"],
    operations: ["*"],
    resources: ["configmaps", "pods", "pods/eviction", "pods/binding", "bindings"],
  },
];
const REFUSED: WebhookAnswer = { response: { allowed: false, status: { message: "not now" } } };

const asked = async (answer: Answer, type: "Mutating" | "Validating" = "Validating") => {
  const hook = await hookedOn(await server(), [{ type, answer, over: { rules: RULES } }]);
  return Object.assign(hook, { pods: `/api/v1/namespaces/${hook.namespace}/pods` });
};

async function createPod(to: Connection, pods: string, name: string): Promise<void> {
  const spec = { containers: [{ name: "c", image: "i" }], automountServiceAccountToken: false };
  await apiRequestOrThrow(to, `POST ${pods}`, { body: { metadata: { name, labels: { app: "a" } }, spec } });
}

const eviction = (name: string) => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });
const binding = (name: string) => ({
  apiVersion: "v1",
  kind: "Binding",
  metadata: { name },
  target: { kind: "Node", name: "first" },
});
const shown = ({ operation, kind, name, subResource, object }: ReviewRequest) => {
  const { kind: objectKind, metadata } = object as { kind: string; metadata: { name?: string; namespace?: string } };
  return [operation, kind, name, subResource, objectKind, metadata.name, metadata.namespace !== undefined];
};

suite("admission webhooks for subresources of Pods", (test) => {
  test("receive an eviction as CREATE and may reject it, and are not called for its delete", async () => {
    let answer: WebhookAnswer = REFUSED;
    await using hook = await asked(({ subResource }) => (subResource === "eviction" ? answer : ALLOWED));
    const { to, pods, requests } = hook;
    await createPod(to, pods, "evicted");
    requests.length = 0;
    const refused = await apiRequest<{ message: string }>(to, `POST ${pods}/evicted/eviction`, {
      body: eviction("evicted"),
    });
    assert.equal([refused.status, /denied the request: not now/.test(refused.body.message)], [400, true]);
    answer = ALLOWED;
    assert.is((await apiRequest(to, `POST ${pods}/evicted/eviction`, { body: eviction("evicted") })).status, 201);
    const want = ["CREATE", { group: "policy", version: "v1", kind: "Eviction" }, "evicted", "eviction", "Eviction"];
    assert.equal(
      requests.map(({ request }) => shown(request)),
      [
        [...want, "evicted", true],
        [...want, "evicted", true],
      ],
    );
    assert.is((await apiRequest(to, `GET ${pods}/evicted`)).status, 404);
  });

  test("mutate a Binding before the Pod is bound", async () => {
    const labels = { app: "b", zone: "z" };
    const answer = patchOf(
      { op: "replace", path: "/target/name", value: "second" },
      { op: "add", path: "/metadata/labels", value: labels },
    );
    await using hook = await asked(({ object }) => (object?.["kind"] === "Binding" ? answer : ALLOWED), "Mutating");
    const { to, pods, requests } = hook;
    await createPod(to, pods, "bound");
    await createPod(to, pods, "bound-too");
    requests.length = 0;
    assert.is((await apiRequest(to, `POST ${pods}/bound/binding`, { body: binding("bound") })).status, 201);
    const bindings = pods.replace(/pods$/, "bindings");
    const status = await apiRequestOrThrow<{ kind: string }>(to, `POST ${bindings}`, { body: binding("bound-too") });
    assert.is(status.kind, "Status");
    const kind = { group: "", version: "v1", kind: "Binding" };
    assert.equal(
      requests.map(({ request }) => shown(request)),
      [
        ["CREATE", kind, "bound", "binding", "Binding", "bound", true],
        ["CREATE", kind, "bound-too", undefined, "Binding", "bound-too", true],
      ],
    );
    for (const name of ["bound", "bound-too"]) {
      const { spec, metadata } = await apiRequestOrThrow(to, `GET ${pods}/${name}`);
      assert.equal([spec?.["nodeName"], metadata.labels], ["second", labels]);
    }
  });

  test("are not called for an Eviction or Binding of another Pod, which is rejected with 400", async () => {
    await using hook = await asked(() => ALLOWED);
    const { to, pods, requests } = hook;
    await createPod(to, pods, "named");
    requests.length = 0;
    const { metadata: _, ...nameless } = eviction("named");
    for (const [part, body, kind] of [
      ["eviction", eviction("other"), "Eviction"],
      ["eviction", nameless, "Eviction"],
      ["binding", binding("other"), "Binding"],
    ] as const) {
      const { status, body: answer } = await apiRequest<{ message: string }>(to, `POST ${pods}/named/${part}`, {
        body,
      });
      assert.equal([status, answer.message], [400, `name in URL does not match name in ${kind} object`]);
    }
    assert.equal(requests, []);
  });
});

const ASKED_FOR = [
  { apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] },
  { apiGroups: [""], apiVersions: ["v1"], operations: ["CONNECT"], resources: ["pods/*"] },
  { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["serviceaccounts/token"] },
  {
    apiGroups: ["authentication.k8s.io", "authorization.k8s.io"],
    apiVersions: ["*"],
    operations: ["CREATE"],
    resources: ["*"],
  },
];

suite("admission webhooks for requests that are not persisted", (test) => {
  const hooked = async (type: "Mutating" | "Validating", answer: Answer, over = {}) => {
    const hook = await hookedOn(await server(), [{ type, answer, over: { rules: ASKED_FOR, ...over } }]);
    const core = `/api/v1/namespaces/${hook.namespace}`;
    await createPod(hook.to, `${core}/pods`, "p");
    await apiRequestOrThrow(hook.to, `POST ${core}/serviceaccounts`, { body: { metadata: { name: "sa" } } });
    return Object.assign(hook, { core, reviews: `/apis/authorization.k8s.io/v1/namespaces/${hook.namespace}` });
  };
  const local = (namespace: string) => ({
    spec: { user: "ann", resourceAttributes: { verb: "get", resource: "pods", namespace } },
  });

  test("receive CONNECT with its options, and may reject it before the Pod is looked up", async () => {
    await using hook = await hooked("Validating", ({ operation }) => (operation === "CONNECT" ? REFUSED : ALLOWED));
    const { to, core, requests } = hook;
    for (const [path, kind, members] of [
      ["p/exec?command=ls&command=-l&stdin=1&tty=false", "PodExecOptions", { stdin: true, command: ["ls", "-l"] }],
      ["none/attach?container=c", "PodAttachOptions", { container: "c" }],
      ["p/portforward?ports=80,81", "PodPortForwardOptions", { ports: [80, 81] }],
    ] as const) {
      requests.length = 0;
      const refused = await apiRequest<{ message: string }>(to, `POST ${core}/pods/${path}`);
      assert.equal([refused.status, /denied the request: not now/.test(refused.body.message)], [400, true]);
      const [name, subResource] = path.replace(/\?.*/, "").split("/");
      assert.equal(
        requests.map(({ request: { uid: _uid, userInfo: _user, ...request } }) => request),
        [
          {
            kind: { group: "", version: "v1", kind },
            resource: { group: "", version: "v1", resource: "pods" },
            requestKind: { group: "", version: "v1", kind },
            requestResource: { group: "", version: "v1", resource: "pods" },
            requestSubResource: subResource as string,
            ...{ name: name as string, namespace: hook.namespace, subResource: subResource as string },
            ...{ operation: "CONNECT", object: { kind, apiVersion: "v1", ...members } },
            ...{ oldObject: null, dryRun: false, options: null },
          },
        ],
      );
    }
  });

  test("mutate the options of a CONNECT request", async () => {
    const answer = patchOf({ op: "add", path: "/container", value: "other" });
    await using hook = await hooked("Mutating", ({ operation }) => (operation === "CONNECT" ? answer : ALLOWED));
    const { status, body } = await apiRequest<{ message: string }>(hook.to, `GET ${hook.core}/pods/p/exec?command=ls`);
    assert.equal([status, body.message], [400, "container other is not valid for pod p"]);
  });

  test("are not called for CONNECT with an objectSelector", async () => {
    const objectSelector = { matchExpressions: [{ key: "odd", operator: "DoesNotExist" }] };
    await using hook = await hooked("Validating", () => ALLOWED, { objectSelector });
    const { to, core, requests } = hook;
    await apiRequest(to, `POST ${core}/pods/p/exec?command=ls`);
    assert.equal(requests, []);
    await apiRequestOrThrow(to, `POST ${hook.reviews}/localsubjectaccessreviews`, { body: local(hook.namespace) });
    assert.is(requests.length, 1);
  });

  test("mutate a TokenRequest before it is validated", async () => {
    const answer = patchOf(
      { op: "add", path: "/spec/audiences", value: ["hooked"] },
      { op: "replace", path: "/spec/expirationSeconds", value: 700 },
    );
    await using hook = await hooked("Mutating", ({ subResource }) => (subResource === "token" ? answer : ALLOWED));
    const { to, core, requests } = hook;
    requests.length = 0;
    const path = `POST ${core}/serviceaccounts/sa/token`;
    const { spec } = await apiRequestOrThrow(to, path, { body: { spec: { expirationSeconds: 1 } } });
    assert.equal(spec, { audiences: ["hooked"], expirationSeconds: 700, boundObjectRef: null });
    const kind = { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
    assert.equal(
      requests.map(({ request }) => shown(request)),
      [["CREATE", kind, "sa", "token", "TokenRequest", undefined, true]],
    );
  });

  test("may reject a TokenRequest", async () => {
    await using hook = await hooked("Validating", ({ subResource }) => (subResource === "token" ? REFUSED : ALLOWED));
    const { to, core, requests } = hook;
    requests.length = 0;
    const refused = await apiRequest(to, `POST ${core}/serviceaccounts/sa/token`, { body: { spec: {} } });
    const missing = await apiRequest(to, `POST ${core}/serviceaccounts/none/token`, { body: { spec: {} } });
    assert.equal([refused.status, missing.status], [400, 404]);
    const objects = requests.map(({ request }) => request.object as { metadata: { name: string }; status: object });
    assert.equal(
      objects.map(({ metadata, status }) => [metadata.name, status]),
      [["sa", { token: "", expirationTimestamp: null }]],
    );
  });

  test("mutate and reject a LocalSubjectAccessReview", async () => {
    const answer: Answer = ({ object }) =>
      object?.["kind"] === "LocalSubjectAccessReview"
        ? patchOf({ op: "replace", path: "/spec/user", value: "joe" })
        : ALLOWED;
    await using hook = await hooked("Mutating", answer);
    const path = `POST ${hook.reviews}/localsubjectaccessreviews`;
    const review = await apiRequestOrThrow(hook.to, path, { body: local(hook.namespace) });
    assert.is(review.spec?.["user"], "joe");
    await using refusing = await hooked("Validating", ({ object }) =>
      object?.["kind"] === "LocalSubjectAccessReview" ? REFUSED : ALLOWED,
    );
    const refused = await apiRequest(refusing.to, `POST ${refusing.reviews}/localsubjectaccessreviews`, {
      body: local(refusing.namespace),
    });
    assert.is(refused.status, 400);
  });
});

suite("admission webhook responses", (test) => {
  const review = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1" };
  const body =
    (answer: (uid: string) => object): Answer =>
    ({ uid }) => ({ body: JSON.stringify(answer(uid)) });
  const cases: ["Mutating" | "Validating", Answer, string][] = [
    ["Validating", body(() => ({})), "webhook response was absent"],
    [
      "Validating",
      body((uid) => ({ response: { uid, allowed: true } })),
      "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
    ],
    ["Validating", body(() => ({ ...review, response: { uid: "x" } })), 'expected response.uid="UID", got "x"'],
    [
      "Validating",
      body((uid) => ({ ...review, response: { uid, allowed: false, patchType: "JSONPatch" } })),
      "validating webhook may not return response.patchType",
    ],
    [
      "Mutating",
      body((uid) => ({ ...review, response: { uid, allowed: false, patchType: "JSONPatch" } })),
      "webhook returned response.patchType but not response.patch",
    ],
    [
      "Mutating",
      body((uid) => ({ ...review, response: { uid, allowed: true, patch: "W10=", patchType: "" } })),
      'webhook returned invalid response.patchType of ""',
    ],
    [
      "Mutating",
      body((uid) => ({ ...review, response: { uid, allowed: true, patch: "W10=" } })),
      "webhook returned response.patch but not response.patchType",
    ],
  ];

  for (const type of ["Validating", "Mutating"] as const)
    test(`fail the request with 500 and the reason if invalid (${type.toLowerCase()})`, async () => {
      const [first, ...rest] = cases.filter((one) => one[0] === type);
      let answer = first?.[1] as Answer;
      await using hook = await asked((request) => answer(request), type);
      const { to, configMaps } = hook;
      for (const [, other, message] of [first, ...rest] as typeof cases) {
        answer = other;
        const failed = await apiRequest<{ message: string }>(to, `POST ${configMaps}`, { body: configMap("never") });
        const text = failed.body.message.replace(/uid="[^"]{36}"/, 'uid="UID"');
        const subject = 'Internal error occurred: failed calling webhook "hook-0.example.com"';
        assert.equal([failed.status, text], [500, `${subject}: received invalid webhook response: ${message}`]);
      }
    });
});
