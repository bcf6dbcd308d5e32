import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeFiles } from "#generator/output/write-files.js";
import { settingsSchema } from "#runtime/operate/settings/settings-schema.js";
import { repositoryRoot } from "./repository.js";
import { listSamples } from "./samples.js";

// Regenerates the samples, and the schema of the settings; with --check it only tells whether they are up to date, by its exit code.
const check = process.argv.includes("--check");
for (const { name, folder, generate } of listSamples()) {
  const { created, updated, deleted, stale } = await writeFiles(folder, await generate(), { check });
  const changes = { created, updated, deleted, stale };
  for (const [change, paths] of Object.entries(changes))
    for (const path of paths) console.log(`${change} fixtures/samples/${name}/${path}`);
  if (stale.length > 0) process.exitCode = 1;
}
const schemaFile = join(repositoryRoot, "runtime/settings.schema.json");
const schema = `${JSON.stringify(settingsSchema(), undefined, 2)}\n`;
if (readOrNothing(schemaFile) !== schema) {
  console.log(`${check ? "stale" : "updated"} runtime/settings.schema.json`);
  if (check) process.exitCode = 1;
  else writeFileSync(schemaFile, schema);
}
if (process.exitCode === 1) console.error("the samples or the schema are out of date: run npm run golden:update");

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
