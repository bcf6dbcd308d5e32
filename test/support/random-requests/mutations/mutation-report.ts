// Tries many cases on two servers, and says what they answer differently.
import type { Difference } from "../../conformance/conformance-golden.js";
import type { Step } from "../../conformance/conformance-scenario.js";
import type { Disagreement } from "../differential.js";
import { readKnownPatterns } from "../known-patterns.js";

/** Cases that are tried at the same time: the real server waits for its disk. */
const AT_ONCE = 4;

/** No controller runs that would make it, and no Pod is let in without it. Without a token, as the volume of one has a name by chance. */
export const SERVICE_ACCOUNT: Step = {
  method: "POST",
  target: "$sa",
  kind: "ServiceAccount",
  body: { metadata: { name: "default" }, automountServiceAccountToken: false },
  silent: true,
};

/** How cases are tried. */
export interface Trial<Case> {
  readonly cases: readonly Case[];
  /** The file of what is known to differ. */
  readonly knownFile: string;
  /** What is counted. */
  readonly noun: string;
  /** Tries a case: for each thing that is counted, what differs in words. */
  readonly tryOne: (one: Case) => Promise<(string | undefined)[]>;
}

/** Tries all cases; what is not known to differ is counted and described. */
export async function tryCases<Case>(trial: Trial<Case>): Promise<{ unknown: number; text: string }> {
  const known = readKnownPatterns(trial.knownFile);
  const cases = trial.cases.values();
  const count = { all: 0, alike: 0, known: 0, unknown: 0 };
  const found: string[] = [];
  const tryMore = async () => {
    for (const one of cases)
      for (const text of await trial.tryOne(one)) {
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

/** What was tried, what was changed, and of both answers what the other does not have. */
export function describeDisagreement(
  { subject, changes }: { subject: string; changes: readonly string[] },
  { differences }: Disagreement,
): string {
  const shown = differences.find(({ path }) => path.endsWith("body/message")) ?? differences[0];
  if (shown === undefined) throw new Error("a disagreement without a difference");
  const { golden, answered } = partsOf(shown);
  return `${subject} ${shown.path}\n  ${changes.join("; ")}\n  real:     ${golden}\n  embedded: ${answered}`;
}

/** The errors of a message that the other does not have; else the values. */
function partsOf({ golden, answered }: Difference): { golden: string; answered: string } {
  if (typeof golden !== "string" || typeof answered !== "string")
    return { golden: JSON.stringify(golden) ?? "nothing", answered: JSON.stringify(answered) ?? "nothing" };
  const errorsOf = (message: string) => message.replace(/^.*? is invalid: \[?/, "").split(/, (?=[a-z]\w*[.[:])/);
  const [ofReal, ofEmbedded] = [errorsOf(golden), errorsOf(answered)];
  const without = (errors: string[], others: string[]) => errors.filter((each) => !others.includes(each)).join(", ");
  return { golden: without(ofReal, ofEmbedded), answered: without(ofEmbedded, ofReal) };
}
