import { spawnSync } from "node:child_process";
import { chmod, cp, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { COMPLETION_FLAG, SHELLS } from "#generator/cli/completion-scripts.js";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const program = join(repositoryRoot, "generator/bin/gen-operator.js");
const SAMPLES = join(repositoryRoot, "fixtures/samples");

/** How each shell is asked for the candidates of an unfinished command line, without a terminal. */
const ASK: Record<(typeof SHELLS)[number], (words: readonly string[]) => string[]> = {
  bash: (words) => [
    "--norc",
    "-c",
    `eval "$("$PROGRAM" completion bash)"; COMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${words.length - 1}; _gen_operator; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  // Without its line editor zsh has no completion: what the script would offer is printed in place of it.
  zsh: (words) => [
    "-f",
    "-c",
    `compdef() { :; }; _files() { :; }; _describe() { print -l -- "\${candidates[@]}"; }; eval "$("$PROGRAM" completion zsh)"; words=(${words.map((word) => `"${word}"`).join(" ")}); CURRENT=${words.length}; _gen_operator`,
  ],
  fish: (words) => ["--no-config", "-c", `$PROGRAM completion fish | source; complete -C "${words.join(" ")}"`],
};

const CASES: [words: string[], candidate: string, folder?: string][] = [
  [["gen-operator", "ge"], "generate"],
  [["gen-operator", "generate", "--dr"], "--dry-run"],
  [["gen-operator", "generate", "--format", "j"], "json"],
  [["gen-operator", "completion", "f"], "fish"],
  [["gen-operator", "explain", "conditional"], "conditional-dependency"],
  [["gen-operator", "add", "dependent", "web", "--resource", "apps/v1/D"], "apps/v1/Deployment"],
  [["npx", "gen-operator", "ge"], "generate"],
  [["npx", "gen-operator", "ge"], "generate", "src/webpage"],
  [["npx", "--no", "gen-operator", "add", "dependent", "web", "--depends-on", "conf"], "configMap"],
];

suite("completion", (test) => {
  for (const shell of SHELLS) {
    const title = `${shell} completes commands, options and values`;
    if (spawnSync(shell, ["--version"]).error !== undefined) {
      test.skip(title, `there is no ${shell}`);
      continue;
    }
    const declare = shell === "bash" ? test : test.thorough;
    declare(
      title,
      async () => {
        await using folder = await createTemporaryFolder();
        await chmod(program, 0o755);
        // Those who use npx have the program in their project alone.
        const bin = { "gen-operator": join(folder.path, "bin"), npx: join(folder.path, "project/node_modules/.bin") };
        const project = join(folder.path, "project");
        await cp(join(SAMPLES, "webpage"), project, { recursive: true });
        for (const each of Object.values(bin)) {
          await mkdir(each, { recursive: true });
          await symlink(program, join(each, "gen-operator"));
        }
        for (const [words, candidate, subfolder = ""] of CASES) {
          const path = process.env["PATH"] ?? "";
          const env = {
            ...process.env,
            HOME: folder.path,
            XDG_CONFIG_HOME: folder.path,
            PROGRAM: program,
            PATH: words[0] === "npx" ? path : `${bin["gen-operator"]}${delimiter}${path}`,
          };
          const options = { cwd: join(project, subfolder), env, encoding: "utf8" } as const;
          const { stdout, stderr } = spawnSync(shell, ASK[shell](words), options);
          const candidates = stdout.split("\n").map((line) => line.split(/[\t:]/)[0]?.trim());
          assert.is(candidates.includes(candidate), true, `${words.join(" ")}: ${stdout}${stderr}`);
        }
      },
      { timeoutMs: 60_000 },
    );
  }
});

suite("completion of values", (test) => {
  const complete = (folder: string, ...words: string[]) =>
    runCommand(folder, COMPLETION_FLAG, "gen-operator", ...words);
  const valuesOf = async (folder: string, ...words: string[]) => {
    const { status, stdout, stderr } = await complete(folder, ...words);
    assert.equal([status, stderr], [0, ""], words.join(" "));
    return stdout.split("\n").filter((line) => line !== "");
  };
  const webpage = join(SAMPLES, "webpage");
  const external = join(SAMPLES, "external");
  const dependent = ["add", "dependent", "web"];
  const cases: [title: string, folder: string, words: string[], expected: string[]][] = [
    ["fields of explain", webpage, ["explain", "onImm"], ["onImmutable"]],
    ["rules of explain", webpage, ["explain", "condition-f"], ["condition-field"]],
    ["kinds of Kubernetes", webpage, [...dependent, "--resource", "apps/v1/De"], ["apps/v1/Deployment"]],
    ["kinds of crds/", webpage, [...dependent, "--resource", "example"], ["example.com/v1/WebPage"]],
    ["no kind that cannot be watched for a dependent", webpage, [...dependent, "--resource", "v1/Bind"], []],
    ["kinds that cannot be watched for schema", webpage, ["schema", "v1/Bind"], ["v1/Binding"]],
    ["values after =", webpage, [...dependent, "--resource=v1/Conf"], ["--resource=v1/ConfigMap"]],
    ["values after = as bash splits them", webpage, [...dependent, "--resource", "=", "v1/Conf"], ["v1/ConfigMap"]],
    ["dependents", webpage, [...dependent, "--depends-on", "s"], ["service"]],
    ["dependents that are not named yet", webpage, [...dependent, "--depends-on", "service", "s"], []],
    ["dependents of the controller", external, [...dependent, "--controller", "zone", "--depends-on", "configM"], []],
    ["values of options in camelCase", webpage, [...dependent, "--dependsOn", "s"], ["service"]],
    ["controllers", external, ["graph", "--controller", ""], ["tenant", "zone"]],
    [
      "values of the project that --project names",
      SAMPLES,
      [...dependent, "--project", "webpage", "--depends-on", "s"],
      ["service"],
    ],
    ["primaries of a controller", webpage, ["add", "controller", "two", "--primary", "ex"], ["example.com/v1/WebPage"]],
  ];
  for (const [title, folder, words, expected] of cases)
    test(`completes ${title}`, async () => {
      assert.equal(await valuesOf(folder, ...words), expected);
    });

  test("uses the files that can be parsed, reports no errors, and writes nothing", async () => {
    await using folder = await createTemporaryFolder();
    const write = (file: string, text: string) => writeFile(join(folder.path, file), text);
    await mkdir(join(folder.path, "crds"));
    await write("crds/broken.yaml", "spec: [");
    await write("crds/none.yaml", "kind: CustomResourceDefinition\nspec: { versions: [1, { name: v1 }] }\n");
    await write(
      "crds/thing.json",
      '{"spec":{"group":"a.example","names":{"kind":"Thing"},"versions":[{"name":"v1"}]}}',
    );
    await write("workflow.yaml", "metadata: { name: one }\nspec: { dependents: { page: {}, '$(touch x)': {} } }\n");
    await write("two.workflow.yaml", "metadata: { name: two }\nspec: { dependents: { other: {}, db: {}");
    const before = await readdir(folder.path, { recursive: true });
    assert.equal(await valuesOf(folder.path, ...dependent, "--resource", "a.e"), ["a.example/v1/Thing"]);
    assert.equal(await valuesOf(folder.path, ...dependent, "--depends-on", ""), ["page"]);
    assert.equal(await valuesOf(join(folder.path, "crds"), ...dependent, "--depends-on", ""), []);
    assert.equal(await valuesOf(folder.path, ...dependent, "--project", "missing", "--depends-on", ""), []);
    assert.equal(await readdir(folder.path, { recursive: true }), before);
  });

  test("returns nothing for invalid command lines", async () => {
    for (const words of [
      [],
      [""],
      ["bogus", "--x", ""],
      ["add", "bogus", ""],
      ["explain", "--rule=", ""],
      ["add", "--project"],
    ])
      await valuesOf(webpage, ...words);
  });
});
