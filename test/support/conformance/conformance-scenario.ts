// Scenarios of the conformance suite: requests as data. A file of YAML holds an area, `scenarios: { title: [step, …] }`.
// A step is "METHOD path", or a mapping whose first key is the method:
//
//   - POST: $cm?fieldManager=me
//     kind: ConfigMap                      # fills in apiVersion and kind
//     body: { metadata: { name: a } }
//     save: a                              # later steps may write ${a.metadata.uid}
//   - { WATCH: "$cm?watch=true", count: 2 }
//
// $ns is a namespace of the scenario's own, $cm and the like are the paths of a type in it.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { repositoryRoot } from "../repository.js";

/** One request, or one look at an open watch. */
export interface Step {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "WATCH" | "EVENTS";
  /** The path and query; the name of an open watch for EVENTS. */
  target: string;
  kind?: string;
  /** The body, text as it is; with `base` a merge patch of a saved answer. */
  body?: unknown;
  base?: string;
  /** Short for the content type: merge, json-patch, strategic, apply, yaml, or any other in full. */
  as?: string;
  accept?: string;
  /** Headers besides, such as those of impersonation. */
  headers?: Record<string, string>;
  save?: string;
  /** Asks again until the answer has this status, or matches this regular expression. */
  until?: string | number;
  /** Of the answer, only these members are compared. */
  pick?: string[];
  /** WATCH: keeps the watch open under this name. */
  open?: string;
  /** WATCH and EVENTS: how many events are read. */
  count?: number;
  /** WATCH and EVENTS: the type of the last event that is read; without it and a count, all until the stream ends. */
  last?: string;
  /** WATCH and EVENTS: the name of the object of the last event that is read. */
  lastName?: string;
  /** Sent and not compared. */
  silent?: boolean;
}

/** A law of the API server, as the requests that show it. */
export interface Scenario {
  area: string;
  title: string;
  steps: Step[];
}

const folder = join(repositoryRoot, "test/conformance/scenarios");

/** Names the areas: one file each. */
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
