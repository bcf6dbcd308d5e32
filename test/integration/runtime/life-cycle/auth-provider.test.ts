// Users of a kubeconfig with an auth-provider, for which the runtime loads @kubernetes/client-node: an optional peer, often not installed.
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { loadConnection } from "#runtime/client/load-connection.js";
import { createOidcToken, writeOidcConfig } from "../../../support/api/oidc-config.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

/** Writes a kubeconfig whose user logs in by OIDC with a token that is still good. */
async function writeConfig(folder: string): Promise<{ file: string; token: string }> {
  const [file, token] = [join(folder, "config"), createOidcToken()];
  await writeOidcConfig(file, "https://127.0.0.1:1", token);
  return { file, token };
}

/** Installs the runtime with its dependencies, and without its optional peers, and returns what a program beside it prints. */
async function runWithoutPeers(folder: string, program: string): Promise<string> {
  const source = join(repositoryRoot, "runtime");
  const installed = join(folder, "node_modules/@gen-operator/runtime");
  await cp(join(source, "dist"), join(installed, "dist"), { recursive: true });
  await cp(join(source, "package.json"), join(installed, "package.json"));
  const { dependencies } = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as {
    dependencies: { readonly [name: string]: string };
  };
  for (const name of Object.keys(dependencies)) {
    const link = join(folder, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(repositoryRoot, "node_modules", name), link);
  }
  await writeFile(join(folder, "program.mjs"), program);
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, "program.mjs")]);
  return stdout.trim();
}

suite("auth-provider of a kubeconfig", (test) => {
  test("sends its token if @kubernetes/client-node is installed", async () => {
    await using folder = await createTemporaryFolder();
    const { file, token } = await writeConfig(folder.path);
    const { credentials } = await loadConnection({ kubeconfig: file });
    assert.is((await credentials({ isRejected: false })).authorization, `Bearer ${token}`);
  });

  test("fails without @kubernetes/client-node, with context, user, file and the install command", async () => {
    await using folder = await createTemporaryFolder();
    const { file } = await writeConfig(folder.path);
    const printed = await runWithoutPeers(
      folder.path,
      `import { loadConnection } from "@gen-operator/runtime";
       await loadConnection({ kubeconfig: ${JSON.stringify(file)} }).catch(({ message }) => console.log(message));`,
    );
    assert.is(
      printed,
      `kubeconfig ${file}, context "office": the auth-provider "oidc" of kubeconfig ${file}, user "jane" needs the package ` +
        "@kubernetes/client-node, which is not installed; run npm install --save-prod @kubernetes/client-node, which also puts it into the " +
        "bundle of the operator",
    );
  });

  test("is the only credential that needs @kubernetes/client-node", async () => {
    await using folder = await createTemporaryFolder();
    const { file } = await writeConfig(folder.path);
    const config = JSON.parse(await readFile(file, "utf8")) as { users: object[] };
    config.users = [{ name: "jane", user: { token: "secret" } }];
    await writeFile(file, JSON.stringify(config));
    const printed = await runWithoutPeers(
      folder.path,
      `import { loadConnection } from "@gen-operator/runtime";
       const { credentials } = await loadConnection({ kubeconfig: ${JSON.stringify(file)} });
       console.log((await credentials({ isRejected: false })).authorization);`,
    );
    assert.is(printed, "Bearer secret");
  });
});
