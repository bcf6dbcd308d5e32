import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeFiles } from "#generator/write/write-files.js";
import { generateKinds } from "./kinds.js";
import { repositoryRoot } from "../repository.js";
import { listSamples } from "./samples.js";
import { settingsSchema } from "./settings-schema.js";

// Regenerates the samples with their manifests, the built-in kinds, and the JSON Schema of the settings. With --check, it only sets the exit code if
// one of them is stale.
const check = process.argv.includes("--check");
for (const { name, folder, generate, remember, renderDeploy } of listSamples()) {
  const { created, updated, deleted, stale } = await writeFiles(folder, await generate(), {
    check,
    ...(await remember()),
  });
  for (const { path, content } of await renderDeploy()) updateFile(`fixtures/samples/${name}/${path}`, content);
  const changes = { created, updated, deleted, stale };
  for (const [change, paths] of Object.entries(changes))
    for (const path of paths) console.log(`${change} fixtures/samples/${name}/${path}`);
  if (stale.length > 0) process.exitCode = 1;
}
for (const { path, content } of await generateKinds()) updateFile(`kinds/${path}`, content);
updateFile("runtime/settings.schema.json", `${JSON.stringify(settingsSchema(), undefined, 2)}\n`);
if (process.exitCode === 1)
  console.error("the samples, the kinds or the schema are out of date: run npm run golden:update");

function updateFile(path: string, text: string): void {
  const file = join(repositoryRoot, path);
  if (readOrNothing(file) === text) return;
  console.log(`${check ? "stale" : "updated"} ${path}`);
  if (check) {
    process.exitCode = 1;
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
