import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "#generator/generate.js";
import { suggestCaches } from "#generator/suggest/suggest-caches.js";
import { chosenCompilers, fastCompiler } from "../support/projects/compile.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { linkPackages } from "../support/projects/link-packages.js";

const sample = join(repositoryRoot, "fixtures/samples/podwatch");

/** Copies the sample so that it can be changed and compiled. */
async function createProject() {
  const folder = await createTemporaryFolder();
  for (const part of ["src", "deploy", "crds", "workflow.yaml"])
    await cp(join(sample, part), join(folder.path, part), { recursive: true });
  await linkPackages(folder.path);
  await writeFile(join(folder.path, "package.json"), JSON.stringify({ name: "podwatch", type: "module" }));
  const compilerOptions = { composite: false, rootDir: ".", noEmit: true, tsBuildInfoFile: null };
  const config = { extends: join(repositoryRoot, "tsconfig.json"), compilerOptions, include: ["src"] };
  await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify(config));
  return folder;
}

/** Reads of a pod that keeps its phase alone; each is an error that says where to state more. */
const READS = [
  "secondary.pods[0]?.spec",
  "secondary.pods[0]?.status?.podIP",
  "secondary.pods.filter((pod) => pod.status?.startTime).length",
  "secondary.pods.map((pod) => `${pod.spec}`)",
  "secondary.pods.map((pod) => nodeOf(pod))",
  "[...secondary.pods].map(nodeOf)",
  "hostOf(secondary.pods[0]?.status)",
  "context.secondaries(Pod).map((pod) => pod.spec?.nodeName)",
];

suite("pruned caches", (test) => {
  test(
    "reject reads of pruned fields at compile time, with a message that names the cache setting",
    async () => {
      await using folder = await createProject();
      const helpers =
        'import { Pod } from "../generated/index.js";\n' +
        'import type { PodWatchReconcileArguments, PodsResource } from "../generated/podwatch/types.js";\n' +
        "const nodeOf = (pod: Pod) => pod.spec?.nodeName;\n" +
        'const hostOf = (status: Pod["status"] | undefined) => status?.hostIP;\n' +
        "export const reads = ({ secondary, context }: PodWatchReconcileArguments): unknown[] => [\n";
      const kept = "secondary.pods[0]?.status?.phase, context.secondaries(Pod).map(({ metadata }) => metadata.name)";
      const whole = "export const resource = (pod: Pod): PodsResource => pod;";
      const used = "export const used = [nodeOf, hostOf];";
      const sources = { "kept.ts": kept, "pruned.ts": READS.join(",\n") };
      for (const [name, reads] of Object.entries(sources))
        await writeFile(join(folder.path, "src/podwatch", name), `${helpers}${reads}];\n${whole}\n${used}\n`);
      for (const { compile } of chosenCompilers) {
        const errors = compile(folder.path).split(/^(?=\S)/m);
        assert.equal(
          errors.filter((each) => !each.includes("src/podwatch/pruned.ts(")),
          [],
        );
        for (const [index, read] of READS.entries()) {
          const message = errors.find((each) => each.includes(`pruned.ts(${index + 6},`));
          assert.match(message ?? "", "add it to eventSources.pods.cache.paths of workflow.yaml", read);
        }
      }
    },
    { timeoutMs: 120_000 },
  );

  test.thorough(
    "leave generated files unchanged when code is edited, and suggest caches fixes the compile error",
    async () => {
      await using folder = await createProject();
      const file = join(folder.path, "src/podwatch/reconciler.ts");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace("({ status }) => status?.phase", "(pod) => pod.spec?.nodeName"));
      assert.match(fastCompiler.compile(folder.path), /reconciler\.ts.* TS2339: Property 'spec' does not exist/);
      assert.equal((await generate({ project: folder.path, check: true })).report?.stale, []);

      const report = [
        "pods: cache: { paths: [spec.nodeName, status.phase] } (read in src/podwatch/reconciler.ts:8, workflow.yaml:20)",
        "node: cache: metadata (nothing else is read), as set",
      ];
      const specFile = join(folder.path, "workflow.yaml");
      const before = await readFile(specFile, "utf8");
      assert.equal(await suggestCaches({ project: folder.path, dryRun: true }), {
        ...{ diagnostics: [], report },
        updated: ["workflow.yaml"],
      });
      assert.is(await readFile(specFile, "utf8"), before);
      await suggestCaches({ project: folder.path });
      assert.is(await readFile(specFile, "utf8"), before.replace("[status.phase]", "[spec.nodeName, status.phase]"));
      assert.equal((await suggestCaches({ project: folder.path })).updated, []);

      assert.equal((await generate({ project: folder.path })).diagnostics, []);
      assert.is(fastCompiler.compile(folder.path), "");
    },
    { timeoutMs: 120_000 },
  );

  test(
    "reject expressions that read pruned fields, with a message that names the cache setting",
    async () => {
      await using folder = await createProject();
      const file = join(folder.path, "workflow.yaml");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace("cache: { paths: [status.phase] }", "cache: metadata"));
      const { diagnostics, report } = await generate({ project: folder.path });
      assert.is(report, undefined);
      assert.equal(
        diagnostics.map(({ rule, position }) => `${rule} ${position?.line}`),
        ["when-type 20", "when-type 20"],
      );
      assert.match(diagnostics[0]?.message ?? "", "add it to eventSources.pods.cache.paths of workflow.yaml");
    },
    { timeoutMs: 120_000 },
  );

  test("get no suggestion if the object is used as a whole, and the report names the position", async () => {
    await using folder = await createProject();
    const file = join(folder.path, "src/podwatch/reconciler.ts");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace("const running =", "tag`${pods}`;\n    const running ="));
    assert.equal((await suggestCaches({ project: folder.path })).report, [
      "pods: no cache: used as a whole in src/podwatch/reconciler.ts:8:11",
      "node: cache: metadata (nothing else is read), as set",
    ]);
  });
});
