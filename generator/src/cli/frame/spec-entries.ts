import type { Argv } from "yargs";

/** What is written into a spec. */
export type SpecEntry = { readonly [field: string]: unknown };

const RESOURCE = /^(?:[a-z0-9.-]+\/)?v[a-z0-9]+\/[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?$/;
const NAME = /^[a-z][A-Za-z0-9]{0,62}$/;
const CONTROLLER = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** The ways in which resources from outside Kubernetes become known. */
export interface ExternalArguments {
  readonly poll?: string | undefined;
  readonly perPrimaryPoll?: string | undefined;
  readonly inbound: boolean;
}

/** Adds the options of `ExternalArguments`. */
export function addExternalOptions<Options>(command: Argv<Options>) {
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

/** Returns the fields that say where external resources come from; at most one of them is there. */
export function externalEntry({ poll, perPrimaryPoll, inbound }: ExternalArguments): SpecEntry {
  return {
    ...(poll === undefined ? {} : { poll: { every: poll } }),
    ...(perPrimaryPoll === undefined ? {} : { perPrimaryPoll: { every: perPrimaryPoll } }),
    ...(inbound ? { inbound: {} } : {}),
  };
}

/** Says what is wrong unless exactly one of some options is given; `true` if all is well. */
export function checkOneOf(given: SpecEntry, names: readonly string[]): true | string {
  const stated = names.filter((name) => given[name] !== undefined && given[name] !== false);
  const options = names.map((name) => `--${name}`);
  if (stated.length === 1) return true;
  if (stated.length === 0) return `say where the resources come from: ${options.join(", ")}`;
  return `${stated.map((name) => `--${name}`).join(" and ")} exclude each other`;
}

/** Says what is wrong with the name of a dependent or of an event source. */
export function checkEntryName(name: unknown): string | undefined {
  return checkName(name, NAME, "configMap");
}

/** Says what is wrong with the name of a controller. */
export function checkControllerName(name: unknown): string | undefined {
  return checkName(name, CONTROLLER, "web-page");
}

function checkName(name: unknown, pattern: RegExp, example: string): string | undefined {
  if (typeof name === "string" && pattern.test(name)) return undefined;
  return `${JSON.stringify(name)} is no name: expected one such as ${example}`;
}

/** Says what is wrong with the name of a kind. */
export function checkResource(resource: unknown): string | undefined {
  if (typeof resource === "string" && RESOURCE.test(resource)) return undefined;
  return `${JSON.stringify(resource)} is no kind: expected one such as v1/ConfigMap or apps/v1/Deployment`;
}
