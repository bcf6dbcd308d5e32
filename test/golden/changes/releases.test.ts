// What `diff` says of releases that people had to upgrade between.
import { readdirSync, readFileSync } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Change } from "#generator/diff/change.js";
import { compareCrds } from "#generator/diff/compare-crds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { runCommand } from "../../support/command-line.js";
import { checkGolden } from "../../support/projects/golden-file.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const releases = join(repositoryRoot, "fixtures/releases");
const PAIRS = [
  ["gateway-api-v1.1.0", "gateway-api-v1.2.0"],
  ["snapshotter-client-v6.0.0", "snapshotter-client-v8.0.0"],
] as const;

function crdsOf(release: string) {
  return readdirSync(join(releases, release))
    .sort()
    .flatMap((file) => readCrds({ file, text: readFileSync(join(releases, release, file), "utf8") }).crds);
}

const lineOf = ({ effect, subject, path, message }: Change) =>
  `${effect.padEnd(10)} ${subject}${path === undefined ? "" : `: ${path}`}: ${message}\n`;

/** A project with the CRDs of a release, and a workflow that none of them is part of. */
async function createProject(release: string) {
  const folder = await createTemporaryFolder();
  await cp(join(repositoryRoot, "fixtures/samples/webpage/workflow.yaml"), join(folder.path, "workflow.yaml"));
  await cp(join(repositoryRoot, "fixtures/samples/webpage/crds"), join(folder.path, "crds"), { recursive: true });
  await cp(join(releases, release), join(folder.path, "crds"), { recursive: true });
  await writeFile(join(folder.path, "package.json"), '{ "name": "releases", "type": "module" }\n');
  return folder;
}

suite("diff of CRD releases", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 60_000 });

  for (const [before, after] of PAIRS) {
    test(`${before} to ${after}: lists changes by path and version`, () => {
      const changes = compareCrds(crdsOf(before), crdsOf(after));
      assert.ok(changes.length > 0);
      checkGolden(join(releases, `${before}-to-${after}.txt`), changes.map(lineOf).join(""));
    });

    test(`${before} to ${after}: exits with 1, and with 0 for ${before} compared with itself`, async () => {
      await using old = await createProject(before);
      await using now = await createProject(after);
      const upgrade = await runCommand(now.path, "diff", "--against", old.path);
      assert.is(upgrade.status, 1, upgrade.stderr);
      const printed = upgrade.stdout.split("\n").filter((line) => /^ {2}(breaking|compatible) /.test(line));
      assert.is(printed.length, compareCrds(crdsOf(before), crdsOf(after)).length);
      const crdify = await runCommand(now.path, "diff", "--against", old.path, "--format", "crdify");
      assert.is(crdify.status, 1, crdify.stderr);
      assert.equal(
        Object.keys(JSON.parse(crdify.stdout) as object),
        crdsOf(before).map(({ plural, group }) => `${plural}.${group}`),
      );
      const same = await runCommand(old.path, "diff", "--against", old.path);
      assert.is(same.status, 0, same.stderr);
      assert.match(same.stdout, "no differences in CRDs or specs");
    });
  }
});
