import { type Acceptor, type Rule, didYouMean, quote } from "../diagnostic.js";
import { RULES } from "./rule-registry.js";

/** Descriptions of the parts of a spec that can have an `accept` entry. */
const ACCEPTORS: { readonly [acceptor in Acceptor]: string } = {
  controller: "the spec of the controller",
  dependent: "the dependent",
  eventSource: "the event source",
  extraRule: "the rule of rbac.extra",
};

/** Lists all rules, one per line. */
export function listRules(): string {
  const width = Math.max(...RULES.map(({ id }) => id.length));
  return RULES.map(({ id, page }) => `${id.padEnd(width)}  ${page.meaning}`).join("\n");
}

/**
 * Explains a rule: its meaning, how to fix or accept it, and an example. Returns a problem with a suggestion if no rule has the name; `fields` are
 * further candidates for the suggestion.
 */
export function explainRule(
  name: string,
  fields: readonly string[] = [],
): { readonly text: string } | { readonly problem: string } {
  const rule = RULES.find(({ id }) => id === name);
  if (rule === undefined) {
    const candidates = [...RULES.map(({ id }) => id), ...fields];
    const hint = didYouMean(name, candidates)?.hint ?? "run gen-operator explain to list all rules";
    return { problem: `rule or field ${quote(name)} not found; ${hint}` };
  }
  return { text: textOf(rule) };
}

function textOf({ id, acceptedBy, page: { meaning, remedy, example } }: Rule): string {
  const subject = listed(acceptedBy.map((acceptor) => ACCEPTORS[acceptor]));
  return [
    ...[id, "", meaning, "", `What to do: ${remedy}`],
    ...(subject === ""
      ? []
      : [`To accept it, add to ${subject}: accept: [{ rule: ${id}, reason: why it is acceptable here }]`]),
    ...(example === undefined
      ? []
      : [`Example: fixtures/rejected/${example} of the repository, with the exact output.`]),
  ].join("\n");
}

/** Joins alternatives: `a, b or c`. */
function listed(alternatives: readonly string[]): string {
  return alternatives.join(", ").replace(/, ([^,]*)$/, " or $1");
}
