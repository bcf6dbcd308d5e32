// The policy of deploy/generated/admission.yaml; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiAnswer } from "../../support/api/api-request.js";
import { startTestApiServer, type TestApiServer } from "../../support/api/api-server.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const DEPLOY = join(repositoryRoot, "fixtures/samples/webpage/deploy/generated");
const NAMESPACE = "webpage-system";
const MAPS = "/api/v1/namespaces/tenant/configmaps";
const PAGES = "/apis/example.com/v1/namespaces/tenant/webpages";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/tenant/deployments";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const CONTROLLER = "gen-operator.dev/controller";
const DEPENDENT = "gen-operator.dev/dependent";
const STATE = "gen-operator.dev/external-state";
const LINK = { labels: { [CONTROLLER]: "webpage" }, annotations: { [DEPENDENT]: "configMap" } };

/** Applies the sample's manifests; `tenant` may do anything in the namespace `tenant`, and a second operator has only its own names. */
async function startPolicedServer(): Promise<TestApiServer> {
  const server = await startTestApiServer({
    crds: ["fixtures/samples/webpage/crds/webpages.example.com.yaml"],
  });
  const create = async (path: string, body: object) => apiRequestOrThrow(server, `POST ${path}`, { body });
  for (const name of [NAMESPACE, "tenant", "other-system"])
    await create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  for (const file of ["rbac.yaml", "admission.yaml"])
    for (const document of parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8"))) {
      const object = document.toJS() as Manifest;
      await create(collectionOf(object), object);
    }
  const apiGroup = "rbac.authorization.k8s.io";
  const roleOf = (kind: string, name: string, rules: object[]) => ({
    ...{ apiVersion: `${apiGroup}/v1`, kind, metadata: { name }, rules },
  });
  const bindingOf = (kind: string, name: string, subject: object) => ({
    ...{ apiVersion: `${apiGroup}/v1`, kind, metadata: { name } },
    ...{ roleRef: { apiGroup, kind: "ClusterRole", name }, subjects: [subject] },
  });
  await create(
    `${RBAC}/clusterroles`,
    roleOf("ClusterRole", "owner", [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }]),
  );
  const tenant = { apiGroup, kind: "User", name: "tenant" };
  await create(`${RBAC}/namespaces/tenant/rolebindings`, bindingOf("RoleBinding", "owner", tenant));
  const rules = [
    { apiGroups: [""], resources: ["configmaps"], verbs: ["*"] },
    { apiGroups: ["example.com"], resources: ["webpages"], verbs: ["*"] },
    { apiGroups: ["gen-operator.dev"], resources: ["links"], resourceNames: ["other-operator"], verbs: ["set"] },
    { apiGroups: ["gen-operator.dev"], resources: ["marks"], verbs: ["set"] },
  ];
  await create(`${RBAC}/clusterroles`, roleOf("ClusterRole", "other", rules));
  const other = { kind: "ServiceAccount", name: "other", namespace: "other-system" };
  await create(`${RBAC}/clusterrolebindings`, bindingOf("ClusterRoleBinding", "other", other));
  // A policy takes effect a moment after it is created.
  await waitFor("the policy is in force", async () => {
    const { status } = await as(server, "tenant", `POST ${MAPS}?dryRun=All`, mapOf("probe", LINK));
    return status === 403;
  });
  return server;
}

function collectionOf({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const plural = kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural.toLowerCase()}`;
}

const OPERATOR = `system:serviceaccount:${NAMESPACE}:webpage`;
const OTHER = "system:serviceaccount:other-system:other";

async function as(server: TestApiServer, user: string, request: string, body?: object): Promise<ApiAnswer> {
  const headers = { "Impersonate-User": user };
  const contentType = request.startsWith("PATCH") ? { contentType: "application/merge-patch+json" } : {};
  return apiRequest(server, request, { headers, ...contentType, ...(body === undefined ? {} : { body }) });
}

const mapOf = (name: string, metadata: object = {}) => ({
  ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data: { a: "1" } },
});
const pageOf = (name: string, metadata: object = {}) => ({
  ...{ apiVersion: "example.com/v1", kind: "WebPage", metadata: { name, ...metadata }, spec: { html: "hello" } },
});
const annotated = (annotations: object) => ({ metadata: { annotations } });
const labelled = (labels: object) => ({ metadata: { labels } });

suite("admission policy for operator labels and annotations", (test) => {
  const policed = shared(startPolicedServer);

  const allowed = async (user: string, request: string, body?: object) => {
    const { status, text } = await as(await policed(), user, request, body);
    assert.ok(status < 300, `${user} ${request}: ${text}`);
  };
  const denied = async (user: string, request: string, body?: object) => {
    const { status, text } = await as(await policed(), user, request, body);
    assert.is(status, 403, `${user} ${request}: ${text}`);
    assert.match(text, "webpage-links");
    return text;
  };

  test("denies tenants to create objects with them", async () => {
    const text = await denied("tenant", `POST ${MAPS}`, mapOf("trap", LINK));
    assert.match(
      text,
      "only the operator may set gen-operator.dev/controller: the object would be taken for one of its own",
    );
    assert.match(text, "To let tenant set it, bind it to ClusterRole webpage-links");
    for (const metadata of [
      { annotations: { [DEPENDENT]: "configMap" } },
      { labels: { [STATE]: "webpage" } },
      { annotations: { [CONTROLLER]: "webpage" } },
      { labels: { [CONTROLLER]: "webpage", [STATE]: "a" }, annotations: { [CONTROLLER]: "b" } },
    ])
      await denied("tenant", `POST ${MAPS}`, mapOf("trap", metadata));
    await denied("tenant", `POST ${PAGES}`, pageOf("trap", { annotations: { "gen-operator.dev/token": "a" } }));
  });

  test("denies tenants to add, change or remove them", async () => {
    await allowed(OPERATOR, `POST ${MAPS}`, mapOf("own", LINK));
    await allowed("tenant", `POST ${MAPS}`, mapOf("plain"));
    for (const patch of [
      annotated({ [DEPENDENT]: "service" }),
      annotated({ [DEPENDENT]: null }),
      annotated({ "gen-operator.dev/item": "a" }),
      labelled({ [CONTROLLER]: "other" }),
      labelled({ [CONTROLLER]: null }),
      { metadata: { labels: null, annotations: null } },
    ])
      await denied("tenant", `PATCH ${MAPS}/own`, patch);
    await denied("tenant", `PATCH ${MAPS}/plain`, labelled({ [CONTROLLER]: "webpage" }));
    await denied("tenant", `PATCH ${MAPS}/plain`, annotated({ [DEPENDENT]: "configMap" }));
  });

  test("allows tenants all other writes, including gen-operator.dev/paused", async () => {
    await allowed(OPERATOR, `POST ${MAPS}`, mapOf("edited", LINK));
    await allowed("tenant", `PATCH ${MAPS}/edited`, { data: { a: "2" }, ...annotated({ "example.com/note": "a" }) });
    await allowed("tenant", `PATCH ${MAPS}/edited`, {
      metadata: { labels: { team: "a" }, finalizers: ["example.com/a"] },
    });
    await allowed("tenant", `PATCH ${MAPS}/edited`, { metadata: { finalizers: null } });
    await allowed("tenant", `DELETE ${MAPS}/edited`);
    await allowed("tenant", `POST ${MAPS}`, mapOf("free", { labels: { "my.gen-operator.dev/a": "b" } }));
    await allowed("tenant", `POST ${PAGES}`, pageOf("paused", { annotations: { "gen-operator.dev/paused": "true" } }));
    for (const value of ["false", null])
      await allowed("tenant", `PATCH ${PAGES}/paused`, annotated({ "gen-operator.dev/paused": value }));
    await allowed("tenant", `POST ${PAGES}`, pageOf("bare"));
  });

  test("denies annotation changes through the status subresource, and allows scale", async () => {
    const labels = { app: "a" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "a", image: "a" }] } };
    const spec = { selector: { matchLabels: labels }, template };
    await allowed("tenant", `POST ${DEPLOYMENTS}`, {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "a" },
      spec,
    });
    await denied("tenant", `PATCH ${DEPLOYMENTS}/a/status`, annotated({ [DEPENDENT]: "deployment" }));
    await allowed("tenant", `PATCH ${DEPLOYMENTS}/a/scale`, { spec: { replicas: 2 } });
  });

  test("allows the operator to set, apply and remove them", async () => {
    await allowed(OPERATOR, `POST ${MAPS}`, mapOf("linked", LINK));
    await allowed(
      OPERATOR,
      `PATCH ${MAPS}/linked`,
      annotated({ [DEPENDENT]: "service", "gen-operator.dev/item": "a" }),
    );
    const server = await policed();
    const applied = await apiRequest(server, `PATCH ${MAPS}/applied?fieldManager=webpage&force=true`, {
      headers: { "Impersonate-User": OPERATOR },
      contentType: "application/apply-patch+yaml",
      body: mapOf("applied", { labels: { [CONTROLLER]: "webpage", [STATE]: "webpage" } }),
    });
    assert.is(applied.status, 201, applied.text);
    await allowed(OPERATOR, `PATCH ${MAPS}/linked`, { metadata: { labels: null, annotations: null } });
    await allowed("tenant", `POST ${PAGES}`, pageOf("marked"));
    await allowed(OPERATOR, `PATCH ${PAGES}/marked`, annotated({ "gen-operator.dev/token": "a" }));
  });

  test("allows administrators to change them", async () => {
    const server = await policed();
    await allowed(OPERATOR, `POST ${MAPS}`, mapOf("broken", LINK));
    await apiRequestOrThrow(server, `PATCH ${MAPS}/broken`, {
      contentType: "application/merge-patch+json",
      body: { metadata: { labels: { [CONTROLLER]: "unknown", [STATE]: "more" }, annotations: null } },
    });
  });

  test("allows other operators their own objects, and denies them to change the controller", async () => {
    const others = { labels: { [CONTROLLER]: "other" }, annotations: { [DEPENDENT]: "map" } };
    await allowed(OTHER, `POST ${MAPS}`, mapOf("others", others));
    await allowed(OTHER, `PATCH ${MAPS}/others`, annotated({ [DEPENDENT]: "maps" }));
    await allowed(OTHER, `PATCH ${MAPS}/others`, { metadata: { labels: null, annotations: null } });
    await denied(OTHER, `PATCH ${MAPS}/others`, labelled({ [CONTROLLER]: "webpage" }));
    await denied(OTHER, `POST ${MAPS}`, mapOf("stolen", LINK));
    await allowed(OPERATOR, `POST ${MAPS}`, mapOf("mine", LINK));
    await denied(OTHER, `PATCH ${MAPS}/mine`, labelled({ [CONTROLLER]: "other" }));
  });

  test("allows operators to annotate a shared primary", async () => {
    await allowed("tenant", `POST ${PAGES}`, pageOf("shared"));
    await allowed(OTHER, `PATCH ${PAGES}/shared`, annotated({ "gen-operator.dev/token": "b" }));
    await allowed(OPERATOR, `PATCH ${PAGES}/shared`, annotated({ "gen-operator.dev/other-token": "b" }));
    await denied("tenant", `PATCH ${PAGES}/shared`, annotated({ "gen-operator.dev/token": "c" }));
  });
});
