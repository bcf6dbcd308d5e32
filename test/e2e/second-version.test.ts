// A project that is generated, compiled and started; then changed, and all of that again on the same API server.
import { join } from "node:path";
import { startTestApiServer } from "../support/api/api-server.js";
import { runCommand } from "../support/command-line.js";
import { fastCompiler } from "../support/projects/compile.js";
import { createPagesProject } from "../support/projects/new-project.js";
import { assert, suite } from "../support/suite.js";
import { keepMovedObject } from "./moved-dependent.js";

suite("second version of an operator", (test) => {
  test(
    "keeps the object of a renamed dependent",
    async () => {
      await using project = await createPagesProject();
      await using server = await startTestApiServer({ crds: [join(project.path, "crds/webpages.example.com.yaml")] });
      await keepMovedObject({
        ...{ folder: project.path, server, kubeconfig: server.kubeconfig, node: process.execPath },
        async generate() {
          const { status, stderr } = await runCommand(project.path, "generate");
          assert.is(status, 0, stderr);
        },
        compile: async () => assert.is(fastCompiler.compile(project.path), ""),
      });
    },
    { timeoutMs: 180_000 },
  );
});
