// Integers beyond 2^53 of definitions and objects, from files and from clusters: what the API server stores is what the commands read and send.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as runtime from "@gen-operator/runtime";
import { startApiServer } from "@gen-operator/apiserver";
import { DevCluster } from "#generator/dev/dev-cluster.js";
import type { ProjectPackages } from "#generator/dev/project-packages.js";
import { readProject } from "#generator/read/read-project.js";
import { apiRequest } from "../../support/api/api-request.js";
import { startTestApiServer, type TestApiServer } from "../../support/api/api-server.js";
import { runCommand } from "../../support/command-line.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const LONG = { timeoutMs: 90_000 };
const NAME = "numbers.exact.example.com";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const VALUES = ["9007199254740993", "9007199254740992", "9223372036854775807", "-9223372036854775808"];

/** A definition as JSON, which YAML is, too: no value of JavaScript has its integers. */
function definitionText(values = VALUES): string {
  const fields = values.map(
    (value, index) =>
      `"f${index}":{"type":"integer","format":"int64","default":${value},"example":${value},"enum":[${values.join()}]}`,
  );
  return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"${NAME}"},"spec":{"group":"exact.example.com",
    "scope":"Namespaced","names":{"plural":"numbers","singular":"number","kind":"Number","listKind":"NumberList"},"versions":[{"name":"v1","served":true,
    "storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{${fields.join()},
    "free":{"type":"integer","format":"int64"}}}}}}}]}}`;
}

async function send(server: TestApiServer, methodAndPath: string, body: string, contentType = "application/json") {
  const { status, text } = await apiRequest(server, methodAndPath, { body, contentType });
  assert.ok(status < 300, text);
}

/** The integers that a YAML or JSON text has for a member, of each field in its turn. */
function integersOf(text: string, member: string): string[] {
  return [...text.matchAll(new RegExp(`\\b${member}"?: ?(-?\\d+)`, "g"))].map(([, found = ""]) => found);
}

suite("integers beyond 2^53", (test) => {
  test(
    "are kept in a CRD from a cluster, and doctor reports a change of the last digit",
    async () => {
      await using server = await startTestApiServer();
      await send(server, `POST ${DEFINITIONS}`, definitionText());
      await using folder = await createTemporaryFolder();
      const kubeconfig = ["--kubeconfig", server.kubeconfig];
      const init = await runCommand(folder.path, "init", "numbers", "--from-cluster", "Number", ...kubeconfig);
      assert.is(init.status, 0, init.stderr);
      const project = join(folder.path, "numbers");
      for (const file of [`crds/${NAME}.yaml`, `deploy/generated/crds/${NAME}.yaml`]) {
        const text = await readFile(join(project, file), "utf8");
        for (const member of ["default", "example"]) assert.equal(integersOf(text, member), VALUES, file);
        for (const value of VALUES) assert.match(text, `- ${value}\n`);
      }
      const same = await runCommand(project, "doctor", ...kubeconfig);
      assert.not.match(same.stdout, `CRD ${NAME}`);
      const changed = definitionText(["9007199254740992", ...VALUES.slice(1)]);
      await send(
        server,
        `PATCH ${DEFINITIONS}/${NAME}?fieldManager=a&force=true`,
        changed,
        "application/apply-patch+yaml",
      );
      const { stdout } = await runCommand(project, "doctor", ...kubeconfig);
      assert.match(stdout, `CRD ${NAME}: the cluster and the project have different definitions`);
      assert.match(stdout, "spec.f0: default 9007199254740993 → 9007199254740992");
    },
    LONG,
  );

  test(
    "are kept when dev applies CRDs and examples",
    async () => {
      await using folder = await createTemporaryFolder();
      const [project, kubeconfigFile] = [join(folder.path, "numbers"), join(folder.path, "kubeconfig")];
      await writeFile(join(folder.path, "crd.yaml"), definitionText());
      assert.is((await runCommand(folder.path, "init", "numbers", "--crd", "crd.yaml")).status, 0);
      await mkdir(join(project, "examples"), { recursive: true });
      const names = ["a", "b", "c", "d"];
      const examples = VALUES.map(
        (value, index) =>
          `apiVersion: exact.example.com/v1\nkind: Number\nmetadata: { name: ${names[index]} }\nspec: { free: ${value} }\n`,
      );
      await writeFile(join(project, "examples/numbers.yaml"), examples.join("---\n"));
      const packages = { runtime, loadApiServer: async () => ({ startApiServer }) } as unknown as ProjectPackages;
      const cluster = await DevCluster.open({ packages, kubeconfigFile });
      try {
        const { crds } = await readProject(project);
        assert.equal(await cluster.applyCrds(crds), [NAME]);
        const { applied, problems } = await cluster.applyExamples(project, crds);
        assert.equal(problems, []);
        assert.is(applied.length >= VALUES.length, true);
        assert.equal(await cluster.applyExamples(project, crds), { applied: [], problems: [] });
        const client = new runtime.ApiClient(await runtime.loadConnection({ kubeconfig: kubeconfigFile }));
        const read = async (path: string) => (await client.readPath(path)) ?? "";
        assert.equal(integersOf(await read(`${DEFINITIONS}/${NAME}`), "default"), VALUES);
        for (const [index, name] of names.entries()) {
          const text = await read(`/apis/exact.example.com/v1/namespaces/default/numbers/${name}`);
          assert.is(integersOf(text, "free").at(-1), VALUES[index]);
          assert.equal(
            VALUES.flatMap((_, each) => integersOf(text, `f${each}`).at(-1) ?? ""),
            VALUES,
          );
        }
        await client.close();
      } finally {
        await cluster[Symbol.asyncDispose]();
      }
    },
    LONG,
  );
});
