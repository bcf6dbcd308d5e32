import { didYouMean, quote } from "../diagnostic.js";
import { RULE_PAGES } from "./rule-pages.js";

/** What a dependent can accept. */
const ACCEPTABLE: ReadonlySet<string> = new Set([
  "cleanup-input",
  "conditional-dependency",
  "constant-condition",
  "floating-promise",
  "foreign-namespace",
  "immutable-kind",
  "powerful-right",
  "unordered-read",
  "unread-detail",
]);

/** Accepted in `spec.accept`. */
const OF_CONTROLLERS: ReadonlySet<string> = new Set([
  "crd-empty-object",
  "crd-subresource",
  "inexact-number",
  "unchecked-rule",
  "unconverted-version",
  "unqualified-finalizer",
]);

/** Lists all rules, a line for each. */
export function listRules(): string {
  const width = Math.max(...[...RULE_PAGES.keys()].map((rule) => rule.length));
  return [...RULE_PAGES].map(([rule, { meaning }]) => `${rule.padEnd(width)}  ${meaning}`).join("\n");
}

/** Explains a rule: what it means, what to do, how to accept it, and where an example is; or says that there is none, nor one of the `fields`. */
export function explainRule(
  rule: string,
  fields: readonly string[] = [],
): { readonly text: string } | { readonly problem: string } {
  const page = RULE_PAGES.get(rule);
  if (page === undefined) {
    const hint = didYouMean(rule, [...RULE_PAGES.keys(), ...fields])?.hint ?? "gen-operator explain lists all rules";
    return { problem: `there is no rule or field of a spec ${quote(rule)}; ${hint}` };
  }
  const { meaning, remedy, example } = page;
  const subject =
    rule === "powerful-right"
      ? "the dependent, the event source or the rule of rbac.extra"
      : OF_CONTROLLERS.has(rule)
        ? "the spec of the controller"
        : "the dependent";
  const accept = `accept: [{ rule: ${rule}, reason: why it is right here }]`;
  return {
    text: [
      ...[rule, "", meaning, "", `What to do: ${remedy}`],
      ...(ACCEPTABLE.has(rule) || OF_CONTROLLERS.has(rule) ? [`To accept it, give ${subject}: ${accept}`] : []),
      ...(example === undefined
        ? []
        : [`Example: fixtures/rejected/${example} of the repository, with the exact output.`]),
    ].join("\n"),
  };
}
