// Who may do what; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver.
import { apiRequest, apiRequestOrThrow, type ApiAnswer, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { minimalObjects, type MinimalObject } from "../../support/kinds/minimal-objects.js";
import { assert, shared, suite } from "../../support/suite.js";
import { waitFor } from "#apiserver/wait-for.js";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS = "/apis/authorization.k8s.io/v1";
const AUTHENTICATION = "/apis/authentication.k8s.io/v1";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const rbac = (kind: string, name: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name });

interface Status {
  message: string;
  reason?: string;
  status?: { allowed?: boolean; reason?: string; userInfo?: object };
}

const server = shared(async () => {
  const started = await startTestApiServer({ tls: true });
  const view = async () => (await apiRequest(started, `GET ${RBAC}/clusterroles/cluster-admin`)).status === 200;
  await waitFor("the first roles", view);
  return started;
});

/** Sends a request as another user, by impersonation. */
const as = async (user: string, request: string, body?: object): Promise<ApiAnswer<Status>> =>
  apiRequest<Status>(await server(), request, { body, headers: { "Impersonate-User": user } });

let users = 0;

/** Makes a user with rights in the namespace `default`, and waits until the server knows. */
async function userWith(...rules: object[]): Promise<string> {
  const to = await server();
  const user = `user-${++users}`;
  const role = { metadata: { name: user }, rules };
  await apiRequestOrThrow(to, `POST ${RBAC}/namespaces/default/roles`, { body: role });
  const binding = { metadata: { name: user }, roleRef: rbac("Role", user), subjects: [rbac("User", user)] };
  await apiRequestOrThrow(to, `POST ${RBAC}/namespaces/default/rolebindings`, { body: binding });
  const review = { spec: { namespace: "default" } };
  await waitFor("the rights of the user", async () => {
    const { status } = (await as(user, `POST ${REVIEWS}/selfsubjectrulesreviews`, review)).body as unknown as {
      status: { resourceRules: unknown[] };
    };
    return status.resourceRules.length > 2;
  });
  return user;
}

const readers = { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"] };

suite("RBAC", (test) => {
  test("forbids requests without a matching rule with 403, naming user, verb, resource and namespace", async () => {
    const user = await userWith(readers);
    assert.is((await as(user, `GET ${CONFIG_MAPS}`)).status, 200);
    const cases: [string, string][] = [
      [
        `DELETE ${CONFIG_MAPS}/x`,
        `configmaps "x" is forbidden: User "${user}" cannot delete resource "configmaps" in API group "" in the namespace "default"`,
      ],
      [
        `GET ${CONFIG_MAPS}?watch=true`,
        `configmaps is forbidden: User "${user}" cannot watch resource "configmaps" in API group "" in the namespace "default"`,
      ],
      [
        "GET /api/v1/configmaps",
        `configmaps is forbidden: User "${user}" cannot list resource "configmaps" in API group "" at the cluster scope`,
      ],
      [
        "GET /apis/apps/v1/namespaces/default/deployments/d/scale",
        `deployments.apps "d" is forbidden: User "${user}" cannot get resource "deployments/scale" in API group "apps" in the namespace "default"`,
      ],
      [
        "GET /api/v1/namespaces/default",
        `namespaces "default" is forbidden: User "${user}" cannot get resource "namespaces" in API group "" in the namespace "default"`,
      ],
      ["GET /metrics", `forbidden: User "${user}" cannot get path "/metrics"`],
    ];
    for (const [request, message] of cases) {
      const answer = await as(user, request);
      assert.equal([answer.status, answer.body.reason, answer.body.message], [403, "Forbidden", message]);
    }
  });

  test("limits rules with resourceNames to these objects, for get and for lists of one name", async () => {
    const user = await userWith({
      apiGroups: [""],
      resources: ["secrets"],
      resourceNames: ["mine"],
      verbs: ["get", "list"],
    });
    const secrets = "/api/v1/namespaces/default/secrets";
    assert.is((await as(user, `GET ${secrets}/mine`)).status, 404);
    assert.is((await as(user, `GET ${secrets}?fieldSelector=metadata.name%3Dmine`)).status, 200);
    assert.is((await as(user, `GET ${secrets}`)).status, 403);
    assert.is((await as(user, `GET ${secrets}/yours`)).status, 403);
  });

  test("reports the decision and its binding in a SubjectAccessReview", async () => {
    const user = await userWith(readers);
    const ask = async (verb: string) => {
      const resourceAttributes = { verb, resource: "configmaps", namespace: "default" };
      const body = { spec: { user, resourceAttributes } };
      return (await apiRequest<Status>(await server(), `POST ${REVIEWS}/subjectaccessreviews`, { body })).body.status;
    };
    const reason = `RBAC: allowed by RoleBinding "${user}/default" of Role "${user}" to User "${user}"`;
    assert.equal(await ask("get"), { allowed: true, reason });
    assert.equal(await ask("update"), { allowed: false });
  });

  test("grants the rules of bindings to groups and ServiceAccounts", async () => {
    const to = await server();
    const role = { metadata: { name: "shared" }, rules: [readers] };
    await apiRequestOrThrow(to, `POST ${RBAC}/namespaces/default/roles`, { body: role });
    const subjects = [rbac("Group", "team"), { kind: "ServiceAccount", name: "robot", namespace: "default" }];
    const body = { metadata: { name: "shared" }, roleRef: rbac("Role", "shared"), subjects };
    await apiRequestOrThrow(to, `POST ${RBAC}/namespaces/default/rolebindings`, { body });
    const robot = "system:serviceaccount:default:robot";
    await waitFor(
      "the rights of the service account",
      async () => (await as(robot, `GET ${CONFIG_MAPS}`)).status === 200,
    );
    const member = { headers: { "Impersonate-User": "anybody", "Impersonate-Group": "team" } };
    assert.is((await apiRequest(to, `GET ${CONFIG_MAPS}`, member)).status, 200);
    assert.is((await as("system:serviceaccount:other:robot", `GET ${CONFIG_MAPS}`)).status, 403);
  });

  test("forbids privilege escalation without the escalate or bind verb", async () => {
    const roles = { apiGroups: [rbac("", "").apiGroup], resources: ["roles", "rolebindings"] };
    const writer = await userWith(readers, { ...roles, verbs: ["create", "update"] });
    const path = `POST ${RBAC}/namespaces/default/roles`;
    const role = (name: string, verbs: string[]) => ({ metadata: { name }, rules: [{ ...readers, verbs }] });
    assert.is((await as(writer, path, role(`${writer}-same`, ["get"]))).status, 201);
    const refused = await as(writer, path, role(`${writer}-more`, ["get", "delete", "watch"]));
    assert.equal(
      [refused.status, refused.body.message],
      [
        403,
        `roles.rbac.authorization.k8s.io "${writer}-more" is forbidden: user "${writer}" (groups=["system:authenticated"]) is ` +
          "attempting to grant RBAC permissions not currently held:\n" +
          '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete" "watch"]}',
      ],
    );
    const binding = {
      metadata: { name: `${writer}-admin` },
      roleRef: rbac("ClusterRole", "cluster-admin"),
      subjects: [],
    };
    assert.is((await as(writer, `POST ${RBAC}/namespaces/default/rolebindings`, binding)).status, 403);
    const master = await userWith(readers, { ...roles, verbs: ["create", "escalate"] });
    assert.is((await as(master, path, role(`${master}-more`, ["*"]))).status, 201);
  });

  test("forbids impersonation without permission, and rejects groups without a user with 400", async () => {
    const to = await server();
    const nobody = await userWith(readers);
    const token = await tokenOf(to, nobody);
    const other = { ...to, token };
    const refused = await apiRequest<Status>(other, `GET ${CONFIG_MAPS}`, { headers: { "Impersonate-User": "admin" } });
    assert.equal(
      [refused.status, refused.body.message],
      [
        403,
        `configmaps is forbidden: User "system:serviceaccount:default:${nobody}" cannot impersonate-on:user-info:list resource "configmaps" in API group "" in the namespace "default"`,
      ],
    );
    const unnamed = await apiRequest<Status>(to, `GET ${CONFIG_MAPS}`, { headers: { "Impersonate-Group": "team" } });
    assert.equal([unnamed.status, unnamed.body.reason], [400, "BadRequest"]);
  });

  test("authenticates a ServiceAccount token, and rejects a forged one with 401", async () => {
    const to = await server();
    const token = await tokenOf(to, "worker");
    const own = { ...to, token };
    const who = await apiRequest<Status>(own, `POST ${AUTHENTICATION}/selfsubjectreviews`, { body: {} });
    const { username, groups } = who.body.status?.userInfo as { username: string; groups: string[] };
    assert.is(username, "system:serviceaccount:default:worker");
    assert.equal(groups, ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    const ask = async (spec: object) =>
      (await apiRequestOrThrow(to, `POST ${AUTHENTICATION}/tokenreviews`, { body: { spec } })).status ?? {};
    const { authenticated, user } = await ask({ token });
    assert.equal([authenticated, (user as { username: string }).username], [true, username]);
    assert.equal(await ask({ token: "nobody" }), { user: {}, error: "invalid bearer token" });
    const forged = { ...to, token: `${token.slice(0, -4)}AAAA` };
    assert.is((await apiRequest(forged, "GET /version")).status, 401);
  });
});

suite("CertificateSigningRequest", (test) => {
  test("is signed by the CA that is published in extension-apiserver-authentication", async () => {
    const to = await server();
    const name = "extension-apiserver-authentication";
    const path = `/api/v1/namespaces/kube-system/configmaps/${name}`;
    const isPublished = async () => (await apiRequest(to, `GET ${path}`)).status === 200;
    await waitFor("the authority is published", isPublished);
    const { data } = (await apiRequest<{ data: object }>(to, `GET ${path}`)).body;
    assert.equal(data, { "client-ca-file": to.ca });
    const user = `extension-${++users}`;
    const role = rbac("Role", `${name}-reader`);
    const binding = { metadata: { name: user }, roleRef: role, subjects: [rbac("User", user)] };
    await apiRequestOrThrow(to, `POST ${RBAC}/namespaces/kube-system/rolebindings`, { body: binding });
    await waitFor("the rights of the user", async () => (await as(user, `GET ${path}`)).status === 200);
  });

  test("records its requester, ignoring the user fields of the request", async () => {
    const to = await server();
    const user = `requester-${++users}`;
    const headers = {
      "Impersonate-User": user,
      "Impersonate-Group": "system:masters",
      "Impersonate-Uid": "u-1",
      "Impersonate-Extra-Team": "a",
    };
    const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const { content } = minimalObjects.find(({ kind }) => kind === "CertificateSigningRequest") as MinimalObject;
    const spec = {
      ...(content["spec"] as object),
      expirationSeconds: 7200,
      username: "somebody",
      groups: ["x"],
      uid: "y",
    };
    const body = {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: user },
      spec,
    };
    const created = await apiRequest(to, `POST ${path}`, { body, headers });
    assert.is(created.status, 201, created.text);
    const { username, groups, uid, extra } = created.body.spec as Record<string, unknown>;
    assert.equal([username, uid, extra], [user, "u-1", { team: ["a"] }]);
    assert.equal([...(groups as string[])].sort(), ["system:authenticated", "system:masters"]);
    const changed = { ...created.body, spec: { ...created.body.spec, username: "somebody" } };
    assert.equal((await apiRequestOrThrow(to, `PUT ${path}/${user}`, { body: changed })).spec?.["username"], user);
    const table = { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" };
    const { columnDefinitions, rows } = (await apiRequestOrThrow(to, `GET ${path}/${user}`, {
      headers: table,
    })) as unknown as {
      columnDefinitions: { name: string }[];
      rows: { cells: unknown[] }[];
    };
    assert.equal(
      columnDefinitions.map(({ name }) => name),
      ["Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"],
    );
    const [name, , ...cells] = rows[0]?.cells ?? [];
    assert.equal([name, ...cells], [user, "example.com/a", user, "120m", "Pending"]);
    await apiRequestOrThrow(to, `DELETE ${path}/${user}`);
  });

  test("requires the approve or sign verb for its signer, or a wildcard for the domain", async () => {
    const to = await server();
    const group = "certificates.k8s.io";
    const path = `/apis/${group}/v1/certificatesigningrequests`;
    const { content } = minimalObjects.find(({ kind }) => kind === "CertificateSigningRequest") as MinimalObject;
    const requests = ["certificatesigningrequests/approval", "certificatesigningrequests/status"];
    const parts = { apiGroups: [group], resources: requests, verbs: ["update"] };
    const right = (verb: string, name: string) => ({
      ...{ apiGroups: [group], resources: ["signers"], resourceNames: [name], verbs: [verb] },
    });
    const { signerName } = content["spec"] as { signerName: string };
    const verdict = { type: "Approved", status: "True", reason: "Test", message: "" };
    const failure = { type: "Failed", status: "True", reason: "Test", message: "" };
    const cases: [rights: object[], part: string, condition: object, expected: string | undefined][] = [
      [[right("sign", signerName)], "approval", verdict, "approve"],
      [[right("approve", signerName)], "approval", verdict, undefined],
      [[right("approve", "example.com/*")], "approval", verdict, undefined],
      [[right("approve", signerName)], "status", failure, "sign"],
      [[right("sign", signerName)], "status", failure, undefined],
    ];
    for (const [rights, part, condition, verb] of cases) {
      const user = `signer-${++users}`;
      const rules = [parts, ...rights];
      await apiRequestOrThrow(to, `POST ${RBAC}/clusterroles`, { body: { metadata: { name: user }, rules } });
      const binding = { metadata: { name: user }, roleRef: rbac("ClusterRole", user), subjects: [rbac("User", user)] };
      await apiRequestOrThrow(to, `POST ${RBAC}/clusterrolebindings`, { body: binding });
      const body = { metadata: { name: user }, spec: content["spec"] };
      const created = await apiRequestOrThrow(to, `POST ${path}`, { body });
      const changed = { ...created, status: { conditions: [condition] } };
      const answer = await waitFor("the rights of the user", async () => {
        const { status, body } = await as(user, `PUT ${path}/${user}/${part}`, changed);
        return body.message?.includes(" cannot update ") ? undefined : { status, message: body.message };
      });
      const detail = `user not permitted to ${verb} requests with signerName "${signerName}"`;
      const message = `certificatesigningrequests.${group} "${user}" is forbidden: ${detail}`;
      const expected = verb === undefined ? { status: 200, message: undefined } : { status: 403, message };
      assert.equal(answer, expected);
      await apiRequestOrThrow(to, `DELETE ${path}/${user}`);
    }
  });
});

async function tokenOf(to: Connection, name: string): Promise<string> {
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await apiRequestOrThrow(to, `POST ${accounts}`, { body: { metadata: { name } } });
  const request = await apiRequestOrThrow(to, `POST ${accounts}/${name}/token`, { body: {} });
  return (request.status as { token: string }).token;
}
