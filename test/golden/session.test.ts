// A new user's day: every command in order in one folder, with the mistakes that a newcomer makes, and all that is to be seen.
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { COMMANDS } from "#generator/cli.js";
import { runCommand } from "../support/command-line.js";
import { checkGolden } from "../support/projects/golden-file.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const crdFile = join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml");
/** Longer outputs are kept by their first lines; they have goldens of their own. */
const MOST_LINES = 24;

/** What the user does next: a command in a folder below the home, or a change of a file there. */
type Step =
  | { readonly in: string; readonly run: readonly string[]; readonly fails?: number }
  | { readonly in: string; readonly edit: string; readonly from: string; readonly to: string };

const at = (folder: string) => ({
  run: (...args: string[]): Step => ({ in: folder, run: args }),
  fails: (code: number, ...args: string[]): Step => ({ in: folder, run: args, fails: code }),
  edit: (file: string, from: string, to: string): Step => ({ in: folder, edit: file, from, to }),
});
const home = at(".");
const site = at("site");

const DAY: readonly Step[] = [
  home.fails(2),
  home.fails(2, "generat"),
  home.fails(1, "generate"),
  home.fails(2, "init"),
  home.fails(2, "init", "site"),
  home.fails(2, "init", "site", "--crd"),
  home.fails(1, "init", "site", "--crd", "webpage.yaml"),
  home.fails(2, "init", "pages", "--example", "webpages"),
  home.run("init", "pages", "--example", "webpage"),
  home.run("init", "site", "--crd", "webpages.yaml"),
  home.run("init", "site", "--crd", "webpages.yaml"),
  site.run("generate"),
  site.run("graph"),

  site.fails(2, "add", "dependent", "web", "--resource", "Deployment"),
  site.fails(1, "add", "dependent", "web", "--resource", "apps/v1/Deploymnt"),
  site.fails(1, "add", "dependent", "web", "--resource", "apps/v1/Deployment", "--depends-on", "configmap"),
  site.run("add", "dependent", "web", "--resource", "apps/v1/Deployment", "--depends-on", "configMap", "--ready"),
  site.run("add", "dependent", "web", "--resource", "apps/v1/Deployment", "--depends-on", "configMap", "--ready"),
  site.fails(1, "add", "dependent", "service", "--resource", "v1/Service", "--when", "primary.spec.exposd === true"),
  site.run(
    ...["add", "dependent", "service", "--resource", "v1/Service"],
    ...["--depends-on", "web", "--when", "primary.spec.exposed === true"],
  ),
  site.run("add", "external", "domain", "--per-primary-poll", "1m", "--read-only"),
  site.run("add", "source", "pods", "--resource", "v1/Pod", "--label", "example.com/page"),
  site.run("add", "controller", "audit", "--primary", "example.com/v1/WebPage"),
  site.fails(1, "add", "dependent", "log", "--resource", "v1/ConfigMap"),

  site.edit("workflow.yaml", "dependsOn: [web]", "dependsOn: [web, databse]"),
  site.fails(1, "generate"),
  site.fails(2, "explain", "unknown-dependant"),
  site.run("explain", "unknown-dependent"),
  site.edit("workflow.yaml", "dependsOn: [web, databse]", "dependOn: [web]"),
  site.fails(1, "generate", "--format", "github"),
  site.edit("workflow.yaml", "dependOn: [web]", "dependsOn: [web, configMap]"),
  site.fails(1, "generate", "--check"),
  site.run("generate", "--dry-run"),
  site.fails(2, "generate", "--check", "--watch"),
  site.run("generate"),
  site.run("generate", "--check", "--format", "json"),

  site.edit("workflow.yaml", "    web:\n", "    deployment:\n"),
  site.edit("workflow.yaml", "dependsOn: [web, configMap]", "dependsOn: [deployment, configMap]"),
  site.fails(1, "generate"),
  site.edit("workflow.yaml", "  dependents:\n", "  moved:\n    - { from: web, to: deployment }\n  dependents:\n"),
  site.run("generate"),
  site.run("graph", "--controller", "webpage"),
  site.run("graph", "--controller", "webpage", "--output", "mermaid"),
  site.run("graph", "--controller", "webpage", "--output", "dot"),
  site.run("graph", "--controller", "webpage", "--output", "svg"),
  site.fails(1, "graph", "--output", "svg"),
  site.run("suggest", "caches", "--dry-run"),
  site.fails(2, "diff", "--against", "v1.0.0"),
  site.run("diff", "--against", "."),
  site.fails(1, "schema", "WebPag"),
  site.run("schema", "WebPage"),
  site.fails(2, "types", "../webpages.yaml"),
  site.run("types", "../webpages.yaml", "--out", "../types"),
  site.run("doctor"),
  site.fails(2, "completion", "tcsh"),
  site.run("completion", "fish"),
];

suite("session of a new user", (test) => {
  test.thorough(
    "prints the recorded output, command by command",
    async () => {
      await using folder = await createTemporaryFolder();
      await cp(crdFile, join(folder.path, "webpages.yaml"));
      const before = { HOME: process.env["HOME"], KUBECONFIG: process.env["KUBECONFIG"] };
      process.env["HOME"] = folder.path;
      delete process.env["KUBECONFIG"];
      const seen: string[] = [];
      const outcomes: unknown[] = [];
      try {
        for (const step of DAY) {
          if ("run" in step && step.run[0] === "doctor") await install(join(folder.path, "site"));
          const { text, isExpected } = await take(step, folder.path);
          seen.push(text);
          if (!isExpected) outcomes.push(text);
        }
      } finally {
        for (const [name, value] of Object.entries(before))
          if (value === undefined) delete process.env[name];
          else process.env[name] = value;
      }
      assert.equal(outcomes, []);
      checkGolden(join(repositoryRoot, "fixtures/commands/session.txt"), seen.join("\n"));
    },
    { timeoutMs: 180_000 },
  );

  test("uses every command except dev", () => {
    const used = new Set(DAY.flatMap((step) => ("run" in step ? step.run.slice(0, 1) : [])));
    assert.equal(
      [...COMMANDS.keys()].filter((name) => !used.has(name)),
      ["dev"],
    );
  });
});

/** Does what `npm install` does, but for the lock file. */
async function install(project: string): Promise<void> {
  await mkdir(join(project, "node_modules/@gen-operator"), { recursive: true });
  for (const name of ["runtime", "kinds", "apiserver"]
    .map((each) => `@gen-operator/${each}`)
    .concat("gen-operator", "typescript"))
    await symlink(join(repositoryRoot, "node_modules", name), join(project, "node_modules", name));
}

async function take(step: Step, folder: string): Promise<{ text: string; isExpected: boolean }> {
  const prompt = step.in === "." ? "~" : `~/${step.in}`;
  if ("edit" in step) {
    const file = join(folder, step.in, step.edit);
    const before = await readFile(file, "utf8");
    assert.ok(before.includes(step.from), `${step.edit} has no ${step.from}`);
    await writeFile(file, before.replace(step.from, step.to));
    return {
      text: `${prompt} # ${step.edit}: ${JSON.stringify(step.from)} → ${JSON.stringify(step.to)}\n`,
      isExpected: true,
    };
  }
  const { status, stdout, stderr } = await runCommand(join(folder, step.in), ...step.run);
  const lines = normalise(stdout + stderr, folder).split("\n");
  const shown = lines.length <= MOST_LINES + 1 ? lines : [...lines.slice(0, MOST_LINES), "…", ""];
  const words = step.run.map((word) => (/[^\w./:-]/.test(word) ? `'${word}'` : word));
  const code = status === 0 ? "" : `[exit code ${status}]\n`;
  return {
    text: `${prompt} $ ${["gen-operator", ...words].join(" ")}\n${shown.join("\n")}${code}`,
    isExpected: status === (step.fails ?? 0),
  };
}

/** Nothing of this machine, of the day or of a version of somebody else's; nor how many files stay as they are, which is no news. */
function normalise(text: string, folder: string): string {
  return text
    .replaceAll(folder, "~")
    .replaceAll(/\d+ (unchanged|kept)/g, "N $1")
    .replaceAll(process.versions.node, "NODE_VERSION")
    .replace(/(TypeScript: )[\d.]+/, "$1TYPESCRIPT_VERSION");
}
