import { resolve } from "node:path";
import type { AddCommand } from "./command.js";
import { printProblem, untilSignal, writeTable } from "./print.js";

/** Adds the `gen-operator dev` command. */
export const addDevCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "dev",
    summary,
    (command) =>
      command
        .usage(
          "$0 dev [--project DIR] [--kubeconfig FILE] [-- FLAG...]\n\n" +
            "Starts an API server in this process, and the operator. After every change, generates, compiles, checks types and\n" +
            "restarts the operator; objects are kept. While there are errors, the operator keeps running with the previous code.\n" +
            "Applies the CRDs of the project and the objects in examples/. Flags after -- are passed to the operator.",
        )
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with workflow.yaml",
        })
        .option("kubeconfig", {
          type: "string",
          requiresArg: true,
          describe: "Use the cluster of this kubeconfig instead; applies the CRDs there, but no examples",
        })
        .parserConfiguration({ "populate--": true })
        .example("$0 dev", "then, in another terminal: KUBECONFIG=dist/dev/kubeconfig kubectl get all")
        .example("$0 dev -- --log-level debug", "with flags of the operator"),
    async ({ project, kubeconfig, ...rest }) => {
      const args = (rest["--"] as string[] | undefined) ?? [];
      end(await runDevCommand({ project, kubeconfig, args }));
    },
  );
};

interface DevArguments {
  readonly project: string;
  readonly kubeconfig: string | undefined;
  readonly args: readonly string[];
}

async function runDevCommand({ project, kubeconfig, args }: DevArguments): Promise<number> {
  const { runDev } = await import("../dev/dev-session.js");
  const stop = new AbortController();
  void untilSignal().then(() => stop.abort());
  try {
    await runDev({
      project: resolve(project),
      ...(kubeconfig === undefined ? {} : { kubeconfig: resolve(kubeconfig) }),
      args,
      signal: stop.signal,
      isTerminal: process.stdout.isTTY === true,
      write: writeTable,
      size: () => ({ columns: process.stdout.columns, rows: process.stdout.rows }),
    });
    return 0;
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "DevError") throw error;
    printProblem(error.message);
    return 1;
  }
}
