// How an operator goes from a real cluster, in the right order and in the wrong one, and what a second install does to the first.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { generate } from "#generator/generate.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { findBinary } from "../../support/machine/binaries.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { createDeployFolder, runBinary, TEAM } from "./deploy-folder.js";
import { deploySample, problemWithPods } from "./deployed-sample.js";

const SAMPLE = join(repositoryRoot, "fixtures/samples/webpage");
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/webpages.example.com";
const PAGE = "/apis/example.com/v1/namespaces/default/webpages/page";
// What an earlier version of the operator put there, and every version takes off.
const FINALIZER = "webpages.example.com/finalizer";

suite("uninstall", (test) => {
  const problem = problemWithPods();
  if (problem !== undefined) return test.skip("all tests", problem);
  const cluster = shared(async () => {
    const plane = await startControlPlane({ controllers: true });
    const kubectl = (...args: string[]) => runBinary("kubectl", SAMPLE, ["--kubeconfig", plane.kubeconfig, ...args]);
    const helm = (...args: string[]) => runBinary("helm", SAMPLE, ["--kubeconfig", plane.kubeconfig, ...args]);
    return {
      ...{ plane, kubectl, helm },
      statusOf: async (path: string) => (await apiRequest(plane, `GET ${path}`)).status,
      createPage: async () => {
        const body = {
          ...{ apiVersion: "example.com/v1", kind: "WebPage", spec: { html: "<h1>hello</h1>" } },
          metadata: { name: "page", namespace: "default", finalizers: [FINALIZER] },
        };
        await apiRequestOrThrow(plane, `POST ${PAGE.slice(0, PAGE.lastIndexOf("/"))}`, { body });
      },
      async [Symbol.asyncDispose]() {
        await plane.close();
      },
    };
  });
  const done = ({ status, stderr }: { readonly status: number | null; readonly stderr: string }) =>
    assert.equal([stderr, status], ["", 0]);

  test(
    "leaves nothing if the CRDs are deleted first, while the operator still cleans up",
    async () => {
      const { plane, kubectl, statusOf, createPage } = await cluster();
      const sample = await deploySample(plane, "webpage");
      await using replica = await sample.start();
      await replica.untilLogged("acquired Lease");
      await createPage();
      done(kubectl("delete", "-k", "deploy/crds", "--timeout=50s"));
      done(kubectl("delete", "-k", "deploy", "--timeout=50s"));
      assert.is(await statusOf(CRD), 404);
      const left = kubectl("get", "clusterroles,clusterrolebindings,validatingadmissionpolicies", "-o=name").stdout;
      assert.not.match(left, "webpage");
    },
    { timeoutMs: 200_000 },
  );

  test(
    "blocks on finalizers if the operator is deleted before its CRDs, until it is installed again",
    async () => {
      const { plane, kubectl, statusOf, createPage } = await cluster();
      {
        const sample = await deploySample(plane, "webpage");
        await using replica = await sample.start();
        await replica.untilLogged("acquired Lease");
        await createPage();
        done(kubectl("delete", "-k", "deploy", "--timeout=50s"));
      }
      done(kubectl("delete", "-k", "deploy/crds", "--wait=false"));
      await waitFor("the CRD is being deleted", async () => {
        const { body } = await apiRequest(plane, `GET ${CRD}`);
        return (body as { metadata: { deletionTimestamp?: string } }).metadata.deletionTimestamp !== undefined;
      });
      assert.is(await statusOf(PAGE), 200);
      await using replica = await (await deploySample(plane, "webpage", { hasCrds: true })).start();
      await waitFor("the CRD is gone", async () => (await statusOf(CRD)) === 404, { timeoutMs: 60_000 });
      await replica.terminate();
      done(kubectl("delete", "-k", "deploy", "--timeout=50s"));
    },
    { timeoutMs: 200_000 },
  );

  test(
    "of a second install keeps the first one, whose names the second may not use",
    async () => {
      const { plane, kubectl, statusOf } = await cluster();
      await using folder = await createTemporaryFolder();
      await deploySample(plane, "webpage");
      const install = async (name: string, kustomization: object) => {
        await mkdir(join(folder.path, name));
        const text = JSON.stringify({
          resources: [relative(folder.path, SAMPLE)].map((path) => `../${path}/deploy`),
          ...kustomization,
        });
        await writeFile(join(folder.path, name, "kustomization.yaml"), text);
        return join(folder.path, name);
      };
      const subjects = () =>
        kubectl(
          "get",
          "clusterrolebindings",
          "webpage",
          "webpage-links",
          "-o=jsonpath={.items[*].subjects[0].namespace}",
        ).stdout;
      const same = await install("same", { namespace: "other" });
      // A policy is in force a moment after it was made.
      await waitFor("the second install is refused", () => {
        const { stderr } = kubectl("apply", "--server-side", "--dry-run=server", "-k", same);
        return stderr.includes(
          "webpage belongs to the operator in namespace webpage-system. Delete that install first",
        );
      });
      const second = await install("second", { namespace: "other", nameSuffix: "-other" });
      done(kubectl("apply", "--server-side", "-k", second));
      assert.is(subjects(), "webpage-system webpage-system");
      done(kubectl("delete", "-k", second, "--timeout=50s"));
      assert.is(await statusOf(CRD), 200);
      assert.is(subjects(), "webpage-system webpage-system");
      done(kubectl("delete", "-k", "deploy/crds", "--timeout=50s"));
      done(kubectl("delete", "-k", "deploy", "--timeout=50s"));
    },
    { timeoutMs: 200_000 },
  );

  test(
    "does not happen to CRDs that an old version had in its kustomization, when applied with pruning",
    async () => {
      const { kubectl, statusOf, createPage } = await cluster();
      await using project = await createDeployFolder();
      await rm(join(project.path, "deploy/crds"), { recursive: true });
      kubectl("create", "namespace", TEAM);
      const prune = async (folder: string, ...more: string[]) => {
        const { diagnostics } = await generate({ project: project.path });
        assert.equal(diagnostics, []);
        const allowed = "--prune-allowlist=apiextensions.k8s.io/v1/CustomResourceDefinition";
        const path = join(project.path, folder);
        const { status, stdout, stderr } = kubectl("apply", "--prune", "--all", allowed, ...more, "-k", path);
        assert.is(status, 0, stderr);
        return stdout;
      };
      const apply = async (folder: string) => assert.not.match(await prune(folder), "pruned");
      await apply("deploy");
      done(kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"));
      await createPage();
      await apply("deploy");
      assert.is(await statusOf(PAGE), 200);
      assert.not.match(
        kubectl("get", "crd", "webpages.example.com", "-o=jsonpath={.metadata}").stdout,
        "deletionTimestamp",
      );
      // The user moves them, and the tool that prunes applies both folders.
      await mkdir(join(project.path, "deploy/crds"));
      await writeFile(join(project.path, "deploy/crds/kustomization.yaml"), "resources: [../generated/crds]\n");
      await mkdir(join(project.path, "whole"));
      await writeFile(join(project.path, "whole/kustomization.yaml"), "resources: [../deploy/crds, ../deploy]\n");
      assert.match(await prune("deploy", "--dry-run=server"), "webpages.example.com pruned", "one folder alone");
      await apply("whole");
      assert.is(await statusOf(PAGE), 200);
      kubectl("patch", "webpage", "page", "--type=merge", '-p={"metadata":{"finalizers":null}}');
      done(kubectl("delete", "crd", "webpages.example.com", "--timeout=50s"));
      kubectl("delete", "-k", join(project.path, "deploy"), "--timeout=50s");
    },
    { timeoutMs: 200_000 },
  );

  if (findBinary("helm") === undefined)
    return test.skip(
      "with Helm keeps the custom resources in either order, and a second release deletes nothing of the first",
      "there is no Helm",
    );
  test(
    "with Helm keeps the custom resources in either order, and a second release deletes nothing of the first",
    async () => {
      const { plane, kubectl, helm, statusOf, createPage } = await cluster();
      const install = (name: string, namespace: string, ...more: string[]) =>
        helm("install", name, "deploy", "--namespace", namespace, "--create-namespace", ...more);
      done(install("web", "webpage-system"));
      done(kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"));
      await createPage();
      assert.match(
        install("second", "other").stderr,
        /CustomResourceDefinition "webpages.example.com".*exists and cannot be imported/,
      );
      done(install("third", "third", "--set=crds.install=false"));
      done(helm("uninstall", "third", "--namespace=third"));
      const left = kubectl("get", "clusterroles,clusterrolebindings,validatingadmissionpolicies", "-o=name").stdout;
      assert.equal(
        left.split("\n").filter((name) => name.includes("/webpage")),
        [
          ...["clusterrole.rbac.authorization.k8s.io/webpage", "clusterrole.rbac.authorization.k8s.io/webpage-links"],
          ...[
            "clusterrolebinding.rbac.authorization.k8s.io/webpage",
            "clusterrolebinding.rbac.authorization.k8s.io/webpage-links",
          ],
          "validatingadmissionpolicy.admissionregistration.k8s.io/webpage-install",
          "validatingadmissionpolicy.admissionregistration.k8s.io/webpage-links",
        ],
      );
      assert.is(helm("uninstall", "web", "--namespace=webpage-system").status, 0);
      assert.is(await statusOf(PAGE), 200);
      /** Installs the release, and starts a pod of its Deployment. */
      const start = async () => {
        const release = async () => done(install("web", "webpage-system"));
        const replica = await (await deploySample(plane, "webpage", { hasCrds: true, install: release })).start();
        await replica.untilLogged("acquired Lease");
        return replica;
      };
      done(kubectl("delete", "-k", "deploy/crds", "--wait=false"));
      assert.is(await statusOf(PAGE), 200, "it hangs, as no operator runs");
      {
        await using replica = await start();
        await waitFor("the CRD is gone", async () => (await statusOf(CRD)) === 404, { timeoutMs: 60_000 });
        await replica.terminate();
        assert.is(helm("uninstall", "web", "--namespace=webpage-system").status, 0);
      }
      // The CRDs go first, while the operator runs.
      await using _replica = await start();
      await createPage();
      done(kubectl("delete", "-k", "deploy/crds", "--timeout=50s"));
      assert.is(await statusOf(CRD), 404);
      assert.is(helm("uninstall", "web", "--namespace=webpage-system").status, 0);
    },
    { timeoutMs: 200_000 },
  );
});
