import { spawnSync } from "node:child_process";
import { chmod, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { SHELLS } from "#generator/cli/frame/completion-scripts.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const program = join(repositoryRoot, "generator/bin/gen-operator.js");

/** How each shell is asked for the candidates of an unfinished command line, without a terminal. */
const ASK: Record<(typeof SHELLS)[number], (words: readonly string[]) => string[]> = {
  bash: (words) => [
    "--norc",
    "-c",
    `eval "$(gen-operator completion bash)"; COMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${words.length - 1}; _gen_operator; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  // Without its line editor zsh has no completion: what the script would offer is printed in place of it.
  zsh: (words) => [
    "-f",
    "-c",
    `compdef() { :; }; _files() { :; }; _describe() { print -l -- "\${candidates[@]}"; }; eval "$(gen-operator completion zsh)"; words=(${words.map((word) => `"${word}"`).join(" ")}); CURRENT=${words.length}; _gen_operator`,
  ],
  fish: (words) => ["--no-config", "-c", `gen-operator completion fish | source; complete -C "${words.join(" ")}"`],
};

const CASES: [words: string[], candidate: string][] = [
  [["gen-operator", "ge"], "generate"],
  [["gen-operator", "generate", "--dr"], "--dry-run"],
  [["gen-operator", "generate", "--format", "j"], "json"],
  [["gen-operator", "completion", "f"], "fish"],
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
        await symlink(program, join(folder.path, "gen-operator"));
        const env = {
          ...process.env,
          HOME: folder.path,
          XDG_CONFIG_HOME: folder.path,
          PATH: `${folder.path}${delimiter}${process.env["PATH"] ?? ""}`,
        };
        for (const [words, candidate] of CASES) {
          const { stdout, stderr } = spawnSync(shell, ASK[shell](words), { cwd: folder.path, env, encoding: "utf8" });
          const candidates = stdout.split("\n").map((line) => line.split(/[\t:]/)[0]?.trim());
          assert.is(candidates.includes(candidate), true, `${words.join(" ")}: ${stdout}${stderr}`);
        }
      },
      { timeoutMs: 60_000 },
    );
  }
});
