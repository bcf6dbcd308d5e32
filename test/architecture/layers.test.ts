// The table of layers. A folder may import itself and what is listed for it; "types of" means that nothing of it is left at run
// time. Files beside the folders of a package (generate.ts, server.ts, cli.ts, index.ts) put the parts together and
// may import everything in it, as `api` of the runtime does; `diagnostic` and `json` are such files that others may import. Nor may files import each other in a circle.
import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { layers } from "./layer-table.js";
import { packages, readPackageSources, type Import, type SourceFile } from "./source-files.js";

/** Packages that a whole package may import beside its dependencies; everything else of ours is closed to it. */
const ownPackages: Record<(typeof packages)[number], string[]> = {
  generator: [
    "@gen-operator/runtime",
    "@gen-operator/runtime/cel",
    "@gen-operator/runtime/codegen",
    "@gen-operator/schema",
    "@gen-operator/schema/cel",
    "@gen-operator/schema/definitions",
    "@gen-operator/templates/package.json",
  ],
  runtime: ["@gen-operator/schema", "@gen-operator/schema/cel"],
  apiserver: ["@gen-operator/schema", "@gen-operator/schema/cel", "@gen-operator/schema/definitions"],
  schema: [],
};

const sources = readPackageSources();

suite("layers", (test) => {
  test("forbid imports that the layer table does not allow", () => {
    const violations = sources.flatMap((source) =>
      source.imports
        .filter((each) => !isAllowed(source, each))
        .map((each) => `${source.path}:${each.line}: ${layerOf(source.path)} may not import ${describe(each)}`),
    );
    assert.equal(violations, []);
  });

  test("list no import that the code does not use", () => {
    const used = new Set<string>();
    for (const { path, imports } of sources)
      for (const { specifier, target, isTypeOnly } of imports) {
        const from = `${packageOf(path)}/${layerOf(path)}`;
        const to = target === undefined ? specifier : layerOf(target);
        used.add(`${from} types of ${to}`);
        if (!isTypeOnly) used.add(`${from} values of ${to}`);
      }
    const needless = packages.flatMap((name) =>
      Object.entries(layers[name]).flatMap(([layer, { values, types = [] }]) =>
        [...values.map((each) => `values of ${each}`), ...types.map((each) => `types of ${each}`)]
          .map((allowed) => `${name}/${layer} ${allowed}`)
          .filter((allowed) => !used.has(allowed)),
      ),
    );
    assert.equal(needless, []);
  });

  test("limit queue/processor, types included, to imports of base", () => {
    const { imports } = sources.find(({ path }) => path === "runtime/src/queue/processor.ts")!;
    assert.equal(
      [...new Set(imports.map(({ specifier, target }) => (target === undefined ? specifier : layerOf(target))))],
      ["base"],
    );
  });

  test("limit match, owned-fields, plan and processor to base, the schema package and each other", () => {
    const pure = ["apply/match", "apply/owned-fields", "workflow/plan", "queue/processor"];
    const paths = pure.map((name) => `runtime/src/${name}.ts`);
    const isPure = ({ specifier, target }: Import) =>
      target === undefined
        ? specifier === "node:util" || specifier === "@gen-operator/schema"
        : paths.includes(target) || layerOf(target) === "base";
    const violations = paths.flatMap((path) => {
      const { imports } = sources.find((source) => source.path === path)!;
      const loaded = imports.filter(({ isTypeOnly }) => !isTypeOnly);
      return loaded.filter((each) => !isPure(each)).map(({ specifier }) => `${path}: ${specifier}`);
    });
    assert.equal(violations, []);
  });

  test("limit the runtime's codegen and cel entry points to definitions and the schema package", () => {
    const byPath = new Map(sources.map((source) => [source.path, source]));
    const loaded = new Set(["runtime/src/api/codegen.ts", "runtime/src/api/cel.ts"]);
    for (const path of loaded)
      for (const { target, isTypeOnly } of byPath.get(path)!.imports)
        if (target !== undefined && !isTypeOnly) loaded.add(target);
    const others = [...loaded].filter(
      (path) => !/^runtime\/src\/api\/(codegen|cel|parse-resource|d[ie]\w+-\w+)\.ts$/.test(path),
    );
    assert.equal(others, []);
    const packagesOf = [...loaded].flatMap((path) =>
      byPath
        .get(path)!
        .imports.flatMap(({ target, isTypeOnly, specifier }) =>
          target === undefined && !isTypeOnly && !specifier.startsWith("@gen-operator/schema")
            ? [`${path}: ${specifier}`]
            : [],
        ),
    );
    assert.equal(packagesOf, []);
  });

  test("have a table row for every folder of a package", () => {
    const folders = new Set(
      sources
        .map(({ path }) => path.split("/"))
        .filter(([, , , ...rest]) => rest.length > 0)
        .map(([name = "", , folder = ""]) => `${name}/${folder}`),
    );
    const unknown = [...folders].filter((folder) => {
      const [name, layer] = folder.split("/") as [(typeof packages)[number], string];
      return layers[name][layer] === undefined && folder !== "generator/cli" && folder !== "runtime/api";
    });
    assert.equal(unknown, []);
  });

  test("limit a package to Node.js and its declared dependencies", () => {
    const violations = sources.flatMap((source) => {
      const name = packageOf(source.path);
      const declared = dependenciesOf(name);
      return source.imports
        .filter(({ specifier, target }) => target === undefined && !isNodeModule(specifier))
        .filter(({ specifier }) => !declared.includes(dependencyOf(specifier)) || !isOpen(name, specifier))
        .map(({ line, specifier }) => `${source.path}:${line}: ${name} does not declare, or may not use, ${specifier}`);
    });
    assert.equal(violations, []);
  });

  test("require every import to name an existing file with its extension", () => {
    const paths = new Set(sources.map(({ path }) => path));
    const violations = sources.flatMap((source) =>
      source.imports
        .filter(({ target }) => target !== undefined && !target.endsWith(".json") && !paths.has(target))
        .map(({ line, specifier }) => `${source.path}:${line}: ${specifier}`),
    );
    assert.equal(violations, []);
  });

  test("allow only the generator's command line to print or set an exit code", () => {
    const violations = sources
      .filter(({ path }) => path.startsWith("generator/") && !/^generator\/src\/cli(\.ts$|\/)/.test(path))
      .flatMap(({ path, text }) =>
        text
          .split("\n")
          .flatMap((line, index) =>
            /\bconsole\.|\bprocess\.(exit|exitCode|stdout|stderr)\b/.test(line)
              ? [`${path}:${index + 1}: ${line.trim()}`]
              : [],
          ),
      );
    assert.equal(violations, []);
  });

  test("allow only cli/print.ts of the generator to write to the terminal", () => {
    const writes = sources.filter(
      ({ path, text }) =>
        path.startsWith("generator/") && /\bconsole\.\w+\(|\bprocess\.(stdout|stderr)\.write\b/.test(text),
    );
    assert.equal(
      writes.map(({ path }) => path),
      ["generator/src/cli/print.ts"],
    );
  });

  // The Lease, the key for proofs, Events and questions about rights are no part of what a controller writes.
  test("allow only apply/sender of the runtime to send a controller's writes", () => {
    const others = /^runtime\/src\/(client\/|operate\/(lease-lock|event-recorder|access-review|proof-key-secret)\.ts$)/;
    const writers = sources.filter(
      ({ path, text }) =>
        path.startsWith("runtime/") &&
        !others.test(path) &&
        /[cC]lient(\(\))?\)?[?!]?\s*\.(create|update|apply|mergePatch|jsonPatch|write|delete|setScale|evict)\b/.test(
          text,
        ),
    );
    assert.equal(
      writers.map(({ path }) => path),
      ["runtime/src/apply/sender.ts"],
    );
  });

  test("allow only package-file.ts to locate files relative to its module, because bundling moves modules", () => {
    const places = sources
      .filter(({ path }) => /^(apiserver|generator)\//.test(path))
      .filter(({ text }) =>
        /import\.meta\.(url|dirname|filename)/.test(text.replaceAll("createRequire(import.meta.url)", "")),
      )
      .map(({ path }) => path);
    assert.equal(places.sort(), ["apiserver/src/package-file.ts", "generator/src/package-file.ts"]);
  });
});

suite("import cycles", (test) => {
  for (const name of packages) {
    test(`do not exist in the sources of ${name}`, () => {
      assert.equal(findCycles(sources.filter(({ path }) => path.startsWith(`${name}/`))), []);
    });
  }

  test("are reported with their full path", () => {
    const file = (path: string, ...targets: string[]): Imports => ({
      path,
      imports: targets.map((target) => ({ line: 1, specifier: target, isTypeOnly: false, target })),
    });
    assert.equal(findCycles([file("a", "b"), file("b", "c"), file("c", "b"), file("d", "a")]), ["b → c → b"]);
  });
});

function isAllowed(source: SourceFile, { specifier, target, isTypeOnly }: Import): boolean {
  const name = packageOf(source.path);
  const from = layerOf(source.path);
  const rule = layers[name][from];
  const to = target === undefined ? specifier : layerOf(target);
  if (target !== undefined && packageOf(target) !== name) return false;
  if (to === from) return true;
  if (rule === undefined) {
    // Nothing in the API server but server.ts knows of the simulation, so that it stays usable without it.
    return !(name === "apiserver" && to === "simulate" && source.path.split("/").length > 3);
  }
  if (target === undefined && !specifier.startsWith("@gen-operator/")) return true;
  return rule.values.includes(to) || (isTypeOnly && rule.types?.includes(to) === true);
}

/** The folder below src, or the file's name where it lies beside the folders. The rules of the generator are a layer across its folders. */
function layerOf(path: string): string {
  if (/^generator\/src\/.+\/rules\.ts$/.test(path)) return "rules";
  return (path.split("/")[2] ?? "").replace(/\.ts$/, "");
}

function packageOf(path: string): (typeof packages)[number] {
  return path.split("/")[0] as (typeof packages)[number];
}

function describe({ specifier, isTypeOnly }: Import): string {
  return `${isTypeOnly ? "types" : "values"} of ${specifier}`;
}

function isNodeModule(specifier: string): boolean {
  return specifier.startsWith("node:") && builtinModules.includes(specifier.slice("node:".length).split("/")[0] ?? "");
}

function dependenciesOf(name: string): string[] {
  const text = readFileSync(join(repositoryRoot, name, "package.json"), "utf8");
  const manifest = JSON.parse(text) as {
    [Section in "dependencies" | "devDependencies" | "peerDependencies"]?: object;
  };
  // What the generator only develops with is bundled.
  const bundled = name === "generator" ? manifest.devDependencies : {};
  return Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies, ...bundled });
}

function dependencyOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function isOpen(name: (typeof packages)[number], specifier: string): boolean {
  return !specifier.startsWith("@gen-operator/") || ownPackages[name].includes(specifier);
}

/** What cycles are found by. */
type Imports = Pick<SourceFile, "path" | "imports">;

/** Finds cycles among the imports that are left at run time; each is named once. */
function findCycles(sources: Imports[]): string[] {
  const targets = new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter(({ isTypeOnly }) => !isTypeOnly).flatMap(({ target }) => target ?? []),
    ]),
  );
  const finished = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: string[]): void => {
    if (trail.includes(path)) {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(" → "));
      return;
    }
    if (finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return cycles;
}
