import { startApiServer, type ApiServer, type ApiServerOptions } from "#apiserver/server.js";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";

const PODS = "/api/v1/namespaces/default/pods";
const POD = { metadata: { name: "a" }, spec: { containers: [{ name: "a", image: "a" }] } };

const createPod = async (server: ApiServer, query = ""): Promise<string> => {
  const { status, body } = await apiRequest(server, `POST ${PODS}${query}`, { body: POD });
  const message = (body as unknown as { message?: string }).message;
  return `${status} ${message ?? String(body.spec?.["serviceAccountName"])}`;
};

suite("ServiceAccount admission", (test) => {
  test("is enabled by simulate namespace-contents or by serviceAccountAdmission", async () => {
    const cases: [ApiServerOptions, string][] = [
      [{}, "201 undefined"],
      [{ simulate: ["pods"] }, "201 undefined"],
      [{ simulate: { except: ["namespace-contents"] } }, "201 undefined"],
      [{ simulate: { only: ["namespace-contents"] }, serviceAccountAdmission: false }, "201 undefined"],
      [{ simulate: ["namespace-contents"] }, "201 default"],
      [
        { serviceAccountAdmission: true },
        '403 pods "a" is forbidden: error looking up service account default/default: serviceaccount "default" not found',
      ],
    ];
    for (const [options, expected] of cases) {
      await using server = await startApiServer({ tls: false, ...options });
      assert.is(await createPod(server, "?dryRun=All"), expected);
    }
  });

  test("waits for the default ServiceAccount when a Pod is created", async () => {
    await using server = await startApiServer({ tls: false, serviceAccountAdmission: true });
    const created = createPod(server);
    const body = { metadata: { name: "default" } };
    await apiRequestOrThrow(server, "POST /api/v1/namespaces/default/serviceaccounts", { body });
    assert.is(await created, "201 default");
  });

  test("adds fields that no field manager owns", async () => {
    await using server = await startApiServer({ tls: false, simulate: ["namespace-contents"] });
    await createPod(server);
    const { metadata } = await apiRequestOrThrow(server, `GET ${PODS}/a`);
    const owned = JSON.stringify(metadata.managedFields);
    for (const field of ["serviceAccount", "volumes", "volumeMounts"]) assert.not.ok(owned.includes(field), field);
  });
});
