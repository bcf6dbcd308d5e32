import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { format } from "prettier";
import type { OutputFile } from "#generator/emit/output-file.js";
import { compilers, writeProject } from "../support/projects/compile.js";
import { generateKinds, kindsFolder } from "../support/projects/kinds.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

suite("package of built-in kinds", (test) => {
  let files: Promise<OutputFile[]> | undefined;
  const generated = () => (files ??= generateKinds());

  test("matches the generated files byte for byte", async () => {
    const files = await generated();
    for (const { path, content } of files) assert.is(await readFile(join(kindsFolder, path), "utf8"), content, path);
    const present = await readdir(join(kindsFolder, "src"), { recursive: true, encoding: "utf8" });
    const paths = present.filter((path) => path.endsWith(".ts")).map((path) => `src/${path.replaceAll("\\", "/")}`);
    assert.equal(paths.sort(), files.map(({ path }) => path).sort());
  });

  test("exports each module with types, except schemas", async () => {
    const { exports } = JSON.parse(await readFile(join(kindsFolder, "package.json"), "utf8")) as { exports: object };
    const modules = (await generated()).flatMap(({ path }) => /^src\/(.*(?<!\.schema))\.ts$/.exec(path)?.[1] ?? []);
    const want = modules.map((path) => [`./${path}`, { types: `./dist/${path}.d.ts`, default: `./dist/${path}.js` }]);
    assert.equal(exports, { ...Object.fromEntries(want), "./package.json": "./package.json" });
  });

  test("documents every field except apiVersion, kind and metadata", async () => {
    // What the schema of a CustomResourceDefinition says of these, Kubernetes describes nowhere.
    const files = (await generated()).filter(({ path }) => !/\.schema\.ts$|^src\/apiextensions/.test(path));
    const lines = files.flatMap(({ content }) => content.split("\n"));
    const isField = (line: string) => /^ {2}(declare )?readonly (?!kind|apiVersion|metadata)\w+\??: /.test(line);
    assert.ok(lines.filter(isField).length > 1500);
    assert.equal(
      lines.filter((line, index) => isField(line) && !lines[index - 1]?.endsWith("*/")),
      // In Go it is a part of the rule that has no description of its own.
      ["  readonly http?: HTTPIngressRuleValue | undefined;"],
    );
  });

  test("adds only the imported classes and schemas to a bundle", async () => {
    const contents = `import { ConfigMap } from "@gen-operator/kinds/core/v1"; console.log(ConfigMap.definition);`;
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: kindsFolder },
      ...{ bundle: true, write: false, format: "esm", platform: "node", target: "node20" },
    });
    const text = outputFiles[0]?.text ?? "";
    assert.match(text, /kind: "ConfigMap"/);
    assert.not.match(text, /kind: "(Pod|Binding)"|PodSpec/);
  });

  test.thorough(
    "compiles and is formatted as by prettier",
    async () => {
      await using folder = await createTemporaryFolder();
      const files = await generated();
      await writeProject(folder.path, files, { declaration: true });
      for (const { compile } of compilers) assert.is(compile(folder.path), "");
      const options = { parser: "babel-ts", printWidth: 120 } as const;
      for (const { path, content } of files) assert.is(await format(content, options), content, path);
    },
    { timeoutMs: 120_000 },
  );
});
