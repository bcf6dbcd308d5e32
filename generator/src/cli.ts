import { readFile } from "node:fs/promises";
import yargs from "yargs";
import { addAddCommand } from "./cli/add-command.js";
import { addDevCommand } from "./cli/dev-command.js";
import { addGenerateCommand } from "./cli/generate-command.js";
import { addInitCommand } from "./cli/init-command.js";
import { printFailure } from "./cli/print.js";
import { addSuggestCommand } from "./cli/suggest-command.js";
import { STDIN } from "./cli/input-options.js";
import { addTypesCommand } from "./cli/types-command.js";

/** Wrong arguments. Problems in the files of a project are diagnostics instead. */
class UsageError extends Error {
  override readonly name = "UsageError";
}

const COMMANDS = [addInitCommand, addAddCommand, addDevCommand, addGenerateCommand, addSuggestCommand, addTypesCommand];

/**
 * Runs the command line and returns its exit code: 0 when all is well, 1 when the input is wrong or stale, 2 when the command is.
 *
 * Results go to standard output, everything else to standard error.
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  // The reader of the output may stop early, as head does. The command is finished nevertheless.
  for (const stream of [process.stdout, process.stderr])
    if (!stream.listeners("error").includes(ignoreClosedPipe)) stream.on("error", ignoreClosedPipe);
  let exitCode = 0;
  const end = (code: number) => {
    exitCode = code;
  };
  const parser = yargs(nameStdin(args))
    .scriptName("gen-operator")
    .usage("$0 <command>\n\nGenerates a typed Kubernetes operator from CRDs and a workflow spec.")
    .version(await readVersion())
    .help()
    .alias("h", "help")
    .locale("en")
    .strict()
    .recommendCommands()
    .demandCommand(1, "name a command, such as init, generate or dev")
    .epilogue("Exit codes: 0 all is well, 1 the input is wrong or generated code is stale, 2 the command is wrong.")
    .exitProcess(false)
    .fail((message: string, error: unknown) => {
      throw error instanceof Error ? error : new UsageError(message);
    });
  parser.wrap(Math.min(100, parser.terminalWidth()));
  for (const addCommand of COMMANDS) addCommand(parser, end);
  try {
    await parser.parseAsync();
    return exitCode;
  } catch (error) {
    if (!(error instanceof UsageError)) return printFailure(error);
    console.error(`gen-operator: ${error.message}\nSee gen-operator --help.`);
    return 2;
  }
}

// yargs loses a "-" among the values of a command.
function nameStdin(args: readonly string[]): string[] {
  return args.map((arg) => (arg === "-" ? STDIN : arg));
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}

async function readVersion(): Promise<string> {
  const text = await readFile(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
