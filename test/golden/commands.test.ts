import { readFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "#generator/cli.js";
import { runCommand } from "../support/command-line.js";
import { checkGolden } from "../support/projects/golden-file.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

const goldens = join(repositoryRoot, "fixtures/commands");
const sample = (name: string) => join(repositoryRoot, "fixtures/samples", name);

/** Runs commands in a folder as somebody at a terminal does, and returns all that is to be seen. */
async function transcribe(folder: string, commands: readonly (readonly string[])[]): Promise<string> {
  const seen: string[] = [];
  for (const args of commands) {
    const { status, stdout, stderr } = await runCommand(folder, ...args);
    seen.push(`$ gen-operator ${args.join(" ")}\n${stdout}${stderr}${status === 0 ? "" : `[exit code ${status}]\n`}`);
  }
  return seen.join("\n");
}

suite("command output", (test) => {
  test("shows the recorded help of every command, with examples", async () => {
    const names = [...COMMANDS.keys()];
    const text = await transcribe(repositoryRoot, [["--help"], ...names.map((name) => [name, "--help"])]);
    const added = ["dependent", "external", "source", "controller"].map((what) => ["add", what, "--help"]);
    checkGolden(join(goldens, "help.txt"), `${text}\n${await transcribe(repositoryRoot, added)}`);
    const helps = text.split("$ gen-operator ").slice(2);
    assert.equal(
      // The commands of add have the examples.
      names.filter((name, index) => name !== "add" && !(helps[index] ?? "").includes("\nExamples:\n")),
      [],
    );
  });

  // The published program counts characters where yargs would measure columns, which takes a fifth of a start: see generator/bundle.js.
  test("contains only ASCII characters in the help", () => {
    const help = readFileSync(join(goldens, "help.txt"), "utf8");
    assert.equal(new Set(help.match(/[^\n\x20-\x7e]/g)), new Set());
  });

  test("renders the recorded graphs of the samples as tree, Mermaid and Graphviz", async () => {
    const seen = [
      await transcribe(sample("webpage"), [["graph"], ["graph", "--output", "mermaid"], ["graph", "--output", "dot"]]),
      await transcribe(sample("external"), [["graph"], ["graph", "--controller", "zones"]]),
      await transcribe(sample("bulk"), [["graph"]]),
      await transcribe(sample("podwatch"), [["graph"]]),
      await transcribe(sample("tomcat"), [["graph", "--output", "mermaid"]]),
    ];
    checkGolden(join(goldens, "graph.txt"), seen.join("\n"));
  });

  test("renders every dependent and edge of a graph as SVG", async () => {
    const { stdout } = await runCommand(sample("external"), "graph", "--output", "svg", "--controller", "tenant");
    checkGolden(join(goldens, "graph.svg"), stdout);
    const svg = readFileSync(join(goldens, "graph.svg"), "utf8");
    for (const name of ["account", "users", "settings", "subscription", "notes"]) assert.match(svg, `>${name}</text>`);
    assert.is(svg.split('marker-end="url(#arrow)"').length - 1, 5);
  });
});
