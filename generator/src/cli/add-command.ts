import type { Argv } from "yargs";
import type { AddResult } from "../add/add-to-spec.js";
import type { AddCommand } from "./frame/command.js";
import { printResult } from "./frame/print.js";

const RESOURCE = /^(?:[a-z0-9.-]+\/)?v[a-z0-9]+\/[A-Za-z][A-Za-z0-9]*$/;
const NAME = /^[a-z][A-Za-z0-9]{0,62}$/;
const CONTROLLER = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Adds `gen-operator add`. */
export const addAddCommand: AddCommand = (parser, { summary, end }) => {
  parser.command("add", summary, (command) => {
    command
      .usage(
        "$0 add dependent|source|controller NAME ...\n\n" +
          "Writes into workflow.yaml and generates. Comments stay as they are. After an error, nothing is written.",
      )
      .demandCommand(1, "say what to add: dependent, source or controller")
      .command(
        "dependent <name>",
        "Add a resource that the controller writes",
        (each) =>
          withSpecOptions(each)
            .option("depends-on", {
              type: "string",
              array: true,
              requiresArg: true,
              default: [] as string[],
              describe: "The dependents that have to be ready before",
            })
            .option("namespace", {
              type: "string",
              requiresArg: true,
              describe: "Where its objects are, for a primary that has no namespace",
            })
            .example("$0 add dependent deployment --resource apps/v1/Deployment --depends-on configMap", ""),
        async ({ project, controller, name, resource, dependsOn, namespace }) => {
          const value = {
            resource,
            ...(dependsOn.length > 0 ? { dependsOn } : {}),
            ...(namespace === undefined ? {} : { namespace }),
          };
          const { addToSpec } = await import("../add/add-to-spec.js");
          const named = controller === undefined ? {} : { controller };
          end(printAdded(await addToSpec({ project, ...named, section: "dependents", name, value }), name));
        },
      )
      .command(
        "source <name>",
        "Add a resource that the controller watches and does not write",
        (each) =>
          withSpecOptions(each)
            .option("label", {
              type: "string",
              requiresArg: true,
              describe: "The label that names the primary of an object [default: owner references]",
            })
            .example("$0 add source pods --resource v1/Pod --label example.com/page", ""),
        async ({ project, controller, name, resource, label }) => {
          const value = { resource, ...(label === undefined ? {} : { mapping: { label: { name: label } } }) };
          const { addToSpec } = await import("../add/add-to-spec.js");
          const named = controller === undefined ? {} : { controller };
          end(printAdded(await addToSpec({ project, ...named, section: "eventSources", name, value }), name));
        },
      )
      .command(
        "controller <name>",
        "Add a controller with a spec of its own, NAME.workflow.yaml",
        (each) =>
          withProject(each)
            .positional("name", { type: "string", demandOption: true, describe: "The name of the controller" })
            .option("primary", {
              type: "string",
              requiresArg: true,
              demandOption: true,
              describe: "The kind that it reconciles, such as example.com/v1/WebPage",
            })
            .check(({ name, primary }) => checkName(name, CONTROLLER, "web-page") ?? checkResource(primary) ?? true)
            .example("$0 add controller backup --primary example.com/v1/Backup", ""),
        async ({ project, name, primary }) => {
          const { addController } = await import("../add/add-controller.js");
          end(printAdded(await addController({ project, name, primary }), name));
        },
      );
    return command;
  });
};

function withProject<Options>(command: Argv<Options>) {
  return command.option("project", {
    type: "string",
    requiresArg: true,
    default: ".",
    describe: "The folder with workflow.yaml",
  });
}

function withSpecOptions<Options>(command: Argv<Options>) {
  return withProject(command)
    .positional("name", { type: "string", demandOption: true, describe: "Its name in the spec and in code: configMap" })
    .option("resource", {
      type: "string",
      requiresArg: true,
      demandOption: true,
      describe: "Its kind: v1/ConfigMap, apps/v1/Deployment",
    })
    .option("controller", {
      type: "string",
      requiresArg: true,
      describe: "The controller, if the project has several",
    })
    .check(({ name, resource }) => checkName(name, NAME, "configMap") ?? checkResource(resource) ?? true);
}

function checkName(name: unknown, pattern: RegExp, example: string): string | undefined {
  if (typeof name === "string" && pattern.test(name)) return undefined;
  return `${JSON.stringify(name)} is no name: expected one such as ${example}`;
}

function checkResource(resource: unknown): string | undefined {
  if (typeof resource === "string" && RESOURCE.test(resource)) return undefined;
  return `${JSON.stringify(resource)} is no kind: expected one such as v1/ConfigMap or apps/v1/Deployment`;
}

function printAdded(result: AddResult, name: string): number {
  if (result.wasPresent === true) console.log(`${name} is there already`);
  if (result.updated !== undefined) console.log(`updated ${result.updated}`);
  return printResult(result, { update: "npx gen-operator generate" });
}
