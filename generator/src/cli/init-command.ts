import { addClusterOptions, readCommandInputs, type CommandInputs } from "./input-options.js";
import type { AddCommand } from "./command.js";
import { isPackageName } from "../output/project/package-name.js";
import { printDiagnostics, printKept, printResult } from "./print.js";

/** Adds `gen-operator init`. */
export const addInitCommand: AddCommand = (parser, end) => {
  parser.command(
    "init <directory>",
    "Create a project that runs, from CRDs",
    (command) =>
      addClusterOptions(command)
        .usage(
          "$0 init DIR --crd FILE... | --from-cluster KIND... [--name NAME]\n\n" +
            "Creates a project with a controller for each CRD, generates its code, and writes deploy/: manifests for kustomize and Helm. " +
            "Overwrites nothing.",
        )
        .positional("directory", {
          type: "string",
          demandOption: true,
          describe: "The folder of the project; created if missing",
        })
        .option("crd", {
          type: "string",
          array: true,
          requiresArg: true,
          default: [] as string[],
          describe: "Files, folders or patterns of CustomResourceDefinitions, or - ; they are copied to crds/",
        })
        .option("name", {
          type: "string",
          requiresArg: true,
          describe: "The name of the package [default: the folder's]",
        })
        .check(({ crd, "from-cluster": kinds }) => {
          if (crd.length > 0 || (kinds as string[]).length > 0) return true;
          return "say what the project is for: --crd FILE or --from-cluster KIND";
        })
        .check(({ name }) => {
          if (name === undefined || isPackageName(name)) return true;
          return `${JSON.stringify(name)} is no name of an npm package: use a-z, 0-9, "-", "." and "_", such as @acme/web-page`;
        })
        .example("$0 init web-page --crd webpages.example.com.yaml", ""),
    async ({ directory, crd, name, ...cluster }) =>
      end(await initProject({ directory, inputs: { files: crd, ...cluster }, name })),
  );
};

interface InitArguments {
  readonly directory: string;
  readonly inputs: CommandInputs;
  readonly name: string | undefined;
}

async function initProject({ directory, inputs, name }: InitArguments): Promise<number> {
  const [{ readCrdFiles }, { hasErrors }, project, { generate }] = await Promise.all([
    import("../input/crd/read-crd-files.js"),
    import("../diagnostic.js"),
    import("../output/project/init-project.js"),
    import("../generate.js"),
  ]);
  const read = await readCommandInputs(inputs);
  const { diagnostics } = readCrdFiles(read);
  if (hasErrors(diagnostics)) return printDiagnostics(diagnostics);
  const init = await project.initProject({ directory, crdFiles: read.files, ...(name === undefined ? {} : { name }) });
  for (const path of init.created) console.log(`created ${path}`);
  printKept(init.kept);
  for (const field of init.addedToPackage) console.log(`added   ${field} to package.json`);
  for (const field of init.differsInPackage)
    console.error(`warning: ${field} of package.json is not what the project needs`);
  const exitCode = printResult(await generate({ project: directory }), { update: "npx gen-operator generate", init });
  if (exitCode === 0) console.log(`\nnext: cd ${directory} && npm install && npm test`);
  return exitCode;
}
