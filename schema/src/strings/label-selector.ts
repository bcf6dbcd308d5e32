const KEY = String.raw`(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`;
const VALUE = String.raw`(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?`;

// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors, and ">" and "<", which the parser has, too.
const REQUIREMENT = new RegExp(
  String.raw`^\s*(?:!\s*${KEY}|${KEY}(?:\s*(?:==?|!=)\s*${VALUE}|\s*[<>]\s*-?[0-9]+|\s+(?:in|notin)\s*\(\s*${VALUE}(?:\s*,\s*${VALUE})*\s*\))?)\s*$`,
);

const LABEL_KEY = new RegExp(`^${KEY}$`);

/** Tells whether a text can be the key of a label. */
export function isLabelKey(text: string): boolean {
  return LABEL_KEY.test(text);
}

/** A part of a label selector. */
export interface LabelRequirement {
  readonly text: string;
  /** Where it begins in the selector. */
  readonly offset: number;
}

/** Returns the parts of a label selector that no API server accepts; an empty selector has none. */
export function findWrongRequirements(selector: string): LabelRequirement[] {
  return selector === "" ? [] : requirementsOf(selector).filter(({ text }) => !REQUIREMENT.test(text));
}

/** Splits a selector at the commas that are not in parentheses. */
function requirementsOf(selector: string): LabelRequirement[] {
  return [...selector.matchAll(/(?<=^|,)(?:\([^)]*\)|[^,(])*(?:\([^)]*$)?(?=,|$)/g)].map(({ 0: text, index }) => ({
    text,
    offset: index,
  }));
}
