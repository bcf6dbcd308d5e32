import type { Argv } from "yargs";
import type { NewCrds } from "../init/new-crds.js";
import type { Inputs } from "../read/read-inputs.js";
import { withProgress } from "./print.js";

/** Placeholder for standard input in parsed arguments and in messages. */
export const STDIN = "<stdin>";

/** The sources of CRDs on the command line. */
export interface CommandInputs {
  /** Files, folders, glob patterns, or `STDIN`. */
  readonly files: readonly string[];
  /** Kinds to read from the cluster. */
  readonly fromCluster: readonly string[];
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
}

/** Adds the options for the CRDs of a project: `--crd`, and those of {@link addClusterOptions}. */
export function addCrdOptions<Options>(command: Argv<Options>) {
  return addClusterOptions(
    command.option("crd", {
      type: "string",
      array: true,
      requiresArg: true,
      default: [] as string[],
      describe:
        "Files, folders or patterns of CustomResourceDefinitions, or - for standard input; they are copied to crds/",
    }),
  );
}

/** Returns whether the command line names no source of CRDs. */
export function isEmpty({ files, fromCluster }: CommandInputs): boolean {
  return files.length + fromCluster.length === 0;
}

/** Adds the options for reading CRDs from a cluster. */
export function addClusterOptions<Options>(command: Argv<Options>) {
  return command
    .option("from-cluster", {
      type: "string",
      array: true,
      requiresArg: true,
      default: [] as string[],
      describe: "Read these kinds from a cluster, with or without a CRD: WebPage, or webpages.example.com",
    })
    .option("kubeconfig", {
      type: "string",
      requiresArg: true,
      describe: "The kubeconfig for --from-cluster [default: kubectl's]",
    })
    .option("context", {
      type: "string",
      requiresArg: true,
      describe: "The context of the kubeconfig for --from-cluster [default: the current one]",
    });
}

/** Reads the CRDs to add to a project. */
export async function readProjectCrds(project: string, inputs: CommandInputs): Promise<NewCrds> {
  const { readNewCrds } = await import("../init/new-crds.js");
  return readNewCrds(project, await readCommandInputs(inputs));
}

/** Reads all CRDs that the command line names. */
export async function readCommandInputs({ files, fromCluster, kubeconfig, context }: CommandInputs): Promise<Inputs> {
  const { readInputs } = await import("../read/read-inputs.js");
  const read = [
    await readInputs(
      files.map((file) => (file === STDIN ? "-" : file)),
      { folder: ".", readStdin },
    ),
  ];
  if (fromCluster.length > 0) {
    const { readClusterKinds } = await import("../read/cluster-kinds.js");
    const stated = {
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    };
    read.push(
      await withProgress((onStep) => {
        onStep("reading the kinds of the cluster");
        return readClusterKinds(fromCluster, stated);
      }),
    );
  }
  return { files: read.flatMap((each) => each.files), diagnostics: read.flatMap((each) => each.diagnostics) };
}

async function readStdin(): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
