// What `kubectl apply -k deploy` of a new project does on a real API server.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder, type TemporaryFolder } from "../../support/temporary-folder.js";
import { createDeployFolder, TEAM, parseManifests, runBinary, type Manifest } from "./deploy-folder.js";
import { installMonitoringKinds } from "./monitoring-kinds.js";

const hasGo = spawnSync("go", ["version"]).status === 0;
const withController = { timeoutMs: 90_000 };

suite("kustomize base", (test) => {
  const server = shared(() =>
    startControlPlane({ controllerNames: ["deployment-controller", "replicaset-controller"] }),
  );
  const project = shared(createDeployFolder);

  test("renders exactly these objects", async () => {
    const { path } = await project();
    assert.equal(
      [...kustomize(path).keys()],
      [
        "ClusterRole pages",
        "ClusterRole pages-links",
        "ClusterRoleBinding pages",
        "ClusterRoleBinding pages-links",
        "ConfigMap pages-system/pages-settings",
        "Deployment pages-system/pages",
        "Namespace pages-system",
        "NetworkPolicy pages-system/pages",
        "PodDisruptionBudget pages-system/pages",
        `Role ${TEAM}/pages`,
        "Role pages-system/pages",
        `RoleBinding ${TEAM}/pages`,
        "RoleBinding pages-system/pages",
        "Service pages-system/pages-metrics",
        "ServiceAccount pages-system/pages",
        "ValidatingAdmissionPolicy pages-install",
        "ValidatingAdmissionPolicy pages-links",
        "ValidatingAdmissionPolicyBinding pages-install",
        "ValidatingAdmissionPolicyBinding pages-links",
      ],
    );
    assert.equal([...kustomize(path, "deploy/crds").keys()], ["CustomResourceDefinition webpages.example.com"]);
  });

  test("sets the namespace of an overlay on all namespaced objects", async () => {
    await using own = await createDeployFolder();
    await dropTeam(own);
    const text = await overlay(own, { namespace: "other" });
    assert.not.match(text, "pages-system");
    assert.is(namespacesIn(parseManifests(text)).join(), "other");
  });

  test("keeps the namespaces of other objects with the patches from its comment", async () => {
    await using own = await createDeployFolder();
    const comment = await readFile(join(own.path, "deploy/kustomization.yaml"), "utf8");
    const [intro = ""] = comment.split("apiVersion:");
    const patches = [...intro.slice(intro.indexOf("#   patches:")).matchAll(/^# {3}(.*)$/gm)]
      .map(([, line]) => line)
      .join("\n");
    const objects = parseManifests(await overlay(own, parse(patches) as object));
    assert.equal(namespacesIn(objects), ["other", TEAM]);
    for (const [title, { subjects = [] }] of objects)
      for (const { namespace } of subjects as { namespace: string }[]) assert.is(namespace, "other", title);
    assert.ok(objects.has("Namespace other"));
  });

  test(
    "passes strict server-side validation without warnings",
    async () => {
      const plane = await server();
      await using own = await createDeployFolder();
      if (hasGo) await installMonitoringKinds(plane, own.path);
      const components = hasGo ? ["../deploy/monitoring", "../deploy/metrics-authentication"] : [];
      const text = await overlay(own, { components });
      await createNamespaces(plane.kubeconfig, own.path);
      const flags = ["--server-side", "--dry-run=server", "--validate=strict"];
      const applied = kubectl(plane.kubeconfig, own.path, ["apply", ...flags, "-f", "-"], text);
      assert.is(applied.stderr, "");
      assert.is(
        applied.stdout.split("\n").filter((line) => line.endsWith("serverside-applied (server dry run)")).length,
        parseManifests(text).size,
      );
      assert.is(parseManifests(text).size, hasGo ? 28 : 19);
    },
    withController,
  );

  test(
    "creates a Pod that the restricted Pod Security level admits, and a root Pod is rejected with 403",
    async () => {
      const plane = await server();
      const { path } = await project();
      await createNamespaces(plane.kubeconfig, path);
      const { status, stderr } = kubectl(plane.kubeconfig, path, ["apply", "--server-side", "-k", "deploy"]);
      assert.equal([stderr, status], ["", 0]);
      const pods = async () => {
        const path = "GET /api/v1/namespaces/pages-system/pods";
        return (await apiRequestOrThrow<{ items: { spec: PodSpec }[] }>(plane, path)).items;
      };
      await waitFor("the pod exists", async () => (await pods()).length > 0, { timeoutMs: 30_000 });
      const [{ spec } = { spec: undefined }] = await pods();
      assert.equal(
        [spec?.serviceAccountName, spec?.containers.map(({ name, image }) => `${name} ${image}`)],
        ["pages", ["operator pages:0.1.0"]],
      );
      const body = { metadata: { name: "root" }, spec: { containers: [{ name: "a", image: "a" }] } };
      const refused = await apiRequest(plane, "POST /api/v1/namespaces/pages-system/pods", { body });
      assert.is(refused.status, 403);
      assert.match(JSON.stringify(refused.body), /violates PodSecurity \\"restricted:latest\\"/);
    },
    withController,
  );

  test("keeps the ConfigMap name that the Deployment mounts when settings change", async () => {
    await using own = await createDeployFolder();
    const before = kustomize(own.path).get("Deployment pages-system/pages");
    await writeFile(join(own.path, "deploy/settings.yaml"), "logLevel: debug\n");
    const objects = kustomize(own.path);
    assert.equal(objects.get("Deployment pages-system/pages"), before);
    assert.equal(objects.get("ConfigMap pages-system/pages-settings")?.["data"], {
      "settings.yaml": "logLevel: debug\n",
    });
  });

  const title = "passes promtool check rules";
  if (!hasGo) return test.skip(title, "there is no Go");
  test(
    title,
    async () => {
      await using folder = await createTemporaryFolder();
      const program = join(folder.path, "promrules");
      const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off" };
      const cwd = join(repositoryRoot, "test/control-plane/clients/promrules");
      execFileSync("go", ["build", "-o", program, "."], { cwd, env });
      const rule = parse(
        await readFile(join((await project()).path, "deploy/monitoring/prometheus-rule.yaml"), "utf8"),
      ) as Manifest;
      const check = (input: string) => spawnSync(program, { input, encoding: "utf8" });
      const { stdout, stderr, status } = check(JSON.stringify(rule["spec"]));
      assert.equal([stdout, stderr, status], ["", "", 0]);
      const wrong = check('{ "groups": [{ "name": "a", "rules": [{ "alert": "A", "expr": "rate(b)" }] }] }');
      assert.is(wrong.status, 3, "it finds what is wrong");
    },
    { timeoutMs: 280_000 },
  );
});

interface PodSpec {
  readonly serviceAccountName: string;
  readonly containers: readonly { readonly name: string; readonly image: string }[];
}

function kustomize(path: string, folder = "deploy"): ReadonlyMap<string, Manifest> {
  return parseManifests(kustomizeText(path, folder));
}

function kustomizeText(path: string, folder: string): string {
  const { stdout, stderr } = runBinary("kubectl", path, ["kustomize", folder]);
  assert.is(stderr, "");
  return stdout;
}

/** Renders a kustomization of the user's that has `deploy` as its base. */
async function overlay({ path }: TemporaryFolder, kustomization: object): Promise<string> {
  await mkdir(join(path, "overlay"));
  const text = JSON.stringify({ resources: ["../deploy"], ...kustomization });
  await writeFile(join(path, "overlay/kustomization.yaml"), text);
  return kustomizeText(path, "overlay");
}

function namespacesIn(objects: ReadonlyMap<string, Manifest>): readonly string[] {
  return [...new Set([...objects.values()].flatMap(({ metadata }) => metadata.namespace ?? []))].sort();
}

/** Leaves out what the operator has in the namespace of a team. */
async function dropTeam({ path }: TemporaryFolder): Promise<void> {
  const file = join(path, "deploy/generated/rbac.yaml");
  const documents = (await readFile(file, "utf8")).split("---\n");
  await writeFile(file, documents.filter((text) => !text.includes(TEAM)).join("---\n"));
}

function kubectl(kubeconfig: string, path: string, args: readonly string[], input?: string) {
  return runBinary("kubectl", path, [`--kubeconfig=${kubeconfig}`, ...args], input);
}

/** A dry run finds no namespace that the same run would have created. */
async function createNamespaces(kubeconfig: string, path: string): Promise<void> {
  const team = JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: TEAM } });
  const own = await readFile(join(path, "deploy/manifests/namespace.yaml"), "utf8");
  for (const text of [team, own]) {
    const { stderr } = kubectl(kubeconfig, path, ["apply", "--server-side", "-f", "-"], text);
    assert.is(stderr, "");
  }
}
