// npm pack: what tsc compiled becomes a few files, so that a start of the program reads a dozen of them instead of hundreds. They replace what
// was compiled; with a folder as its argument this makes a copy of the package there instead, to measure it.
//
// Every dynamic import starts files of its own: a command loads only what it needs. The dependencies of package.json stay packages, since they
// are large and rarely needed, or have to be the project's own; all others become a part of the files, with their licences beside them.
import { readFile, readdir, rm } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import standaloneCode from "ajv/dist/standalone/index.js";
import { generateDtsBundle } from "dts-bundle-generator";
import { bundlePackage, writePackage } from "../bundle-package.js";

const root = resolve(fileURLToPath(new URL("./", import.meta.url)));
const compiled = join(root, "dist");
const target = resolve(process.argv[2] ?? root);

/** What others load by its path: the program, the API, what runs in a process or a thread of its own, and what few runs need. */
const ENTRIES = [
  ...["cli.js", "index.js", "dev/operator/operator-host.js", "dev/code/type-check-worker.js"],
  ...["read/crd/definition-checker.js", "read/crd/expression-checker.js"],
];

/** What generated code sees of the runtime. */
const typesForCode = fileURLToPath(import.meta.resolve("@gen-operator/runtime/codegen")).replace(/\.js$/, ".d.ts");

/** CommonJS modules that are bundled load Node's own modules by it. */
const REQUIRE =
  'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);\n';

const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const external = Object.keys(manifest.dependencies);

/** An `import()` of a CommonJS module has the names in Node that Node finds in its text, and in a bundle `default` alone. */
const namedImports = {
  name: "named imports",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[^.]/ }, ({ kind, path, resolveDir }) => {
      const isExternal = external.some((name) => path === name || path.startsWith(`${name}/`));
      if (kind !== "dynamic-import" || isBuiltin(path) || isExternal) return undefined;
      return { path, namespace: "named", pluginData: { resolveDir } };
    });
    onLoad({ filter: /^/, namespace: "named" }, async ({ path, pluginData: { resolveDir } }) => {
      const names = Object.keys(await import(path)).filter((name) => /^\w+$/.test(name) && name !== "default");
      return { contents: `export { ${names.join(", ")} } from ${JSON.stringify(path)};`, resolveDir };
    });
  },
};

/**
 * The libraries of yargs that measure texts load tables of emoji and the segmenter of Intl, a fifth of a start. What help shows has one column a
 * character.
 */
const plainWidth = {
  name: "plain width",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^string-width$/ }, () => ({ path: "string-width", namespace: "plain" }));
    onLoad({ filter: /^/, namespace: "plain" }, () => ({
      contents: `import { stripVTControlCharacters } from "node:util";
export default (text) => stripVTControlCharacters(text).length;`,
    }));
  },
};

/** The JSON Schema of specs is compiled here, and not at every start that reads a spec: what is imported as its compiler has the code. */
const compiledValidator = {
  name: "compiled validator",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^ajv$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "ajv", namespace: "compiler" } : undefined,
    );
    onLoad({ filter: /^/, namespace: "compiler" }, () => ({
      contents: 'import validate from "spec-validator";\nexport class Ajv {\n  compile = () => validate;\n}',
      resolveDir: root,
    }));
    onResolve({ filter: /^spec-validator$/ }, () => ({ path: "spec-validator", namespace: "compiled" }));
    onLoad({ filter: /^/, namespace: "compiled" }, async () => {
      const { VALIDATOR_OPTIONS } = await import("./dist/read/workflows.js");
      const ajv = new Ajv({ ...VALIDATOR_OPTIONS, code: { source: true, esm: true } });
      const schema = JSON.parse(await readFile(join(root, "data/workflow.schema.json"), "utf8"));
      return { contents: standaloneCode.default(ajv, ajv.compile(schema)), resolveDir: root };
    });
  },
};

const { files, metafile } = await bundlePackage(root, {
  entries: ENTRIES,
  manifest,
  external,
  plugins: [plainWidth, compiledValidator, namedImports],
  // The licences are in a file of their own.
  legalComments: "none",
});

const types = typesOf(join(compiled, "index.d.ts"));
const licences = await licencesOf(metafile);
await rm(join(target, "dist"), { recursive: true, force: true });
await writePackage(root, target, [
  ...files.map(({ path, text }) => ({ path, text: text.includes("var __require = ") ? REQUIRE + text : text })),
  { path: "dist/index.d.ts", text: types },
  // The compiler reads one file in less time than eighty. Conditions are checked against it: see condition-program.ts.
  { path: "dist/codegen.d.ts", text: declarationsOf(typesForCode) },
  { path: "dist/LICENSES.txt", text: licences },
]);

/** Returns all declarations of the API, without those that only the program has. */
function typesOf(file) {
  const text = declarationsOf(file);
  const [, bundled] = /from ["']([^"']+)["']/.exec(text) ?? [];
  if (bundled !== undefined)
    throw new Error(`the types of the API need ${bundled}, which nobody has who installs the package`);
  return text;
}

/** Returns what a file of declarations exports, and what that needs, in one file. */
function declarationsOf(filePath) {
  const inlined = { inlinedLibraries: ["@gen-operator/schema"] };
  const options = { preferredConfigPath: join(root, "tsconfig.json") };
  const [text] = generateDtsBundle([{ filePath, libraries: inlined, output: { noBanner: true } }], options);
  return text;
}

/** Returns the licences of all packages that are bundled. */
async function licencesOf({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs));
  const bundled = [...new Set(inputs.filter((input) => input.includes("node_modules/")))].sort();
  const texts = [...new Set(bundled.map(folderOf))].sort().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e\b/i.test(each));
    const ofFolder = bundled.filter((input) => folderOf(input) === folder);
    const text = file === undefined ? await noticesIn(ofFolder) : await readFile(join(folder, file), "utf8");
    if (text === "") throw new Error(`${name} states no licence; it cannot be a part of the package`);
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  });
  return `The program contains these packages.\n\n${(await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** Returns the notices at the beginning of files, each once: a package without a file for its licence states it there. */
async function noticesIn(inputs) {
  const notices = await Promise.all(
    inputs.map(async (input) => {
      const [, comment = ""] =
        /^(?:"use strict";\s*)?((?:\/\/.*\n)+)/.exec(await readFile(resolve(root, input), "utf8")) ?? [];
      return comment.includes("Copyright") ? comment.replaceAll(/^\/\/ ?/gm, "") : "";
    }),
  );
  return [...new Set(notices.filter((notice) => notice !== ""))].join("\n");
}

function folderOf(input) {
  return resolve(root, /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)[0]);
}
