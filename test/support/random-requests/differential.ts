// Sends sequences of requests to two servers, and shrinks those with different responses.
import type { Connection } from "../api/api-request.js";
import { differencesOf, type Difference } from "../conformance/conformance-golden.js";
import { normaliseOutcomes } from "../conformance/conformance-normalise.js";
import { playScenario, type StepOutcome } from "../conformance/conformance-play.js";
import type { Step } from "../conformance/conformance-scenario.js";

/** A sequence with different responses. */
export interface Disagreement {
  /** Identifies the difference: the request, and the paths where the responses differ. */
  signature: string;
  steps: Step[];
  /** The number of the step with different responses, starting at 1 and excluding silent steps. */
  step: number;
  differences: Difference[];
}

/** The reference server, and the server to compare with it. */
export interface Servers {
  real: Connection;
  embedded: Connection;
}

const TIMEOUT_MS = 20_000;
let played = 0;

/** Runs the steps on both servers; returns the first difference, or undefined. Later differences may be consequences of the first. */
export async function findDisagreement(servers: Servers, steps: Step[]): Promise<Disagreement | undefined> {
  return (await findDisagreements(servers, steps))[0];
}

/** Runs the steps on both servers; returns the steps with different responses. */
export async function findDisagreements(servers: Servers, steps: Step[]): Promise<Disagreement[]> {
  const [real, embedded] = await Promise.all([playSteps(servers.real, steps), playSteps(servers.embedded, steps)]);
  const differences = differencesOf(comparable(real), comparable(embedded), { isShared: true });
  const shown = steps.filter(({ silent }) => silent !== true);
  return shown.flatMap((request, index) => {
    const ofStep = differences.filter(({ path }) => Number(path.split("/")[0]) === index + 1);
    if (ofStep.length === 0) return [];
    return [{ signature: signatureOf(request, ofStep), steps, step: index + 1, differences: ofStep }];
  });
}

interface Played {
  namespace: string;
  outcomes: StepOutcome[];
}

/** Runs the steps on a server in a new namespace. */
export async function playSteps(connection: Connection, steps: Step[]): Promise<Played> {
  const namespace = `random-${process.pid}-${++played}-of-steps`;
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not played in ${TIMEOUT_MS} ms: ${JSON.stringify(steps)}`)), TIMEOUT_MS);
  });
  try {
    const scenario = { area: "random", title: namespace, steps };
    return { namespace, outcomes: await Promise.race([playScenario(connection, scenario, namespace), timeout]) };
  } finally {
    clearTimeout(timer);
  }
}

function comparable({ namespace, outcomes }: Played): StepOutcome[] {
  return normaliseOutcomes(outcomes, namespace).map(withoutChance);
}

/** Validation of an apply stops at the first undeclared field, and Go iterates over fields in random order. */
function withoutChance(outcome: StepOutcome): StepOutcome {
  const { message } = (outcome.body ?? {}) as { message?: string };
  if (message?.includes("field not declared in schema") !== true) return outcome;
  const start = message.slice(0, message.indexOf("): ") + 3);
  return { ...outcome, body: { ...(outcome.body as object), message: `${start}field not declared in schema` } };
}

function signatureOf(step: Step, differences: Difference[]): string {
  const [path] = step.target.split("?");
  const resource = path?.replace(/\/[a-c](?=\/|$)/, "/NAME");
  const paths = differences.map(({ path }) => path.replace(/^\d+\//, "").replace(/\/\d+(?=\/|$)/g, "/N"));
  const [difference] = differences;
  const status =
    difference?.path.endsWith("/status") === true ? ` ${String(difference.golden)}≠${String(difference.answered)}` : "";
  return `${step.method} ${resource} ${step.as ?? ""}: ${[...new Set(paths)].slice(0, 3).join(" ")}${status}`;
}

/** Removes steps, and then members of their bodies and parameters, as long as the difference remains. */
export async function shrink(servers: Servers, found: Disagreement, deadline: number): Promise<Disagreement> {
  let best = found;
  for (let hasShrunk = true; hasShrunk;) {
    hasShrunk = false;
    for (const steps of smallerSequences(best.steps)) {
      if (Date.now() > deadline) return best;
      const smaller = await findDisagreement(servers, steps).catch(() => undefined);
      if (smaller?.signature !== found.signature) continue;
      best = smaller;
      hasShrunk = true;
      break;
    }
  }
  return best;
}

function* smallerSequences(steps: Step[]): Generator<Step[]> {
  // Keep silent steps and the one that opens the watch, because the events of the watch are a step.
  for (let index = steps.length - 1; index >= 0; index--)
    if (steps[index]?.open === undefined && steps[index]?.silent !== true) yield steps.toSpliced(index, 1);
  for (const [index, step] of steps.entries())
    for (const smaller of smallerSteps(step)) yield steps.with(index, smaller);
}

function* smallerSteps(step: Step): Generator<Step> {
  const [path, query] = step.target.split("?");
  if (query !== undefined && step.open === undefined)
    for (const parameter of query.split("&")) {
      const rest = query.split("&").filter((other) => other !== parameter);
      yield { ...step, target: rest.length === 0 ? `${path}` : `${path}?${rest.join("&")}` };
    }
  if (step.silent !== true) for (const body of smallerValues(step.body)) yield { ...step, body };
}

function* smallerValues(value: unknown): Generator<unknown> {
  if (value === null || typeof value !== "object") return;
  if (Array.isArray(value)) {
    for (const index of value.keys()) yield value.toSpliced(index, 1);
    for (const [index, item] of value.entries())
      for (const smaller of smallerValues(item)) yield value.with(index, smaller);
    return;
  }
  const entries = Object.entries(value as Record<string, unknown>);
  for (const [key] of entries) yield Object.fromEntries(entries.filter(([other]) => other !== key));
  for (const [key, member] of entries) for (const smaller of smallerValues(member)) yield { ...value, [key]: smaller };
}
