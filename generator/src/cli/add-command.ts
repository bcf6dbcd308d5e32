import type { Argv } from "yargs";
import type { AddOptions, AddResult } from "../add/add-to-spec.js";
import { hasErrors } from "../diagnostic.js";
import type { AddCommand } from "./command.js";
import { type CommandInputs, addCrdOptions, isEmpty, readProjectCrds } from "./input-options.js";
import {
  FORMAT_OPTION,
  type Format,
  generateOutcome,
  printDiagnostics,
  printKept,
  printLine,
  printOutcome,
  printResult,
  relativeTo,
  withProgress,
} from "./print.js";

// A managed Job would run again after its deletion, and its template is immutable.
function modeOf(resource: string, readOnly: boolean): { readonly mode?: "readOnly" | "once" } {
  if (readOnly) return { mode: "readOnly" };
  return resource === "batch/v1/Job" ? { mode: "once" } : {};
}

/** Adds the `gen-operator add` command. */
export const addAddCommand: AddCommand = (parser, { summary, end }) => {
  parser.command("add", summary, (command) => {
    command
      .usage(
        "$0 add dependent|external|source|controller NAME ...\n\n" +
          "Adds an entry to workflow.yaml and generates code. Comments are kept. After an error, nothing is written.",
      )
      .demandCommand(1, "one of dependent, external, source, or controller is required")
      .command(
        "dependent <name>",
        "Add a Kubernetes object that the controller manages",
        addDependent,
        async (given) => {
          const { resource, dependsOn, namespace, readOnly, bulk, ready, when } = given;
          const value = {
            resource,
            ...(dependsOn.length > 0 ? { dependsOn } : {}),
            ...(namespace === undefined ? {} : { namespace }),
            ...modeOf(resource, readOnly),
            ...(bulk ? { bulk: true } : {}),
            ...(when === undefined ? {} : { reconcilePrecondition: { when } }),
            ...(ready ? { readyPostcondition: "ready" } : {}),
          };
          end(await addEntry(given, "dependents", value));
        },
      )
      .command("external <name>", "Add a dependent outside Kubernetes", addExternal, async (given) => {
        const { dependsOn, eventSource, idInStatus, readOnly } = given;
        const external = {
          ...externalEntry(given),
          ...(eventSource === undefined ? {} : { eventSource }),
          ...(idInStatus === undefined ? {} : { state: { status: idInStatus } }),
          ...(readOnly ? { capabilities: [] } : {}),
        };
        end(await addEntry(given, "dependents", { external, ...(dependsOn.length > 0 ? { dependsOn } : {}) }));
      })
      .command(
        "source <name>",
        "Add an event source: resources that the controller only reads",
        addSource,
        async (given) => {
          const { resource, label, mappedBy, namespaces } = given;
          const mapping =
            mappedBy !== undefined
              ? { function: mappedBy }
              : label !== undefined
                ? { label: { name: label } }
                : undefined;
          const value = {
            ...(resource === undefined ? {} : { resource }),
            ...externalEntry(given),
            ...(mapping === undefined ? {} : { mapping }),
            // Objects without the label are not mapped to a primary, so exclude them on the API server.
            ...(resource !== undefined && label !== undefined ? { labelSelector: label } : {}),
            ...(namespaces.length > 0 ? { namespaces: namespaces.includes("all") ? "all" : namespaces } : {}),
          };
          end(await addEntry(given, "eventSources", value));
        },
      )
      .command(
        "controller <name>",
        "Add a controller with a spec of its own, NAME.workflow.yaml",
        addController,
        async ({ crd, fromCluster, kubeconfig, context, ...given }) =>
          end(await addNewController(given, { files: crd, fromCluster, kubeconfig, context })),
      );
    return command;
  });
};

function addDependent<Options>(command: Argv<Options>) {
  return withDependencies(withEntry(command))
    .option("resource", {
      type: "string",
      requiresArg: true,
      demandOption: true,
      describe: `The kind of its objects: ${KIND}`,
    })
    .option("namespace", {
      type: "string",
      requiresArg: true,
      describe: "The namespace of its objects, if the primary is cluster-scoped",
    })
    .option("when", {
      type: "string",
      requiresArg: true,
      describe: "Reconcile it only while this expression is true: primary.spec.exposed === true",
    })
    .option("ready", {
      type: "boolean",
      default: false,
      describe: "Dependents that depend on it wait until it is ready",
    })
    .option("read-only", {
      type: "boolean",
      default: false,
      describe: "The operator only reads it; another client creates it",
    })
    .option("bulk", { type: "boolean", default: false, describe: "Its desired() returns any number of objects" })
    .check(({ name, resource }) => checkEntryName(name) ?? checkResource(resource) ?? true)
    .example("$0 add dependent deployment --resource apps/v1/Deployment --depends-on configMap --ready", "")
    .example(
      "$0 add dependent ingress --resource networking.k8s.io/v1/Ingress --when 'primary.spec.exposed === true'",
      "",
    );
}

function addExternal<Options>(command: Argv<Options>) {
  return addExternalOptions(withDependencies(withEntry(command)))
    .option("event-source", {
      type: "string",
      requiresArg: true,
      describe: "The event source of the spec that provides the resources",
    })
    .option("id-in-status", {
      type: "string",
      requiresArg: true,
      describe: "The status field of the primary that stores the id of the resource: databaseId",
    })
    .option("read-only", {
      type: "boolean",
      default: false,
      describe: "The operator only reads it; another client creates and deletes it",
    })
    .check(
      ({ name, ...given }) =>
        checkEntryName(name) ?? checkOneOf(given, ["poll", "per-primary-poll", "inbound", "event-source"]),
    )
    .example("$0 add external database --per-primary-poll 30s --id-in-status databaseId", "")
    .example("$0 add external quota --poll 5m --read-only", "");
}

function addSource<Options>(command: Argv<Options>) {
  return addExternalOptions(withEntry(command))
    .option("resource", { type: "string", requiresArg: true, describe: `The kind to watch: ${KIND}` })
    .option("label", {
      type: "string",
      requiresArg: true,
      describe: "The label that names the primary of an object [default: owner references]",
    })
    .option("mapped-by", {
      type: "string",
      requiresArg: true,
      describe: "Your function that maps an object to its primaries",
    })
    .option("namespaces", {
      type: "string",
      array: true,
      requiresArg: true,
      default: [] as string[],
      coerce: splitAtCommas,
      describe: "The namespaces to watch, or all: a b, or a,b [default: those of the controller]",
    })
    .check(({ name, resource, label, "mapped-by": mappedBy, namespaces, ...given }) => {
      const problem = checkEntryName(name) ?? (resource === undefined ? undefined : checkResource(resource));
      if (problem !== undefined) return problem;
      if (label !== undefined && mappedBy !== undefined) return "--label and --mapped-by are mutually exclusive";
      const isKindOnly = label !== undefined || mappedBy !== undefined || namespaces.length > 0;
      if (resource === undefined && isKindOnly) return "--label, --mapped-by and --namespaces require --resource";
      return checkOneOf({ ...given, resource }, ["resource", "poll", "per-primary-poll", "inbound"]);
    })
    .example("$0 add source pods --resource v1/Pod --label example.com/page", "")
    .example("$0 add source prices --poll 1m", "");
}

function addController<Options>(command: Argv<Options>) {
  return addCrdOptions(withProject(command))
    .positional("name", { type: "string", demandOption: true, describe: "The name of the controller" })
    .option("primary", {
      type: "string",
      requiresArg: true,
      describe: "The kind that it reconciles, such as example.com/v1/WebPage [default: that of the CRD]",
    })
    .check(({ name, primary, crd, "from-cluster": kinds }) => {
      if (primary === undefined && crd.length + (kinds as string[]).length === 0)
        return "one of --primary, --crd, or --from-cluster is required";
      return checkControllerName(name) ?? (primary === undefined ? undefined : checkResource(primary)) ?? true;
    })
    .example("$0 add controller backup --primary example.com/v1/Backup", "a kind that the project has")
    .example("$0 add controller backup --crd backups.example.com.yaml", "a kind that is new to it")
    .example("$0 add controller backup --from-cluster Backup", "the same, from the current cluster");
}

const KIND = "v1/ConfigMap, apps/v1/Deployment";

function withProject<Options>(command: Argv<Options>) {
  return command
    .option("project", {
      type: "string",
      requiresArg: true,
      default: ".",
      describe: "The folder with workflow.yaml",
    })
    .option("format", FORMAT_OPTION);
}

function withEntry<Options>(command: Argv<Options>) {
  return withProject(command)
    .positional("name", { type: "string", demandOption: true, describe: "The name in the spec and in code: configMap" })
    .option("controller", {
      type: "string",
      requiresArg: true,
      describe: "The controller, if the project has several",
    });
}

// Accepts comma-separated lists, like kubectl and the operator flags. Names contain no commas.
function splitAtCommas(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",").filter((each) => each !== ""));
}

function withDependencies<Options>(command: Argv<Options>) {
  return command.option("depends-on", {
    type: "string",
    array: true,
    requiresArg: true,
    default: [] as string[],
    coerce: splitAtCommas,
    describe: "The dependents that must be ready before it is reconciled: a b, or a,b",
  });
}

interface CommonArguments {
  readonly project: string;
  readonly name: string;
  readonly format: Format;
}

interface EntryArguments extends CommonArguments {
  readonly controller: string | undefined;
}

async function addEntry(
  { controller, ...common }: EntryArguments,
  section: AddOptions["section"],
  value: SpecEntry,
): Promise<number> {
  const { addToSpec } = await import("../add/add-to-spec.js");
  const { project, name } = common;
  const named = controller === undefined ? {} : { controller };
  return printAdded(
    await withProgress((onStep) => addToSpec({ project, ...named, section, name, value, onStep })),
    common,
  );
}

async function addNewController(
  { primary, ...common }: CommonArguments & { readonly primary: string | undefined },
  inputs: CommandInputs,
): Promise<number> {
  const { project, name, format } = common;
  const { files, diagnostics } = isEmpty(inputs)
    ? { files: [], diagnostics: [] }
    : await readProjectCrds(project, inputs);
  const found = relativeTo(project, diagnostics);
  if (hasErrors(found))
    return printOutcome(format, { diagnostics: found, project }, () => printDiagnostics(diagnostics));
  const { addController: add } = await import("../add/add-to-spec.js");
  const stated = primary === undefined ? {} : { primary };
  const result = await withProgress((onStep) => add({ project, name, ...stated, crdFiles: files, onStep }));
  return printAdded({ ...result, diagnostics: [...found, ...result.diagnostics] }, common);
}

function printAdded(result: AddResult, { project, name, format }: CommonArguments): Promise<number> {
  const { written = { created: [], updated: [], kept: [] }, wasPresent = false } = result;
  const outcome = generateOutcome(result, project);
  return printOutcome(format, { ...outcome, parts: { ...outcome.parts, written } }, () => {
    if (wasPresent) printLine(`${name} already exists`);
    for (const path of written.created) printLine(`created ${path}`);
    for (const path of written.updated) printLine(`updated ${path}`);
    printKept(written.kept);
    return printResult(result, { update: "npx gen-operator generate" });
  });
}

/** An entry of a spec. */
type SpecEntry = { readonly [field: string]: unknown };

const RESOURCE = /^(?:[a-z0-9.-]+\/)?v[a-z0-9]+\/[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?$/;
const NAME = /^[a-z][A-Za-z0-9]{0,62}$/;
const CONTROLLER = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** How the state of external resources is obtained. */
interface ExternalArguments {
  readonly poll?: string | undefined;
  readonly perPrimaryPoll?: string | undefined;
  readonly inbound: boolean;
}

/** Adds the options of {@link ExternalArguments}. */
function addExternalOptions<Options>(command: Argv<Options>) {
  return command
    .option("poll", {
      type: "string",
      requiresArg: true,
      describe: "Fetch all resources at this interval: 30s, 5m",
    })
    .option("per-primary-poll", {
      type: "string",
      requiresArg: true,
      describe: "Fetch the resources of each primary at this interval: 30s, 5m",
    })
    .option("inbound", {
      type: "boolean",
      default: false,
      describe: "Your code pushes the resources, for example from a webhook",
    });
}

/** Returns the field that sets how external resources are fetched. The checks of the options ensure that at most one is set. */
function externalEntry({ poll, perPrimaryPoll, inbound }: ExternalArguments): SpecEntry {
  return {
    ...(poll === undefined ? {} : { poll: { every: poll } }),
    ...(perPrimaryPoll === undefined ? {} : { perPrimaryPoll: { every: perPrimaryPoll } }),
    ...(inbound ? { inbound: {} } : {}),
  };
}

/** Returns true if exactly one of the options is set, and otherwise the message of the usage error. */
function checkOneOf(given: SpecEntry, names: readonly string[]): true | string {
  const stated = names.filter((name) => given[name] !== undefined && given[name] !== false);
  const options = names.map((name) => `--${name}`);
  if (stated.length === 1) return true;
  if (stated.length === 0) return `one of ${options.slice(0, -1).join(", ")}, or ${options.at(-1)} is required`;
  return `${stated.map((name) => `--${name}`).join(" and ")} are mutually exclusive`;
}

/** Returns the problem of the name of a dependent or an event source; undefined if it is valid. */
function checkEntryName(name: unknown): string | undefined {
  return checkName(name, NAME, "configMap");
}

/** Returns the problem of the name of a controller; undefined if it is valid. */
function checkControllerName(name: unknown): string | undefined {
  return checkName(name, CONTROLLER, "web-page");
}

function checkName(name: unknown, pattern: RegExp, example: string): string | undefined {
  if (typeof name === "string" && pattern.test(name)) return undefined;
  return `invalid name ${JSON.stringify(name)}: must be a name such as ${example}`;
}

/** Returns the problem of a kind; undefined if it is valid. */
function checkResource(resource: unknown): string | undefined {
  if (typeof resource === "string" && RESOURCE.test(resource)) return undefined;
  return `invalid kind ${JSON.stringify(resource)}: must be a kind such as v1/ConfigMap or apps/v1/Deployment`;
}
