import { readFile, stat } from "node:fs/promises";
import yargs from "yargs";
import type { AddCommand } from "./cli/command.js";
import { COMPLETION_FLAG } from "./cli/completion-scripts.js";
import { STDIN } from "./cli/input-options.js";
import { printFailure, printLine, printProblem } from "./cli/print.js";
import { didYouMean, quote } from "./diagnostic.js";
import { packageFile } from "./package-file.js";

/** A command in the overview. Its code is loaded only when it is invoked. */
interface CommandEntry {
  readonly summary: string;
  load(): Promise<AddCommand>;
}

/** All commands by name, in the order of the overview. */
export const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map(
  Object.entries<CommandEntry>({
    init: {
      summary: "Create a complete project from CRDs",
      load: async () => (await import("./cli/init-command.js")).addInitCommand,
    },
    add: {
      summary: "Add a dependent, an external dependent, an event source or a controller",
      load: async () => (await import("./cli/add-command.js")).addAddCommand,
    },
    dev: {
      summary: "Run the operator, and restart it when you change a CRD, the spec or code",
      load: async () => (await import("./cli/dev-command.js")).addDevCommand,
    },
    generate: {
      summary: "Generate code from workflow.yaml and crds/",
      load: async () => (await import("./cli/generate-command.js")).addGenerateCommand,
    },
    suggest: {
      summary: "Suggest which fields the caches of event sources have to keep",
      load: async () => (await import("./cli/suggest-command.js")).addSuggestCommand,
    },
    types: {
      summary: "Generate typed resources from CRDs, without a workflow",
      load: async () => (await import("./cli/types-command.js")).addTypesCommand,
    },
    diff: {
      summary: "Show what changes of CRDs and of the spec break",
      load: async () => (await import("./cli/diff-command.js")).addDiffCommand,
    },
    graph: {
      summary: "Show the dependents and their order",
      load: async () => (await import("./cli/graph-command.js")).addGraphCommand,
    },
    explain: {
      summary: "Explain the rule of an error or a warning, or a field of the spec",
      load: async () => (await import("./cli/explain-command.js")).addExplainCommand,
    },
    doctor: {
      summary: "Check the installation, the project and a cluster",
      load: async () => (await import("./cli/doctor-command.js")).addDoctorCommand,
    },
    schema: {
      summary: "Print the JSON Schema of the spec, or of a kind, for an editor",
      load: async () => (await import("./cli/schema-command.js")).addSchemaCommand,
    },
    completion: {
      summary: "Print the completion script of a shell",
      load: async () => (await import("./cli/completion-command.js")).addCompletionCommand,
    },
  }),
);

/** Invalid arguments. Problems in project files are diagnostics instead. */
class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The object that yargs passes to its failure handler, with the descriptions of the options and positionals of the failed command. */
interface UsageTexts {
  getDescriptions(): { readonly [name: string]: string };
  /** Subcommands of the failed command, for example `dependent <name>`. */
  getCommands(): readonly (readonly [command: string, ...rest: unknown[]])[];
  /** Usage lines of the command, each with its description. */
  getUsage(): readonly (readonly string[])[];
}

/**
 * Runs the command line and returns its exit code: 0 for success, 1 for invalid input or stale generated code, 2 for an invalid command line.
 *
 * Results are written to standard output, everything else to standard error. Only the code of the invoked command is loaded.
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  // The reader of a pipe may close it early, as head does. The command still runs to its end.
  for (const stream of [process.stdout, process.stderr])
    if (!stream.listeners("error").includes(ignoreClosedPipe)) stream.on("error", ignoreClosedPipe);
  const isCompletion = args[0] === COMPLETION_FLAG;
  // For completion, the shell passes the program name first.
  const words = isCompletion ? args.slice(2, -1) : args;
  const name = words.find((arg) => !arg.startsWith("-"));
  try {
    if (isCompletion && (await printValues(args.slice(2)))) return 0;
    if (!isCompletion && name !== undefined && !COMMANDS.has(name)) throw new UsageError(unknownCommand(name));
    let exitCode = 0;
    const parser = await createParser(args, name, (code) => (exitCode = code));
    await parser.parseAsync();
    return exitCode;
  } catch (error) {
    // A message would be printed into the command line that the user is editing.
    if (isCompletion) return 0;
    if (!(error instanceof UsageError)) return printFailure(error);
    const command = name !== undefined && COMMANDS.has(name) ? [name] : [];
    printProblem(`${error.message} (see ${["gen-operator", ...command, "--help"].join(" ")})`);
    return 2;
  }
}

/** Prints the candidates for the last word of a command line, one per line. Returns false if completion is left to yargs. */
async function printValues(words: readonly string[]): Promise<boolean> {
  const { completeValue } = await import("./cli/complete-value.js");
  const values = await completeValue(words);
  for (const value of values ?? []) printLine(value);
  return values !== undefined;
}

async function createParser(args: readonly string[], name: string | undefined, end: (exitCode: number) => void) {
  const parser = yargs(nameStdin(args))
    .scriptName("gen-operator")
    .usage("$0 <command>\n\nGenerates a typed Kubernetes operator from CRDs and a workflow spec.")
    .version(await readVersion())
    .help()
    .alias("h", "help")
    .locale("en")
    .strict()
    .demandCommand(1, "a command is required, such as init, generate or dev")
    .epilogue("Exit codes: 0 success; 1 invalid input or stale generated code; 2 invalid command line.")
    .exitProcess(false)
    .middleware(async ({ project }) => {
      if (typeof project !== "string") return;
      const found = await stat(project).catch((error: NodeJS.ErrnoException) => error.code);
      if (found === "ENOENT") throw new UsageError(`folder ${quote(project)} of --project not found`);
      if (typeof found === "object" && !found.isDirectory())
        throw new UsageError(`invalid value ${quote(project)} of --project: must be a folder`);
    })
    .fail((message: string | null, error: unknown, usage: unknown) => {
      // Errors of yargs itself (YError) also concern the arguments.
      if (error instanceof Error && error.name !== "YError") throw error;
      const said = message ?? (error as Error).message;
      throw new UsageError(describeUsage(said, usage as UsageTexts, args));
    });
  parser.wrap(Math.min(100, parser.terminalWidth()));
  for (const [each, { summary, load }] of COMMANDS)
    if (each === name) (await load())(parser, { summary, end });
    else parser.command(each, summary);
  return parser;
}

function unknownCommand(name: string): string {
  const meant = didYouMean(name, COMMANDS.keys());
  return `unknown command ${quote(name)}${meant === undefined ? "" : `; ${meant.hint}`}`;
}

/** Describes the problem of the arguments in one line. Messages of yargs omit the dashes of options. */
function describeUsage(message: string, usage: UsageTexts, args: readonly string[]): string {
  const options = Object.keys(usage.getDescriptions());
  // If a required option is misspelled, yargs reports it as missing, so look for misspelled flags first.
  const slip = flagsIn(args).find((flag) => !options.includes(flag));
  if (slip !== undefined) return unknownArgument(slip, didYouMean(slip, options)?.hint.replace('"', '"--'));
  const usageLine = usage.getUsage()[0]?.[0]?.split("\n")[0]?.replaceAll("$0", "gen-operator") ?? "";
  const missing = /^Missing required arguments?: (.*)$/m.exec(message)?.[1]?.split(", ");
  if (missing !== undefined)
    return `${missing.map((name) => `--${name}`).join(" and ")} ${missing.length === 1 ? "is" : "are"} required`;
  const [, found, least] = /^Not enough non-option arguments: got (\d+), need at least (\d+)/m.exec(message) ?? [];
  if (found !== undefined)
    return `${Number(least) - Number(found) === 1 ? "an argument is" : "arguments are"} required: ${usageLine}`;
  const [, option] = /^Not enough arguments following: (\S+)/m.exec(message) ?? [];
  if (option !== undefined) return `--${option} requires a value`;
  const [, name, given, choices] = /Argument: (.*), Given: (.*), Choices: (.*)$/m.exec(message) ?? [];
  if (name !== undefined && given !== undefined && choices !== undefined) {
    const meant = didYouMean(given.replaceAll('"', ""), choices.replaceAll('"', "").split(", "));
    return `invalid value ${given} of ${name}: must be one of ${choices}${meant === undefined ? "" : `; ${meant.hint}`}`;
  }
  const unknown = /^Unknown arguments?: (.*)$/m.exec(message)?.[1]?.split(", ")[0];
  if (unknown === undefined)
    return message
      .trim()
      .replaceAll(/:\s*\n\s*/g, ": ")
      .replaceAll(/\s*\n\s*/g, "; ");
  const commands = usage.getCommands().map(([command]) => command.split(" ")[0] ?? "");
  return unknownArgument(unknown, didYouMean(unknown, commands)?.hint);
}

function unknownArgument(name: string, meant: string | undefined): string {
  return `unknown argument ${quote(name)}${meant === undefined ? "" : `; ${meant}`}`;
}

/** Returns the flags under their option names: `dry-run` for `--dry-run`, `--dryRun`, and `--no-dry-run`. */
function flagsIn(args: readonly string[]): string[] {
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  return own.flatMap((arg) => {
    const [, name] = /^--(?:no-)?([^=]+)/.exec(arg) ?? [];
    return name === undefined ? [] : [name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)];
  });
}

// yargs drops a "-" among the values of a command.
function nameStdin(args: readonly string[]): string[] {
  return args.map((arg) => (arg === "-" ? STDIN : arg));
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}

async function readVersion(): Promise<string> {
  const text = await readFile(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
