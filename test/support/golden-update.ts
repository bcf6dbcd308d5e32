import { writeFiles } from "#generator/output/write-files.js";
import { listSamples } from "./samples.js";

// Regenerates the samples; with --check it only tells whether they are up to date, by its exit code.
const check = process.argv.includes("--check");
for (const { name, folder, generate } of listSamples()) {
  const { created, updated, deleted, stale } = await writeFiles(folder, await generate(), { check });
  const changes = { created, updated, deleted, stale };
  for (const [change, paths] of Object.entries(changes))
    for (const path of paths) console.log(`${change} fixtures/samples/${name}/${path}`);
  if (stale.length > 0) process.exitCode = 1;
}
if (process.exitCode === 1) console.error("the samples are out of date: run npm run golden:update");
