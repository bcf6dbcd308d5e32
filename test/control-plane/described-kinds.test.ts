// A kind that a real API server serves and no CRD defines: in a version that the package of built-in kinds lacks.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { apiRequestOrThrow } from "../support/api/api-request.js";
import { runCommand } from "../support/command-line.js";
import { fastCompiler } from "../support/projects/compile.js";
import { startControlPlane } from "../support/machine/control-plane.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { linkPackages } from "../support/projects/link-packages.js";

suite("kind without a CRD", (test) => {
  test(
    "gets types from the OpenAPI document that match a live object of kube-apiserver",
    async () => {
      await using plane = await startControlPlane({ runtimeConfig: "api/all=true" });
      await using folder = await createTemporaryFolder();
      const name = "resource.k8s.io/v1beta1/DeviceClass";
      const args = ["types", "--from-cluster", name, "--kubeconfig", plane.kubeconfig, "--out", "types"];
      const { status, stderr } = await runCommand(folder.path, ...args);
      assert.is(status, 0, stderr);
      const body = {
        apiVersion: "resource.k8s.io/v1beta1",
        kind: "DeviceClass",
        metadata: { name: "gpu" },
        spec: { selectors: [{ cel: { expression: 'device.driver == "example.com"' } }] },
      };
      const live = await apiRequestOrThrow<object>(plane, "POST /apis/resource.k8s.io/v1beta1/deviceclasses", { body });
      const { metadata: _, ...rest } = live as { metadata: object };
      const code =
        'import { DeviceClass } from "./types/resources/resource.k8s.io/v1beta1/device-class.js";\n' +
        `export const live: Omit<DeviceClass, "metadata"> = ${JSON.stringify(rest)};\n` +
        'export const made = DeviceClass.create({ metadata: { name: "gpu" }, spec: {} });\n' +
        "// @ts-expect-error the schema has no such field\n" +
        'DeviceClass.create({ metadata: { name: "gpu" }, spec: { selector: [] } });\n';
      await writeFile(join(folder.path, "use.ts"), code);
      await linkPackages(folder.path);
      await writeFile(join(folder.path, "package.json"), '{ "type": "module" }');
      const options = JSON.parse(await readFile(join(repositoryRoot, "templates/project/tsconfig.json"), "utf8")) as {
        compilerOptions: object;
      };
      const compilerOptions = { ...options.compilerOptions, noEmit: true, types: [] };
      await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["**/*.ts"] }));
      assert.is(fastCompiler.compile(folder.path), "");
    },
    { timeoutMs: 120_000 },
  );
});
