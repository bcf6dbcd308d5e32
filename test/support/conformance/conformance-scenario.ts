// Scenarios of the conformance suite, written as YAML. A file describes an area: `scenarios: { title: [step, …] }`.
// A step is "METHOD path", or a mapping whose first key is the method:
//
//   - POST: $cm?fieldManager=me
//     kind: ConfigMap                      # sets apiVersion and kind
//     body: { metadata: { name: a } }
//     save: a                              # later steps can use ${a.metadata.uid}
//   - { WATCH: "$cm?watch=true", count: 2 }
//
// $ns is the namespace of the scenario, and variables such as $cm are the paths of resources in it.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { repositoryRoot } from "../repository.js";

/** A request, or reading from an open watch. */
export interface Step {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "WATCH" | "EVENTS";
  /** The path and query; for EVENTS, the name of an open watch. */
  target: string;
  kind?: string;
  /** The body; a string is sent as it is. With `base`, it is a merge patch for a saved response. */
  body?: unknown;
  base?: string;
  /** The content type: merge, json-patch, strategic, apply, yaml, or a full one. */
  as?: string;
  accept?: string;
  /** Additional headers, for example for impersonation. */
  headers?: Record<string, string>;
  save?: string;
  /** Repeats the request until the response has this status or matches this regular expression. */
  until?: string | number;
  /** The members of the response to compare. Default: all */
  pick?: string[];
  /** WATCH: keeps the watch open under this name. */
  open?: string;
  /** WATCH and EVENTS: the number of events to read. */
  count?: number;
  /** WATCH and EVENTS: the type of the last event to read. Without `last` and `count`, all events are read until the stream ends. */
  last?: string;
  /** WATCH and EVENTS: the name of the object of the last event to read. */
  lastName?: string;
  /** Whether the outcome is ignored. */
  silent?: boolean;
}

/** An invariant of the API server, with the requests that demonstrate it. */
export interface Scenario {
  area: string;
  title: string;
  steps: Step[];
}

const folder = join(repositoryRoot, "test/conformance/scenarios");

/** Lists the areas; each has one file. */
export function scenarioAreas(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => basename(name, ".yaml"))
    .sort();
}

/** Reads the scenarios of an area. */
export function readScenarios(area: string): Scenario[] {
  const text = readFileSync(join(folder, `${area}.yaml`), "utf8");
  const { scenarios } = parse(text, { merge: true }) as { scenarios: Record<string, unknown[]> };
  return Object.entries(scenarios).map(([title, steps]) => ({ area, title, steps: steps.map(parseStep) }));
}

function parseStep(step: unknown): Step {
  if (typeof step === "string") {
    const [method, target] = step.split(" ");
    return { method, target } as Step;
  }
  const [[method, target], ...members] = Object.entries(step as object) as [[string, string], ...[string, unknown][]];
  return { method, target, ...Object.fromEntries(members) } as Step;
}
