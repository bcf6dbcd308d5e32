// What webhooks are asked about besides objects: evictions and bindings; and which of their answers are none. The same laws on the embedded server and, with
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

suite("what admission webhooks are asked about beside objects", (test) => {
  test("an eviction is a creation, which can be refused; the deletion that it leads to is not asked about", async () => {
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

  test("a webhook changes a binding before the Pod is bound", async () => {
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

  test("an eviction or a binding names its Pod, and nobody validates one that does not", async () => {
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

suite("answers of admission webhooks", (test) => {
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
    test(`what a ${type.toLowerCase()} webhook must not answer is told in words that say why`, async () => {
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
