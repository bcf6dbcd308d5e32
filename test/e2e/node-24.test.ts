// What a user of Node 24 does, from `npm ci` on; containers run it, while the development machine may not.
import { existsSync } from "node:fs";
import { cp, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parse } from "yaml";
import { assert, shared, suite } from "../support/suite.js";
import { runOrThrow } from "./command.js";
import { findNode24 } from "./node-24.js";
import { packPackages } from "./packages.js";
import { convergeOnePage } from "./running-operator.js";
import { createUserProject, installTools } from "./user-project.js";

interface Workflow {
  readonly jobs: {
    readonly [job: string]: {
      readonly steps: readonly { uses?: string; run?: string; with?: { readonly [input: string]: unknown } }[];
    };
  };
}

const LONG = { timeoutMs: 400_000 };

// The project's imports name what is compiled, ".js"; erasing types leaves them as they are.
const IMPORT_SOURCES = `
import { registerHooks } from "node:module";
registerHooks({
  resolve: (specifier, context, next) =>
    next(context.parentURL?.endsWith(".ts") && specifier.startsWith(".") ? specifier.replace(/\\.js$/, ".ts") : specifier, context),
});
`;

const DEVELOPMENT = [
  "typescript",
  "prettier",
  "gen-operator",
  "@gen-operator/apiserver",
  "@gen-operator/templates",
  "@kubernetes/client-node",
];

suite("Node 24", (test) => {
  const packages = shared(async () => packPackages(await findNode24()));
  let created: ReturnType<typeof createUserProject> | undefined;
  const project = () => (created ??= createProject());
  const createProject = async () =>
    createUserProject(await packages(), {
      name: "webpage-operator",
      crd: "fixtures/samples/webpage/crds/webpages.example.com.yaml",
      tools: await installTools(await packages()),
    });

  test(
    "installs and packs the repository, and creates a project that passes its test",
    async () => {
      const { runOrThrow } = await project();
      assert.match(await runOrThrow("node", "--version"), /^v24\./);
      assert.match(await runOrThrow("npm", "test"), /^(# |ℹ )pass 1$/m);
      await runOrThrow("npx", "gen-operator", "generate", "--check");
    },
    LONG,
  );

  test(
    "passes every step of the CI workflow in a checkout of a new project",
    async () => {
      const { folder } = await project();
      const { node } = await packages();
      // Beside the project, so that the archives in its lock file are found.
      const checkout = join(folder, "../checkout");
      const isTracked = (path: string) => !/^(node_modules|dist)(\/|$)/.test(relative(folder, path));
      await cp(folder, checkout, { recursive: true, filter: isTracked });
      const { jobs } = parse(await readFile(join(checkout, ".github/workflows/ci.yaml"), "utf8")) as Workflow;
      const steps = Object.values(jobs).flatMap((job) => job.steps);
      const setup = steps.find(({ uses }) => uses?.startsWith("actions/setup-node@"));
      assert.is(setup?.with?.["node-version"], 24);
      const commands = steps.flatMap(({ run }) => run ?? []);
      assert.ok(commands.length >= 5);
      const env = { CI: "true", npm_config_prefer_offline: "true" };
      for (const command of commands) await runOrThrow(["bash", "-e", "-c", command], { cwd: checkout, node, env });
      assert.ok(existsSync(join(checkout, "dist/bundle/operator.mjs")));
    },
    LONG,
  );

  test(
    "runs the compiled operator against the API server",
    async () => {
      const { folder } = await project();
      await convergeOnePage(folder, { node: (await packages()).node });
    },
    LONG,
  );

  test(
    "runs the compiled operator with production dependencies only",
    async () => {
      const { folder } = await project();
      const { node } = await packages();
      // Beside the project, so that the archives in its lock file are found.
      const production = join(folder, "../production");
      for (const path of ["package.json", "package-lock.json", "dist/src"])
        await cp(join(folder, path), join(production, path), { recursive: true });
      await runOrThrow(["npm", "ci", "--omit=dev", "--omit=optional", "--prefer-offline"], { cwd: production, node });
      assert.equal(
        DEVELOPMENT.filter((name) => existsSync(join(production, "node_modules", name))),
        [],
      );
      await convergeOnePage(folder, { node, operatorFolder: production });
    },
    LONG,
  );

  test(
    "runs the TypeScript sources with type stripping",
    async () => {
      const { runOrThrow, write } = await project();
      await write("import-sources.mjs", IMPORT_SOURCES);
      const output = await runOrThrow("node", "--import", "./import-sources.mjs", "--test", "test/webpage.test.ts");
      assert.match(output, /^(# |ℹ )pass 1$/m);
    },
    LONG,
  );
});
