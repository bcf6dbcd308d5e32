// node test/dist/integration/runtime/life-cycle/version-before/record.js FOLDER writes fixtures/version-before/: the objects that an earlier version of
// this repository, built in FOLDER, leaves behind, and the runtime of that version in one file. It then runs the present version on the objects, and the
// earlier one again (the rollback), and prints what each of them wrote.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import * as present from "#runtime/index.js";
import { apiRequestOrThrow } from "../../../../support/api/api-request.js";
import { repositoryRoot } from "../../../../support/repository.js";
import { pageCrd } from "../../page.js";
import { listAll, NAMESPACE, optionsOf, OTHER_NAMESPACE, type Accounts } from "./scenario.js";

interface Manifest {
  readonly dependencies?: object;
  readonly peerDependencies?: object;
}
type Runtime = Pick<typeof present, "createOperator">;

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("state the folder of the earlier version, which has to be built");
const manifest = JSON.parse(readFileSync(join(folder, "runtime/package.json"), "utf8")) as Manifest;
const othersPackages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter(
  (name) => !name.startsWith("@gen-operator/"),
);
await build({
  entryPoints: [join(folder, "runtime/dist/index.js")],
  outfile: join(repositoryRoot, "fixtures/version-before/runtime.mjs"),
  ...{ bundle: true, minify: true, format: "esm", platform: "node", target: "node20", legalComments: "none" },
  // The code of others is that which the present version has.
  external: othersPackages.flatMap((name) => [name, `${name}/*`]),
});
const earlier = (await import(pathToFileURL(join(folder, "runtime/dist/index.js")).href)) as Runtime;

await using server = await startApiServer({ tls: false, crds: [pageCrd] });
for (const name of [NAMESPACE, OTHER_NAMESPACE])
  await apiRequestOrThrow(server, "POST /api/v1/namespaces", { body: { metadata: { name } } });
const pages = `/apis/example.com/v1/namespaces/${NAMESPACE}/pages`;
for (const name of ["one", "two"])
  await apiRequestOrThrow(server, `POST ${pages}?fieldManager=user`, {
    body: { apiVersion: "example.com/v1", kind: "Page", metadata: { name }, spec: { text: `text of ${name}` } },
  });
const accounts: Accounts = new Map();

async function run(title: string, { createOperator }: Runtime): Promise<void> {
  const record = { requests: [] as string[], problems: [] as string[] };
  const operator = createOperator(optionsOf(server, accounts, record) as never);
  await operator.start();
  let calls = -1;
  let quietSince = performance.now();
  await waitFor(
    "it is quiet",
    () => {
      if (record.requests.length !== calls) [calls, quietSince] = [record.requests.length, performance.now()];
      return performance.now() - quietSince > 2_000;
    },
    { timeoutMs: 15_000 },
  ).catch((error: unknown) => {
    console.log(record);
    throw error;
  });
  await operator.stop();
  console.log(`${title}: ${record.requests.length} writes, ${accounts.size} accounts`);
  if (title !== "the earlier version") for (const each of record.requests) console.log(`  ${each}`);
  for (const each of record.problems) console.log(`  ${each}`);
}

await run("the earlier version", earlier);
const objects = await listAll(server);
const output = join(repositoryRoot, "fixtures/version-before/objects.json");
writeFileSync(output, `${JSON.stringify({ accounts: [...accounts.values()], objects }, undefined, 2)}\n`);
await run("the earlier version again", earlier);
await run("the present version", present);
await run("the present version again", present);
const edit = async (text: string) =>
  apiRequestOrThrow(server, `PATCH ${pages}/one?fieldManager=user`, {
    ...{ body: { spec: { text } }, contentType: "application/merge-patch+json" },
  });
await run("the rollback", earlier);
await edit("edited");
await run("the rollback, after an edit", earlier);
await apiRequestOrThrow(server, `DELETE ${pages}/two`);
await run("the rollback, after a deletion", earlier);
await run("forward again", present);
