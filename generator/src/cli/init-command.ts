import { hasErrors, shellWord } from "../diagnostic.js";
import { EXAMPLES, type ExampleName, readExample } from "../init/examples.js";
import type { InitReport } from "../init/init-project.js";
import { isPackageName } from "../init/package-name.js";
import type { AddCommand } from "./command.js";
import { type CommandInputs, addCrdOptions, readProjectCrds } from "./input-options.js";
import {
  FORMAT_OPTION,
  type Format,
  generateOutcome,
  printDiagnostics,
  printErrorLines,
  printKept,
  printLine,
  printLines,
  printOutcome,
  printResult,
  relativeTo,
  withProgress,
} from "./print.js";

/** Adds the `gen-operator init` command. */
export const addInitCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "init <directory>",
    summary,
    (command) =>
      addCrdOptions(command)
        .usage(
          "$0 init DIR --crd FILE... | --from-cluster KIND... | --example NAME [--name NAME]\n\n" +
            "Creates a project with a controller for each CRD, generates its code, and writes deploy/: manifests for kustomize and Helm. " +
            "Overwrites nothing.",
        )
        .positional("directory", {
          type: "string",
          demandOption: true,
          describe: "The folder of the project; created if missing",
        })
        .option("name", {
          type: "string",
          requiresArg: true,
          describe: "The name of the package [default: the folder's]",
        })
        .option("example", {
          choices: Object.keys(EXAMPLES) as ExampleName[],
          requiresArg: true,
          describe: "Start from an example",
        })
        .option("format", FORMAT_OPTION)
        .check(({ crd, "from-cluster": kinds, example }) => {
          const given = [crd.length > 0, (kinds as string[]).length > 0, example !== undefined];
          if (!given.includes(true)) return "one of --crd, --from-cluster, or --example is required";
          return (
            example === undefined ||
            given.filter(Boolean).length === 1 ||
            "--example cannot be combined with --crd or --from-cluster: an example includes its CRDs"
          );
        })
        .check(({ name }) => {
          if (name === undefined || isPackageName(name)) return true;
          return `invalid package name ${JSON.stringify(name)}: must consist of a-z, 0-9, "-", "." and "_", such as @acme/web-page`;
        })
        .example("$0 init web-page --crd webpages.example.com.yaml", "from a CRD of yours")
        .example("$0 init certs --from-cluster Certificate", "from a CRD of the current cluster")
        .example("$0 init pages --example webpage", "from a complete project")
        .epilogue(
          `Examples of projects:\n${Object.entries(EXAMPLES)
            .map(([name, text]) => `  ${name.padEnd(14)}${text}`)
            .join("\n")}`,
        ),
    async ({ directory, crd, name, example, format, ...cluster }) =>
      end(await initProject({ directory, inputs: { files: crd, ...cluster }, name, example, format })),
  );
};

interface InitArguments {
  readonly directory: string;
  readonly inputs: CommandInputs;
  readonly name: string | undefined;
  readonly example: ExampleName | undefined;
  readonly format: Format;
}

async function initProject({ directory, inputs, name, example: exampleName, format }: InitArguments): Promise<number> {
  const [{ planProject, writeProject }, { generate }, { checkNewProject }, { writeExampleObjects }] = await Promise.all(
    [
      import("../init/init-project.js"),
      import("../generate.js"),
      import("../init/check-new-project.js"),
      import("../init/example-objects.js"),
    ],
  );
  const example = exampleName === undefined ? undefined : await readExample(exampleName);
  const { diagnostics, files } =
    example === undefined ? await readProjectCrds(directory, inputs) : { diagnostics: [], files: [] };
  const found = relativeTo(directory, diagnostics);
  const isForPeople = format === "text";
  if (isForPeople) printDiagnostics(diagnostics);
  if (hasErrors(found)) return printOutcome(format, { diagnostics: found, project: directory }, () => 1);
  const plan = await planProject({
    directory,
    crdFiles: files,
    ...(name === undefined ? {} : { name }),
    ...(example === undefined ? {} : { example }),
  });
  const errors = await checkNewProject(directory, plan.files);
  if (errors.length > 0)
    return printOutcome(format, { diagnostics: [...found, ...errors], project: directory }, () =>
      printDiagnostics(errors),
    );
  const init = await writeProject(plan);
  // Report the files now, because the following steps may fail.
  if (isForPeople) printStart(init);
  const result = await withProgress((onStep) => generate({ project: directory, onStep }));
  const isNew = init.created.includes("workflow.yaml");
  const objects = example === undefined ? await writeExampleObjects(directory, { isNew }) : { created: [], kept: [] };
  const written = { ...init, created: [...init.created, ...objects.created], kept: [...init.kept, ...objects.kept] };
  const { exitCode = 0, parts } = generateOutcome(result, directory);
  const outcome = {
    ...{ diagnostics: [...found, ...result.diagnostics], project: directory, exitCode },
    parts: { ...parts, written },
  };
  return printOutcome(format, outcome, () => {
    for (const path of objects.created) printLine(`created ${path}`);
    printKept(objects.kept);
    printResult(result, { update: "npx gen-operator generate", init: written });
    if (exitCode === 0) printLines(`\nnext: cd ${shellWord(directory)} && npm install && npm run dev\n`);
    return exitCode;
  });
}

function printStart({ created, kept, addedToPackage, differsInPackage }: InitReport): void {
  for (const path of created) printLine(`created ${path}`);
  printKept(kept);
  for (const field of addedToPackage) printLine(`added   ${field} to package.json`);
  for (const field of differsInPackage)
    printErrorLines(`warning: ${field} of package.json differs from what the project requires`);
}
