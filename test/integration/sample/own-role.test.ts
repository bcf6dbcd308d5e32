// A sample under the role that was generated for it, on the embedded server, which knows roles: nothing is forbidden, and nothing is missing.
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLogger, createOperator } from "@gen-operator/runtime";
import { WebPage, webPageController } from "#webpage/generated/index.js";
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest } from "../../support/api/api-request.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const SAMPLE = join(repositoryRoot, "fixtures/samples/webpage");
const RBAC = join(SAMPLE, "deploy/generated/rbac.yaml");
const ADMISSION = join(SAMPLE, "deploy/generated/admission.yaml");
const NAMESPACE = { apiVersion: "v1", kind: "Namespace", metadata: { name: "webpage-system" } };
const PAGE = {
  metadata: { name: "page", namespace: "default" },
  spec: { html: "hello", exposed: true, host: "a.example.com" },
};

suite("sample with its generated role", (test) => {
  test("converges without a 403 response", async () => {
    await using server = await startApiServer({
      crds: [join(SAMPLE, "crds/webpages.example.com.yaml")],
      objects: [NAMESPACE, RBAC, ADMISSION],
      as: "system:serviceaccount:webpage-system:webpage",
      simulate: true,
    });
    await using folder = await createTemporaryFolder();
    const kubeconfig = join(folder.path, "kubeconfig");
    await server.writeKubeconfig(kubeconfig);
    const operator = createOperator({ controllers: [webPageController], kubeconfig, logger: createLogger("silent") });
    await using running = await operator.start();
    assert.ok(running.client);
    const pages = "/apis/example.com/v1/namespaces/default/webpages";
    await apiRequest(server.admin, `POST ${pages}`, { body: WebPage.create(PAGE) });
    await waitFor("the page is ready", async () => {
      const { body } = await apiRequest(server.admin, `GET ${pages}/page`);
      return body.status?.["ready"] === true;
    });
    const forbidden = server.requests.filter(({ status }) => status === 403);
    assert.equal(
      forbidden.map(({ verb, path }) => `${verb} ${path}`),
      [],
    );
  });

  test("gets 403 only for the resource that its role lacks, and works on the others", async () => {
    const lacking = readFileSync(RBAC, "utf8").replaceAll("configmaps, ", "");
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "rbac.yaml"), lacking);
    await using server = await startApiServer({
      crds: [join(SAMPLE, "crds/webpages.example.com.yaml")],
      objects: [NAMESPACE, join(folder.path, "rbac.yaml"), ADMISSION],
      as: "system:serviceaccount:webpage-system:webpage",
    });
    const kubeconfig = join(folder.path, "kubeconfig");
    await server.writeKubeconfig(kubeconfig);
    const operator = createOperator({ controllers: [webPageController], kubeconfig, logger: createLogger("silent") });
    const started = operator.start().catch(() => undefined);
    await waitFor("the operator is forbidden to read ConfigMaps, and reads Services", () => {
      const gets = (path: string, status: number) =>
        server.requests.some((each) => each.path === path && each.status === status);
      return gets("/api/v1/configmaps", 403) && gets("/api/v1/services", 200);
    });
    await operator.stop();
    await started;
    const forbidden = server.requests.filter(({ status }) => status === 403).map(({ path }) => path);
    assert.equal([...new Set(forbidden)], ["/api/v1/configmaps"]);
    assert.is((await apiRequest(server, "GET /api/v1/configmaps")).status, 403);
    assert.is((await apiRequest(server, "GET /api/v1/services")).status, 200);
    assert.is((await apiRequest(server.admin, "GET /api/v1/configmaps")).status, 200);
    const stranger = server.as("jane", { groups: ["system:masters"] });
    assert.is((await apiRequest(stranger, "GET /api/v1/configmaps")).status, 200);
  });
});
