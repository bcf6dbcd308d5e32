// What `npm run bundle` of a new project makes, alone in a folder, as in an image: no node_modules is in reach of it.
import { spawnSync } from "node:child_process";
import { cp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { startApiServer, type ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { repositoryRoot } from "../../support/repository.js";
import { writeKubeconfig } from "../../support/api/kubeconfig.js";
import { createPagesProject } from "../../support/projects/new-project.js";
import { createOidcToken, writeOidcConfig } from "../../support/api/oidc-config.js";
import { createProcessGroup } from "../../support/machine/process-group.js";
import { bundledSources } from "../../support/projects/bundled-sources.js";
import { startFlags } from "../../support/projects/start-flags.js";
import { assert, shared, suite } from "../../support/suite.js";

const LONG = { timeoutMs: 120_000 };
const KUBECONFIG_ERROR =
  /the auth-provider \\?"oidc\\?" of .* needs the package @kubernetes\/client-node, which is not installed/;

interface SourceMap {
  readonly sources: readonly string[];
}

interface BundleOptions {
  /** Dependencies of the project besides the runtime. */
  readonly dependencies?: { readonly [name: string]: string };
  /** Files that take the place of those that `init` wrote. */
  readonly files?: { readonly [path: string]: string };
}

/** Bundles a new project, and moves the bundle to where it finds no package. */
async function createBundle({ dependencies, files = {} }: BundleOptions = {}) {
  const project = await createPagesProject();
  const manifest = join(project.path, "package.json");
  const text = JSON.parse(await readFile(manifest, "utf8")) as { dependencies: object };
  await writeFile(manifest, JSON.stringify({ ...text, dependencies: { ...text.dependencies, ...dependencies } }));
  for (const [path, text] of Object.entries(files)) await writeFile(join(project.path, path), text);
  const { status, stdout, stderr } = spawnSync("npm", ["run", "bundle"], { cwd: project.path, encoding: "utf8" });
  assert.is(status, 0, stdout + stderr);
  const group = await createProcessGroup("gen-operator-bundle-");
  const folder = join(group.folder, "app");
  await cp(join(project.path, "dist/bundle"), join(folder, "dist/bundle"), { recursive: true });
  await project[Symbol.asyncDispose]();
  const kubeconfig = join(group.folder, "kubeconfig");
  const operator = join(folder, "dist/bundle/operator.mjs");
  const command = [`KUBECONFIG=${kubeconfig}`, process.execPath, ...startFlags, operator];
  const readFiles = async (extension: string): Promise<{ [file: string]: string }> => {
    const files = (await readdir(join(folder, "dist/bundle"))).filter((file) => file.endsWith(extension));
    const read = async (file: string) => [file, await readFile(join(folder, "dist/bundle", file), "utf8")] as const;
    return Object.fromEntries(await Promise.all(files.map(read)));
  };
  return {
    kubeconfig,
    /** The program: its files by their names. */
    readTexts: () => readFiles(".mjs"),
    /** The sources of each file. */
    async readSources(): Promise<{ [file: string]: readonly string[] }> {
      return mapValues(await readFiles(".mjs"), bundledSources);
    },
    /** The sources that each map names. */
    async readMaps(): Promise<{ [file: string]: readonly string[] }> {
      return mapValues(await readFiles(".map"), (text) => (JSON.parse(text) as SourceMap).sources);
    },
    /** The text of the file that starts. */
    readProgram: () => readFile(operator, "utf8"),
    /** The licences of the packages in it. */
    readNotices: () => readFile(join(folder, "dist/bundle/THIRD-PARTY-NOTICES.txt"), "utf8"),
    /** Bytes of the file that starts, and of its map. */
    readSizes: async () => ({ program: (await stat(operator)).size, map: (await stat(`${operator}.map`)).size }),
    run: (...flags: string[]) => spawnSync("env", [...command, ...flags], { encoding: "utf8", timeout: 60_000 }),
    start: (...flags: string[]) => group.start("operator", "env", [...command, ...flags]),
    readLog: () => readFile(join(group.folder, "operator.log"), "utf8"),
    [Symbol.asyncDispose]: () => group.close(),
  };
}

function mapValues<From, To>(values: { readonly [name: string]: From }, change: (value: From) => To) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}

async function startServer(token: string) {
  const server = await startApiServer({ tls: false, token });
  const crd = await readFile(join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml"), "utf8");
  const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await apiRequestOrThrow(server, path, { body: parse(crd) as object });
  return server;
}

function createPage(server: ApiServer) {
  const spec = { html: "<h1>hello</h1>", host: "home.example.com" };
  const body = { apiVersion: "example.com/v1", kind: "WebPage", metadata: { name: "home" }, spec };
  return apiRequestOrThrow(server, "POST /apis/example.com/v1/namespaces/default/webpages", { body });
}

const TRACED_MAIN = `
import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { runOperator } from "@gen-operator/runtime";
import { controllers } from "./generated/index.js";

const exporter = {
  export(spans: readonly { readonly name: string }[], done: (result: { code: 0 }) => void) {
    for (const { name } of spans) console.error("span " + name);
    done({ code: 0 });
  },
  shutdown: async () => {},
};
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
await runOperator(controllers);
`;

/** The bundle of a project as `init` makes it. */
const plainBundle = shared(createBundle);

suite("bundle of a new project", (test) => {
  test.thorough(
    "excludes client-node and the CEL evaluator, and loads optional modules lazily",
    async () => {
      const bundle = await plainBundle();
      const sources = await bundle.readSources();
      const all = Object.values(sources).flat();
      assert.ok(all.some((path) => path.includes("/undici/")) && all.includes("src/main.ts"));
      assert.equal(
        all.filter((path) => /\/@(kubernetes\/client-node|bufbuild)\//.test(path)),
        [],
      );
      const lazy = /\/(yaml|js-yaml)\/|\/runtime\/dist\/(client\/connect\/kubeconfig|operate\/debug\/cpu-profile)\.js$/;
      assert.ok(all.filter((path) => lazy.test(path)).length > 4);
      assert.equal(
        sources["operator.mjs"]!.filter((path) => lazy.test(path)),
        [],
      );
      const { status, stdout, stderr } = bundle.run("--help");
      assert.is(status, 0, stderr);
      assert.match(stdout, "--leader-elect");
    },
    LONG,
  );

  test.thorough(
    "has a source map only for the project's own code",
    async () => {
      const bundle = await plainBundle();
      const maps = await bundle.readMaps();
      assert.equal(Object.keys(maps), ["operator.mjs.map"]);
      assert.ok(maps["operator.mjs.map"]!.includes("../../src/main.ts"));
      const mapped = Object.entries(await bundle.readTexts()).filter(([, text]) =>
        text.includes("\n//# sourceMappingURL="),
      );
      assert.equal(
        mapped.map(([file]) => file),
        ["operator.mjs"],
      );
    },
    LONG,
  );

  test.thorough(
    "contains only ASCII outside of third-party packages",
    async () => {
      const bundle = await plainBundle();
      const texts = await bundle.readTexts();
      const wide = Object.entries(texts).flatMap(([file, text]) =>
        text.split("\n").flatMap((line) => (/[^\x00-\x7f]/.test(line) ? `${file}: ${line.slice(0, 100)}` : [])),
      );
      assert.equal(
        wide.filter((line) => !line.includes("formdata-polyfill")),
        [],
      );
    },
    LONG,
  );

  test.thorough(
    "lists the license of each bundled package once, and of no other package",
    async () => {
      const bundle = await plainBundle();
      const text = await bundle.readNotices();
      const titles = [...text.matchAll(/^(\S+) \d+\.\d+\.\d+\S* \(([^)]+)\)$/gm)].map(
        ([, name, license]) => `${name} ${license}`,
      );
      assert.equal(titles, [...new Set(titles)].sort());
      const packages = Object.values(await bundle.readSources()).flat();
      for (const title of ["@gen-operator/runtime Apache-2.0", "undici MIT", "yaml ISC"])
        assert.ok(titles.includes(title), `${title}: ${titles.join()}`);
      assert.ok(packages.some((path) => path.includes("/undici/")));
      assert.not.ok(titles.some((title) => /^(pages|esbuild|typescript|@kubernetes\/client-node) /.test(title)));
      assert.match(text, /Copyright \(c\) Matteo Collina and Undici contributors/);
      assert.match(text, /Apache License\s+Version 2\.0/);
    },
    LONG,
  );

  test.thorough(
    "contains only Latin-1 characters in the program",
    async () => {
      const bundle = await plainBundle();
      assert.equal((await bundle.readProgram()).match(/[^\0-\xff]/g), null);
    },
    LONG,
  );

  test.thorough(
    "has a source map smaller than a tenth of the program",
    async () => {
      const bundle = await plainBundle();
      const { program, map } = await bundle.readSizes();
      assert.ok(map > 0 && map < program / 10, `${map} of ${program} bytes`);
    },
    LONG,
  );

  test.thorough(
    "rejects an auth-provider in the kubeconfig without client-node",
    async () => {
      const token = createOidcToken();
      await using server = await startServer(token);
      const bundle = await plainBundle();
      await writeOidcConfig(bundle.kubeconfig, server.url, token);
      bundle.start();
      await waitFor("the refusal", async () => KUBECONFIG_ERROR.test(await bundle.readLog()));
    },
    LONG,
  );

  test.thorough(
    "supports an auth-provider if client-node is a dependency",
    async () => {
      const token = createOidcToken();
      await using server = await startServer(token);
      await using bundle = await createBundle({ dependencies: { "@kubernetes/client-node": "^2.0.1" } });
      await writeOidcConfig(bundle.kubeconfig, server.url, token);
      bundle.start();
      await createPage(server);
      const path = "GET /api/v1/namespaces/default/configmaps/home";
      await waitFor("the config map", () => apiRequestOrThrow(server, path).catch(() => undefined), {
        timeoutMs: 30_000,
      });
    },
    LONG,
  );

  test.thorough(
    "reads a settings file, logs stacks with TypeScript positions, and reports missing pino-pretty",
    async () => {
      const token = createOidcToken();
      await using server = await startServer(token);
      const failing = 'export function desired(): never {\n  throw new Error("not today");\n}\n';
      await using bundle = await createBundle({ files: { "src/webpage/dependents/config-map.ts": failing } });
      await writeKubeconfig(bundle.kubeconfig, server);
      const settings = join(bundle.kubeconfig, "../settings.yaml");
      await writeFile(settings, "logFormat: pretty\ncontrollers: { webpage: { retry: { maxRetries: 1 } } }\n");
      bundle.start(`--config=${settings}`);
      await createPage(server);
      const lines = async () => (await bundle.readLog()).split("\n").filter((line) => line !== "");
      const failed = await waitFor(
        "the failure",
        async () => (await lines()).find((line) => line.includes('"stack"')),
        {
          timeoutMs: 30_000,
        },
      );
      const { stack } = JSON.parse(failed) as { stack: string };
      assert.match(stack, /not today\n +at .*\/app\/src\/webpage\/dependents\/config-map\.ts:2:9\)/);
      assert.match(stack, /\n +at Target\.\w+ \(.*\/app\/dist\/bundle\/operator\.mjs:\d{3,}:\d+\)/);
      assert.match((await lines())[0]!, "format pretty needs the package pino-pretty");
    },
    LONG,
  );

  test.thorough(
    "exports spans to the tracer provider of the program",
    async () => {
      await using server = await startServer("secret");
      const dependencies = { "@opentelemetry/api": "^1.9.1", "@opentelemetry/sdk-trace-base": "^2.12.1" };
      await using bundle = await createBundle({ dependencies, files: { "src/main.ts": TRACED_MAIN } });
      await writeKubeconfig(bundle.kubeconfig, server);
      bundle.start();
      await createPage(server);
      await waitFor("the spans", async () =>
        /^span dependent configMap[^]*^span reconcile webpage$/m.test(await bundle.readLog()),
      );
    },
    LONG,
  );
});
