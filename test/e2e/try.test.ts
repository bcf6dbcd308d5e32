// Who has nothing but the repository gets a project that depends on nothing outside of its folder but the registry.
import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { runOrThrow } from "./command.js";
import { packPackages } from "./packages.js";

suite("npm run try", (test) => {
  test(
    "creates a project that installs, tests and bundles after it is moved",
    async () => {
      const node = process.execPath;
      await using packages = await packPackages(node);
      await using folder = await createTemporaryFolder();
      const [made, moved] = [join(folder.path, "made/page"), join(folder.path, "elsewhere/moved")];
      const crd = join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml");
      await runOrThrow(["npm", "run", "try", "--", made, "--crd", crd], { cwd: packages.checkout, node });
      await runOrThrow(["npm", "install", "--prefer-offline"], { cwd: made, node });
      await cp(made, moved, { recursive: true, filter: (path) => !path.endsWith("node_modules") });
      await rm(made, { recursive: true });
      await runOrThrow(["npm", "ci", "--prefer-offline"], { cwd: moved, node });
      assert.match(await runOrThrow(["npm", "test"], { cwd: moved, node }), "# pass 1");
      await runOrThrow(["npm", "run", "bundle"], { cwd: moved, node });
      // The image has what it installs before it does.
      const dockerfile = await readFile(join(moved, "Dockerfile"), "utf8");
      assert.match(dockerfile, "COPY packages ./packages\nRUN npm ci\n");
      assert.not.match(await readFile(join(moved, "package-lock.json"), "utf8"), /"resolved": "file:(?!packages\/)/);
    },
    { timeoutMs: 600_000 },
  );
});
