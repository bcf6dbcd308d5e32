import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { kubernetesVersion } from "../support/machine/binaries.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { readSources } from "./source-files.js";

suite("repository", (test) => {
  test("only the wrapper and its fixtures import uvu, which exits 0 when hooks throw", () => {
    const importers = readSources("test")
      .filter(({ text }) => text.includes("uvu"))
      .filter(({ imports }) => imports.some(({ specifier }) => /^uvu(\/|$)/.test(specifier)));
    assert.equal(
      importers.map(({ path }) => path),
      ["test/support/assert.ts", "test/support/suite.ts", "test/unit/support/fixtures/forgets-to-run.fixture.ts"],
    );
  });

  test("only the module that configures it imports fast-check, so that the other tests do not load it", () => {
    const importers = ["test", "bench", "demo"]
      .flatMap((folder) => readSources(folder))
      .filter(({ text }) => text.includes("fast-check"))
      .filter(({ imports }) => imports.some(({ specifier }) => specifier === "fast-check"));
    assert.equal(
      importers.map(({ path }) => path),
      ["test/support/fast-check.ts"],
    );
  });

  test("the generator and the API server ship the same data of Kubernetes", () => {
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

  test("the data, the control plane and the file names speak of one version of Kubernetes", () => {
    const [, minor] = /^v(\d+\.\d+)\./.exec(kubernetesVersion()) ?? [];
    assert.ok(existsSync(join(repositoryRoot, `apiserver/data/kubernetes-${minor}-schemas.json`)));
  });

  test("the lock file names no registry, so that any registry can be used", () => {
    const lock = JSON.parse(readFileSync(join(repositoryRoot, "package-lock.json"), "utf8")) as {
      packages: Record<string, { resolved?: string }>;
    };
    const hosted = Object.entries(lock.packages).filter(([, { resolved }]) => /^\w+:\/\//.test(resolved ?? ""));
    assert.equal(
      hosted.map(([name, { resolved }]) => `${name}: ${resolved}`),
      [],
    );
  });

  test("what npm test leaves to a thorough run is in a step of .ci/run", () => {
    const text = readFileSync(join(repositoryRoot, ".ci/run"), "utf8").replaceAll("\\\n", " ");
    // Random input has a step and a variable of its own.
    const steps = text.split("\n").filter((line) => /TEST_(THOROUGH|FUZZ_SECONDS)=/.test(line));
    const words = steps
      .join(" ")
      .split(/\s+/)
      .flatMap((word) => {
        const [, before = "", names = word, after = ""] = /^(.*)\{(.*)\}(.*)$/.exec(word) ?? [];
        return names.split(",").map((name) => `test/${before}${name}${after}`.replace(/\.js$/, ".ts"));
      });
    const thorough = readSources("test").filter(({ path, text }) => {
      return path.endsWith(".test.ts") && /\.thorough\b|ONLY_THOROUGH|isThorough|\bruns\(|chosenCompilers/.test(text);
    });
    assert.ok(thorough.length > 20);
    assert.equal(
      thorough
        .map(({ path }) => path)
        .filter((path) => !words.some((word) => path === word || path.startsWith(`${word}/`))),
      ["test/architecture/repository.test.ts"],
    );
  });

  test("every variable of the environment that is documented is read from the environment", () => {
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

  test("the packages have one version, and depend on each other at exactly that", () => {
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

  test("a new project gets the tools that are tested here, in the same versions", () => {
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
