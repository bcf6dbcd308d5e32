import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { GIT_VERSION } from "#apiserver/discovery/groups.js";
import { kubernetesVersion } from "../support/machine/binaries.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { readSources } from "./source-files.js";

suite("repository", (test) => {
  test("imports uvu only in the suite wrapper and its fixtures", () => {
    const importers = readSources("test")
      .filter(({ text }) => text.includes("uvu"))
      .filter(({ imports }) => imports.some(({ specifier }) => /^uvu(\/|$)/.test(specifier)));
    assert.equal(
      importers.map(({ path }) => path),
      ["test/support/assert.ts", "test/support/suite.ts", "test/unit/support/fixtures/forgets-to-run.fixture.ts"],
    );
  });

  test("imports fast-check only in the module that configures it", () => {
    const importers = ["test", "bench", "demo"]
      .flatMap((folder) => readSources(folder))
      .filter(({ text }) => text.includes("fast-check"))
      .filter(({ imports }) => imports.some(({ specifier }) => specifier === "fast-check"));
    assert.equal(
      importers.map(({ path }) => path),
      ["test/support/fast-check.ts"],
    );
  });

  test("ships the same Kubernetes data in the generator and the API server", () => {
    const [names, others] = ["apiserver/data", "generator/data"].map((folder) =>
      readdirSync(join(repositoryRoot, folder)).filter((name) => /^kubernetes-.*\.json$/.test(name)),
    );
    const shared = names?.filter((name) => others?.includes(name)) ?? [];
    assert.ok(shared.length >= 2, "schemas and discovery");
    for (const name of shared) {
      const [ours, theirs] = ["apiserver", "generator"].map((folder) =>
        readFileSync(join(repositoryRoot, folder, "data", name)),
      );
      assert.ok(theirs !== undefined && ours?.equals(theirs), `${name} differs`);
    }
  });

  test("uses one Kubernetes version in the data, the code that reads it, and the control plane", () => {
    const [version = "", minor = ""] = /^v(\d+\.\d+)\.\d+$/.exec(kubernetesVersion()) ?? [];
    const versionsIn = (texts: readonly string[]) =>
      new Set(texts.flatMap((text) => [...text.matchAll(/\bkubernetes-(\d+\.\d+)-/g)].map(([, found]) => found)));
    for (const folder of ["apiserver", "generator"]) {
      assert.equal(versionsIn(readdirSync(join(repositoryRoot, folder, "data"))), new Set([minor]), `${folder}/data`);
      const code = readSources(`${folder}/src`).map(({ text }) => text);
      assert.equal(versionsIn(code), new Set([minor]), `${folder}/src`);
    }
    const goMod = readFileSync(join(repositoryRoot, "test/control-plane/go.mod"), "utf8");
    const staging = [...goMod.matchAll(/^\tk8s\.io\/(?:api|apimachinery|client-go) v0\.(\S+)/gm)];
    assert.equal(new Set(staging.map(([, found]) => `v1.${found}`)), new Set([version]));
    assert.is(GIT_VERSION, version);
    const kinds = readFileSync(join(repositoryRoot, "kinds/README.md"), "utf8");
    assert.match(kinds, `The built-in kinds of Kubernetes ${minor} as classes.`);
  });

  test("names no registry in package-lock.json", () => {
    const lock = JSON.parse(readFileSync(join(repositoryRoot, "package-lock.json"), "utf8")) as {
      packages: Record<string, { resolved?: string }>;
    };
    const hosted = Object.entries(lock.packages).filter(([, { resolved }]) => /^\w+:\/\//.test(resolved ?? ""));
    assert.equal(
      hosted.map(([name, { resolved }]) => `${name}: ${resolved}`),
      [],
    );
  });

  test("runs in a step of .ci/run what npm test leaves out", () => {
    const text = readFileSync(join(repositoryRoot, ".ci/run"), "utf8").replaceAll("\\\n", " ");
    // Random input has a step and a variable of its own.
    const runIn = (variable: RegExp) => {
      const steps = text.split("\n").filter((line) => variable.test(line));
      const words = steps.join(" ").split(/\s+/);
      const paths = words.flatMap((word) => {
        const [, before = "", names = word, after = ""] = /^(.*)\{(.*)\}(.*)$/.exec(word) ?? [];
        return names.split(",").map((name) => `test/${before}${name}${after}`.replace(/\.js$/, ".ts"));
      });
      return ({ path }: { path: string }) => paths.some((each) => path === each || path.startsWith(`${each}/`));
    };
    const tests = readSources("test").filter(({ path }) => path.endsWith(".test.ts"));
    const added = tests.filter(({ text }) => /\.thorough\b/.test(text));
    // In these a test itself does more.
    const deeper = tests.filter(({ text }) => /ONLY_THOROUGH|isThorough|\bruns\(|chosenCompilers/.test(text));
    assert.ok(added.length > 20 && deeper.length > 20);
    const missing = [
      ...added.filter((each) => !runIn(/TEST_(THOROUGH|FUZZ_SECONDS)=/)(each)),
      ...deeper.filter((each) => !runIn(/TEST_(THOROUGH=1|FUZZ_SECONDS)/)(each)),
    ];
    assert.equal([...new Set(missing.map(({ path }) => path))], ["test/architecture/repository.test.ts"]);
    const list = readFileSync(join(repositoryRoot, "test/left-to-ci.txt"), "utf8");
    const left = list.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const runsAll = runIn(/^ *step (?!.*TEST_THOROUGH=added)/);
    const isNamed = (name: string, path: string) => path === `test/${name}.test.ts` || path.startsWith(`test/${name}/`);
    assert.equal(
      left.filter((name) => {
        const files = tests.filter(({ path }) => isNamed(name, path));
        return files.length === 0 || !files.every(runsAll);
      }),
      [],
      "left to no step",
    );
  });

  test("reads every documented environment variable in the runtime", () => {
    const documented = [
      ...readFileSync(join(repositoryRoot, "runtime/README.md"), "utf8").matchAll(/^\| `([A-Z_]+)`/gm),
    ];
    assert.ok(documented.length >= 3);
    const sources = readSources("runtime/src");
    const unread = documented.filter(([, name]) => !sources.some(({ text }) => text.includes(`env["${name!}"]`)));
    assert.equal(
      unread.map(([, name]) => name),
      [],
    );
  });

  test("gives all packages one version, and pins their dependencies on each other to it", () => {
    const manifests = ["apiserver", "generator", "kinds", "runtime", "schema", "templates"].map(
      (folder) =>
        JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8")) as {
          name: string;
          version: string;
          dependencies?: Record<string, string>;
          peerDependencies?: Record<string, string>;
        },
    );
    const [first] = manifests;
    for (const { name, version, dependencies, peerDependencies } of manifests) {
      assert.is(version, first?.version, name);
      for (const [dependency, range] of Object.entries({ ...dependencies, ...peerDependencies }))
        if (dependency.startsWith("@gen-operator/")) assert.is(range, version, `${name} → ${dependency}`);
    }
  });

  test("gives new projects the tool versions and overrides that are tested here", () => {
    const read = (path: string) =>
      JSON.parse(readFileSync(join(repositoryRoot, path), "utf8")) as {
        devDependencies: { readonly [name: string]: string };
        overrides: { readonly [name: string]: string };
      };
    const [own, template] = [read("package.json"), read("templates/project/package.json")];
    const tools = Object.entries(template.devDependencies).filter(([, range]) => !range.includes("__version__"));
    assert.ok(tools.some(([name]) => name === "@kubernetes/client-node"));
    const versionOf = (range: string | undefined) => range?.replace("^", "");
    for (const [name, range] of tools) assert.is(versionOf(range), versionOf(own.devDependencies[name]), name);
    assert.equal(template.overrides, own.overrides);
  });
});
