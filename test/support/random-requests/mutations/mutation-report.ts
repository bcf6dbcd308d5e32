// Compares the responses of two servers in many random cases. Environment variables set the number of cases and the seed.
import { writeFileSync } from "node:fs";
import { startApiServer } from "#apiserver/index.js";
import type { Difference } from "../../conformance/conformance-golden.js";
import type { Step } from "../../conformance/conformance-scenario.js";
import fc, { type Arbitrary } from "../../fast-check.js";
import { borrowControlPlane } from "../../machine/borrow-control-plane.js";
import { assert, suite } from "../../suite.js";
import type { Disagreement, Servers } from "../differential.js";
import { readKnownPatterns } from "../known-patterns.js";

const COUNT = Number(process.env["TEST_RANDOM_COUNT"] ?? 600);
const SEED = Number(process.env["TEST_RANDOM_SEED"] ?? 1);
/** A file to write all differences to, in addition to the test failure. */
const REPORT = process.env["TEST_RANDOM_REPORT"];

/** The number of concurrent cases; the real server often waits for its disk. */
const AT_ONCE = 4;

/** Pods are rejected without this ServiceAccount, and no controller creates it. It mounts no token, because the name of that volume is random. */
export const SERVICE_ACCOUNT: Step = {
  method: "POST",
  target: "$sa",
  kind: "ServiceAccount",
  body: { metadata: { name: "default" }, automountServiceAccountToken: false },
  silent: true,
};

/** The options of a comparison. */
export interface Trial<Case> {
  readonly cases: Arbitrary<Case>;
  /** The file with known differences. */
  readonly knownFile: string;
  /** The noun for the compared items. */
  readonly noun: string;
  /** The timeout of a case on a slow machine. */
  readonly caseTimeoutMs: number;
  /** Compares a case; returns a description of the difference, or undefined, for each item. */
  readonly tryOne: (servers: Servers, one: Case) => Promise<(string | undefined)[]>;
}

/** Declares a suite that compares random cases with a real API server. */
export function suiteOfTrials<Case>(title: string, trial: Trial<Case>): void {
  suite(title, (test) => {
    test(
      "get the same responses from the embedded server as from kube-apiserver, except known differences",
      async () => {
        await using plane = await borrowControlPlane();
        await using embedded = await startApiServer();
        const { unknown, text } = await tryCases({ real: plane, embedded }, trial);
        if (REPORT !== undefined) writeFileSync(REPORT, text);
        assert.is(unknown, 0, text);
      },
      { timeoutMs: 120_000 + COUNT * trial.caseTimeoutMs },
    );
  });
}

/** Compares all cases; counts and describes unknown differences. */
async function tryCases<Case>(servers: Servers, trial: Trial<Case>): Promise<{ unknown: number; text: string }> {
  const known = readKnownPatterns(trial.knownFile);
  const cases = fc.sample(trial.cases, { seed: SEED, numRuns: COUNT }).values();
  const count = { all: 0, alike: 0, known: 0, unknown: 0 };
  const found: string[] = [];
  const tryMore = async () => {
    for (const one of cases)
      for (const text of await trial.tryOne(servers, one)) {
        const isKnown = text !== undefined && known.some((pattern) => pattern.test(text));
        count.all++;
        count[text === undefined ? "alike" : isKnown ? "known" : "unknown"]++;
        if (text !== undefined && !isKnown) found.push(text);
      }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, tryMore));
  const { all, alike, unknown } = count;
  const summary = `of ${all} ${trial.noun} ${alike} are answered alike, ${count.known} differ as is known, ${unknown} otherwise`;
  return { unknown, text: [summary, ...found].join("\n\n") };
}

/** Describes what was compared, its changes, and the parts of each response that the other lacks. */
export function describeDisagreement(
  { subject, changes }: { subject: string; changes: readonly string[] },
  { differences }: Disagreement,
): string {
  const shown = differences.find(({ path }) => path.endsWith("body/message")) ?? differences[0];
  if (shown === undefined) throw new Error("a disagreement without a difference");
  const { golden, answered } = partsOf(shown);
  return `${subject} ${shown.path}\n  ${changes.join("; ")}\n  real:     ${golden}\n  embedded: ${answered}`;
}

/** Returns the errors of each message that the other lacks, or the values if they are not strings. */
function partsOf({ golden, answered }: Difference): { golden: string; answered: string } {
  if (typeof golden !== "string" || typeof answered !== "string")
    return { golden: JSON.stringify(golden) ?? "nothing", answered: JSON.stringify(answered) ?? "nothing" };
  const errorsOf = (message: string) => message.replace(/^.*? is invalid: \[?/, "").split(/, (?=[a-z]\w*[.[:])/);
  const [ofReal, ofEmbedded] = [errorsOf(golden), errorsOf(answered)];
  const without = (errors: string[], others: string[]) => errors.filter((each) => !others.includes(each)).join(", ");
  return { golden: without(ofReal, ofEmbedded), answered: without(ofEmbedded, ofReal) };
}
