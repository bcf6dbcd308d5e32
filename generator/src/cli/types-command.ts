import type { AddCommand } from "./command.js";
import { STDIN, addClusterOptions, readCommandInputs } from "./input-options.js";
import { FORMAT_OPTION, generateOutcome, printOutcome, printResult, withProgress } from "./print.js";

/** Adds the `gen-operator types` command. */
export const addTypesCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "types [files..]",
    summary,
    (command) =>
      addClusterOptions(command)
        .usage(
          "$0 types FILE... --out DIR [--check]\n\n" +
            "Writes a class with its types for every version of every CRD. FILE is YAML or JSON, a folder, a pattern, or - for standard input.",
        )
        .positional("files", {
          type: "string",
          array: true,
          default: [] as string[],
          describe: "Files, folders or patterns of CustomResourceDefinitions, or - for standard input",
        })
        .option("out", {
          type: "string",
          requiresArg: true,
          demandOption: true,
          describe: "The folder to write to",
        })
        .version(false)
        .option("version", {
          type: "string",
          array: true,
          requiresArg: true,
          describe: "Only these versions [default: all]",
        })
        .option("served-only", {
          type: "boolean",
          default: false,
          describe: "Leave out versions that are not served",
        })
        .option("check", {
          type: "boolean",
          default: false,
          describe: "Write nothing; exit with 1 and name the files if generated code is stale",
        })
        .option("format", FORMAT_OPTION)
        .check(({ files, "from-cluster": kinds }) => {
          if (files.length > 0 || (kinds as string[]).length > 0) return true;
          return "a file, a folder, - for standard input, or --from-cluster is required";
        })
        .example("$0 types crds --out src/resources", "all CRDs of a folder")
        .example("kubectl get crd -o yaml | $0 types - --out src/resources", "what another program prints")
        .example("$0 types --from-cluster Certificate --out src/resources", "a kind of the current cluster"),
    async ({ files, fromCluster, kubeconfig, context, out, check, servedOnly, version, format }) => {
      const { generateTypes } = await import("../generate-types.js");
      const inputs = await readCommandInputs({ files, fromCluster, kubeconfig, context });
      const named = [
        ...files.map((file) => (file === STDIN ? "-" : file)),
        ...fromCluster.map((kind) => `--from-cluster ${kind}`),
      ].join(" ");
      const selected = `${servedOnly ? " --served-only" : ""}${(version ?? []).map((each) => ` --version ${each}`).join("")}`;
      const update = `npx gen-operator types ${named} --out ${out}${selected}`;
      const versions = version === undefined ? {} : { versions: version };
      const result = await withProgress((onStep) =>
        generateTypes({ files: inputs, out, check, servedOnly, ...versions, onStep }),
      );
      end(await printOutcome(format, generateOutcome(result, "."), () => printResult(result, { update })));
    },
  );
};
