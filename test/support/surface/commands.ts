// The command lines of the packages as text: commands, arguments, flags, and exit codes, without descriptions.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOperator } from "#runtime/index.js";
import { runCommand } from "../command-line.js";
import { repositoryRoot } from "../repository.js";
import { createTemporaryFolder } from "../temporary-folder.js";

/** Returns the commands of all programs, with their arguments and flags according to their help. */
export async function commandsReport(): Promise<string> {
  const { stdout } = await runApiServer(["--help"]);
  const texts = [...(await describeCommands([])), ["apiserver", ...argumentsIn(stdout)].join("\n")];
  return `${texts.join("\n\n")}\n`;
}

async function describeCommands(words: readonly string[]): Promise<string[]> {
  const { stdout } = await runCommand(repositoryRoot, ...words, "--help");
  const commands = /^Commands:\n(?: .*\n)+/m.exec(stdout)?.[0] ?? "";
  const inner = [...commands.matchAll(/^ {2}gen-operator ((?:[a-z]+ )*[a-z]+)(?: <\w+>)* {2,}\S/gm)].map(
    ([, names = ""]) => names.split(" "),
  );
  const below = [];
  for (const each of inner.filter(({ length }) => length === words.length + 1))
    below.push(...(await describeCommands(each)));
  return [[["gen-operator", ...words].join(" "), ...argumentsIn(stdout)].join("\n"), ...below];
}

/** Returns the positional arguments and flags in a help text, one per line, without descriptions. */
function argumentsIn(help: string): string[] {
  const sections = help.split(/^(?=\S)/m);
  const section = (title: string) => sections.find((each) => each.startsWith(`${title}:\n`)) ?? "";
  const entries = (text: string, start: RegExp) => {
    const lines: string[] = [];
    for (const line of text.split("\n").slice(1))
      if (start.test(line)) lines.push(line.trim());
      else if (line.trim() !== "") lines.push(`${lines.pop() ?? ""} ${line.trim()}`);
    return lines;
  };
  const positionals = entries(section("Positionals"), /^ {2}\S/).map(
    (line) => `  ${/^\S+/.exec(line)?.[0]} ${factsIn(line)}`,
  );
  const flags = entries(section("Options"), /^ {2,6}-/).map((line) => {
    const names = /^(?:-\w, )*--\S+/.exec(line)?.[0].split(", ") ?? [];
    return `  ${names.reverse().join(" ")} ${factsIn(line)}`;
  });
  return [...positionals, ...flags.sort()];
}

/** Returns what yargs appends to a description, such as `[string] [default: "."]`. A default in words is part of the description. */
function factsIn(line: string): string {
  const [, all = ""] = /((?:\s*\[(?:[^[\]]|\[[^\]]*\])*\])*)$/.exec(line) ?? [];
  const facts = all.match(/\[(?:[^[\]]|\[[^\]]*\])*\]/g) ?? [];
  return facts.filter((each) => !/^\[default: (?!["\d[]|true|false)/.test(each)).join(" ");
}

/** Returns the names of the rules that `gen-operator explain` lists. Specs and pipelines refer to them. */
export async function rulesReport(): Promise<string> {
  const { stdout } = await runCommand(repositoryRoot, "explain");
  return [...stdout.matchAll(/^([a-z][\w-]*) {2}/gm)]
    .map(([, name]) => `${name}\n`)
    .sort()
    .join("");
}

/** Returns the flags and environment variables of a compiled operator, as listed in its help. */
export async function operatorFlags(): Promise<string> {
  const { stdout } = await runThisOperator(["--help"]);
  return [...stdout.matchAll(/^ {2}(--\S+)\n {6}(.*)$/gm)]
    .map(([, flag, words = ""]) => [flag, / \[(\w+)\]$/.exec(words)?.[1]].filter(Boolean).join(" "))
    .sort()
    .join("\n");
}

/** Returns the exit codes of the programs in various situations. */
export async function exitCodesReport(): Promise<string> {
  await using folder = await createTemporaryFolder();
  const broken = join(folder.path, "broken");
  await mkdir(broken);
  await writeFile(join(broken, "workflow.yaml"), "kind: Nothing\n");
  const sample = join(repositoryRoot, "fixtures/samples/webpage");
  const lines: string[] = ["gen-operator"];
  const run = async (what: string, directory: string, ...args: readonly string[]) => {
    const { status } = await runCommand(directory, ...args);
    lines.push(`  ${status} ${what}${args.length === 0 ? "" : `: ${args.join(" ")}`}`);
  };
  await run("help", folder.path, "--help");
  await run("no command", folder.path);
  await run("an unknown command", folder.path, "generat");
  await run("an unknown flag", folder.path, "generate", "--nothing");
  await run("flags that exclude each other", folder.path, "generate", "--check", "--watch");
  await run("a required argument is missing", folder.path, "init");
  await run("a folder that is missing", folder.path, "generate", "--project", "nothing");
  await run("a folder without a project", folder.path, "generate");
  await run("a wrong spec", broken, "generate");
  await run("a wrong spec, in a check", broken, "generate", "--check");
  await run("a project", sample, "graph");
  await run("a baseline that cannot be read", sample, "diff", "nothing-of-this-name");
  await run("a rule", folder.path, "explain", "unknown-dependent");
  await run("an unknown rule", folder.path, "explain", "nothing-of-this-name");

  lines.push("", "apiserver");
  const endings = await Promise.all([
    runApiServer(["--help"]),
    runApiServer(["--nothing"]),
    runApiServer(["--crds", "nothing-of-this-name.yaml"]),
    runApiServer([], "SIGTERM"),
    runApiServer([], "SIGINT"),
    runApiServer(["--until-stdin-ends"], "end of standard input"),
  ]);
  const titles = ["help", "an unknown flag", "a file that is missing", "SIGTERM", "SIGINT", "end of standard input"];
  lines.push(...endings.map(({ status }, index) => `  ${status} ${titles[index]}`));

  lines.push("", "an operator");
  lines.push(`  ${(await runThisOperator(["--help"])).status} help`);
  lines.push(`  ${(await runThisOperator(["--nothing"])).status} an unknown flag`);
  lines.push(`  ${(await runThisOperator(["--config", "nothing-of-this-name.yaml"])).status} no file of settings`);
  lines.push(`  ${(await runThisOperator([])).status} no controllers`);
  lines.push("", "stated by the code, also for what cannot be run here: a second signal, an error that nobody catches");
  for (const folder of ["runtime", "generator", "apiserver"])
    lines.push(`  ${folder}: ${statedCodes(folder).join(" ")}`);
  return `${lines.join("\n")}\n`;
}

/** Returns the numbers in `process.exit(…)` and `process.exitCode = …` of a package. */
function statedCodes(folder: string): string[] {
  const root = join(repositoryRoot, folder, "src");
  const texts = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(root, name), "utf8"));
  const codes = texts.flatMap((text) =>
    [...text.matchAll(/\bprocess\.exit(?:Code = |\()(\d+)/g)].map(([, code]) => code!),
  );
  return [...new Set(codes)].sort();
}

/** Runs an operator in this process that exits before it connects. It has controllers if there are arguments. */
async function runThisOperator(args: readonly string[]): Promise<{ readonly status: number; readonly stdout: string }> {
  const { exitCode } = process;
  const [stdout, stderr] = [process.stdout.write, process.stderr.write];
  let text = "";
  process.exitCode = 0;
  process.stdout.write = (chunk: Uint8Array | string) => ((text += String(chunk)), true);
  process.stderr.write = () => true;
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  try {
    const controllers = args.length === 0 ? [] : [{ name: "NAME" } as Parameters<typeof runOperator>[0][number]];
    await runOperator(controllers, { args, logger });
    return { status: Number(process.exitCode), stdout: text };
  } finally {
    process.stdout.write = stdout;
    process.stderr.write = stderr;
    process.exitCode = exitCode;
  }
}

type Ending = "SIGTERM" | "SIGINT" | "end of standard input";

/** Runs the program `apiserver`, and ends it in the given way once it is ready. */
async function runApiServer(args: readonly string[], ending?: Ending) {
  const program = join(repositoryRoot, "apiserver/bin/apiserver.js");
  const child = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (!stdout.includes("ready http")) return;
    if (ending === "end of standard input") child.stdin.end();
    else child.kill(ending);
  });
  const status = await new Promise<number | null>((done) => child.once("close", done));
  return { status, stdout };
}
