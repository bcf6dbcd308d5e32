// The rights that `doctor` asks an API server for: those of the administrator, of the operator, and of somebody with fewer.
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { readFile } from "node:fs/promises";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { startTestApiServer, type TestApiServer } from "../../support/api/api-server.js";
import { writeKubeconfig } from "../../support/api/kubeconfig.js";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const sample = join(repositoryRoot, "fixtures/samples/webpage");
const OPERATOR = "system:serviceaccount:webpage-system:webpage";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const LONG = { timeoutMs: 120_000 };

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

async function readManifests(file: string): Promise<Manifest[]> {
  const documents = parseAllDocuments(await readFile(join(sample, file), "utf8"));
  return documents.map((document) => document.toJS() as Manifest);
}

async function create(server: TestApiServer, object: Manifest): Promise<void> {
  const { kind, metadata } = object;
  const plural = `${kind.toLowerCase()}s`;
  const root = kind === "ServiceAccount" || kind === "Namespace" ? "/api/v1" : RBAC;
  const place = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  await apiRequestOrThrow(server, `POST ${root}${place}/${plural}`, { body: object });
}

const doctor = (server: TestApiServer, ...args: string[]) =>
  runCommand(sample, "doctor", "--kubeconfig", server.kubeconfig, ...args);

suite("permissions in doctor", (test) => {
  const cluster = shared(async () => {
    const server = await startTestApiServer({
      crds: ["fixtures/samples/webpage/crds/webpages.example.com.yaml"],
      tls: true,
    });
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "webpage-system" } };
    await create(server, namespace);
    return server;
  });

  test.thorough(
    "are complete for the administrator, and all missing for the operator before its roles are applied",
    async () => {
      const server = await cluster();
      const administrator = await doctor(server);
      assert.is(administrator.status, 0, administrator.stdout);
      assert.match(administrator.stdout, /^ok {7}rights: \S*admin has all \d+ permissions/m);
      const operator = await doctor(server, "--as", OPERATOR);
      assert.is(operator.status, 1, operator.stdout);
      const [, missing, all] = /^failed {3}rights: \S+ lacks (\d+) of (\d+) permissions/m.exec(operator.stdout) ?? [];
      assert.is(missing, all);
      assert.match(operator.stdout, "→ run kubectl apply -k deploy/generated");
      assert.match(
        operator.stdout,
        /^skipped {2}CRD webpages\.example\.com: .*forbidden.*\n.*→ ask for permission to get customresourcedefinition webpages\.example\.com$/m,
      );
    },
    LONG,
  );

  test(
    "are complete for the operator with its roles, and missing ones are listed with kind and verbs",
    async () => {
      const server = await cluster();
      const manifests = await readManifests("deploy/generated/rbac.yaml");
      for (const each of manifests) await create(server, each);
      const complete = await doctor(server, "--as", OPERATOR);
      assert.match(complete.stdout, new RegExp(`^ok {7}rights: ${OPERATOR} has all \\d+ permissions`, "m"));
      // The operator may get its own CRD, and not list all of them.
      assert.match(
        complete.stdout,
        /^ok {7}kinds: the cluster serves all 5 kinds of the project, with the same schemas/m,
      );
      assert.is(complete.status, 0, complete.stdout);

      const role = manifests.find(({ kind }) => kind === "ClusterRole");
      const rules = role?.rules?.map((rule) =>
        rule.resources.includes("deployments")
          ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== "patch" && verb !== "create") }
          : rule,
      );
      const contentType = "application/merge-patch+json";
      await apiRequestOrThrow(server, `PATCH ${RBAC}/clusterroles/webpage`, { body: { rules }, contentType });
      const fewer = await doctor(server, "--as", OPERATOR);
      assert.is(fewer.status, 1);
      assert.match(
        fewer.stdout,
        /lacks 2 of \d+ permissions .*\n *deployments\.apps in all namespaces: create, patch \(dependent deployment of webpage\)\n/,
      );
    },
    LONG,
  );

  test(
    "limit the CRD comparison to the CRDs that the user may get, and skip others",
    async () => {
      const project = join(repositoryRoot, "fixtures/samples/tomcat");
      await using server = await startTestApiServer({
        crds: ["tomcats", "webapps"].map((plural) => `fixtures/samples/tomcat/crds/${plural}.example.com.yaml`),
        tls: true,
      });
      const rules = [
        {
          apiGroups: ["apiextensions.k8s.io"],
          resources: ["customresourcedefinitions"],
          resourceNames: ["tomcats.example.com"],
          verbs: ["get"],
        },
      ];
      const name = "one-crd";
      const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name }, rules };
      await create(server, role);
      const binding = {
        ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", metadata: { name } },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "eve" }],
      };
      await create(server, binding);
      const properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
      const body = [{ op: "add", path: `${properties}/extra`, value: { type: "string" } }];
      const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tomcats.example.com";
      await apiRequestOrThrow(server, `PATCH ${path}`, { body, contentType: "application/json-patch+json" });
      const { stdout } = await runCommand(project, "doctor", "--kubeconfig", server.kubeconfig, "--as", "eve");
      assert.match(
        stdout,
        /^(?:warning|failed) +CRD tomcats\.example\.com: the cluster and the project have different definitions/m,
      );
      assert.match(stdout, /^skipped {2}CRD webapps\.example\.com: .*forbidden/m);
    },
    LONG,
  );

  test.thorough(
    "fail the check with advice if the user may not impersonate --as",
    async () => {
      const server = await cluster();
      await using folder = await createTemporaryFolder();
      const path = "POST /api/v1/namespaces/webpage-system/serviceaccounts/webpage/token";
      const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
      const { status } = await apiRequestOrThrow<{ status: { token: string } }>(server, path, { body });
      const kubeconfig = join(folder.path, "kubeconfig");
      const { url, ca } = server;
      await writeKubeconfig(kubeconfig, { url, ...(ca === undefined ? {} : { ca }), token: status.token });
      const outcome = await runCommand(sample, "doctor", "--kubeconfig", kubeconfig, "--as", "eve");
      assert.is(outcome.status, 1);
      assert.match(
        outcome.stdout,
        /^failed {3}cluster: .*cannot impersonate.*\n.*→ remove --as, or ask for permission to impersonate eve$/m,
      );
    },
    LONG,
  );
});
