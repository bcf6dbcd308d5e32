import type { AddCommand } from "./command.js";
import { printResult } from "./print.js";

/** Adds `gen-operator types`. */
export const addTypesCommand: AddCommand = (parser, end) => {
  parser.command(
    "types <files..>",
    "Generate typed resources from CRDs, without a workflow",
    (command) =>
      command
        .usage(
          "$0 types FILE... --out DIR [--check]\n\n" +
            "Writes a class with its types for every version of every CRD in the files, which are YAML or JSON.",
        )
        .positional("files", {
          type: "string",
          array: true,
          demandOption: true,
          describe: "Files with CustomResourceDefinitions",
        })
        .option("out", {
          type: "string",
          requiresArg: true,
          demandOption: true,
          describe: "The folder to write to",
        })
        .option("check", {
          type: "boolean",
          default: false,
          describe: "Write nothing; fail and name the files if generated code is stale",
        })
        .example("$0 types crds/*.yaml --out src/resources", ""),
    async ({ files, out, check }) => {
      const { generateTypes } = await import("../generate-types.js");
      const update = `npx gen-operator types ${files.join(" ")} --out ${out}`;
      end(printResult(await generateTypes({ files, out, check }), { update }));
    },
  );
};
