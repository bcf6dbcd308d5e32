// Validates names, labels, label selectors, and keys, with the error messages of Kubernetes 1.36.
import { randomInt } from "node:crypto";

const QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE = `(${QUALIFIED})?`;
const SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED_RULE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}')`;
const LABEL_VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  `'${LABEL_VALUE}')`;
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  `end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`;

const UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const UNDERSCORED_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and " +
  `end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${UNDERSCORED}')`;

const DNS_1123_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_1123_LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const DNS_1035_RULE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an " +
  "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const CONFIG_KEY = /^[-._a-zA-Z0-9]+$/;
const CONFIG_KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or " +
  "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

const underscoredPattern = new RegExp(`^${UNDERSCORED}$`);
const qualifiedPattern = new RegExp(`^${QUALIFIED}$`);
const labelValuePattern = new RegExp(`^${LABEL_VALUE}$`);
const subdomainPattern = new RegExp(`^${SUBDOMAIN}$`);

/** Validates a qualified name, such as a label key or a finalizer: `[prefix/]name`. */
export function qualifiedNameProblems(key: string): string[] {
  const parts = key.split("/");
  if (parts.length > 2) {
    return [
      `a valid label key ${QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) as string;
  const problems = parts.length === 2 ? prefixProblems(parts[0] as string) : [];
  if (name === "") problems.push("name part must be non-empty");
  else if (byteLength(name) > 63) problems.push("name part must be no more than 63 bytes");
  if (!qualifiedPattern.test(name)) problems.push(`name part ${QUALIFIED_RULE}`);
  return problems;
}

function prefixProblems(prefix: string): string[] {
  if (prefix === "") return ["prefix part must be non-empty"];
  // The error for the prefix counts bytes, that for the name counts characters.
  return subdomainProblems(prefix).map((problem) => `prefix part ${problem.replace(/characters$/, "bytes")}`);
}

/** Validates a label value. */
export function labelValueProblems(value: string): string[] {
  return [
    ...(byteLength(value) > 63 ? ["must be no more than 63 bytes"] : []),
    ...(labelValuePattern.test(value) ? [] : [LABEL_VALUE_RULE]),
  ];
}

/** Validates a DNS-1123 subdomain, the format of most object names. */
export function subdomainProblems(name: string): string[] {
  return [
    ...(byteLength(name) > 253 ? ["must be no more than 253 characters"] : []),
    ...(subdomainPattern.test(name) ? [] : [SUBDOMAIN_RULE]),
  ];
}

/** Validates a DNS-1123 subdomain that may contain underscores. */
export function underscoredProblems(name: string): string[] {
  return [
    ...(byteLength(name) > 253 ? ["must be no more than 253 characters"] : []),
    ...(underscoredPattern.test(name) ? [] : [UNDERSCORED_RULE]),
  ];
}

/** Validates a name, or the prefix of a name, that becomes a path segment. */
export function pathSegmentProblems(name: string, { isPrefix = false } = {}): string[] {
  if (!isPrefix && (name === "." || name === "..")) return [`may not be '${name}'`];
  return ["/", "%"].filter((part) => name.includes(part)).map((part) => `may not contain '${part}'`);
}

/** Validates a DNS-1123 label. */
export function labelNameProblems(name: string): string[] {
  const isDotted = name.includes(".") && subdomainProblems(name).length === 0;
  return [
    ...(byteLength(name) > 63 ? ["must be no more than 63 characters"] : []),
    ...(DNS_1123_LABEL.test(name) ? [] : [isDotted ? "must not contain dots" : DNS_1123_LABEL_RULE]),
  ];
}

/** Validates a DNS-1035 label, which starts with a letter. */
export function dns1035Problems(name: string): string[] {
  return [
    ...(byteLength(name) > 63 ? ["must be no more than 63 characters"] : []),
    ...(DNS_1035.test(name) ? [] : [DNS_1035_RULE]),
  ];
}

/** Validates a DNS-1035 label; returns all problems in one message, or undefined. */
export function dns1035Problem(text: string): string | undefined {
  const problems = dns1035Problems(text);
  return problems.length === 0 ? undefined : problems.join(",");
}

/** Validates a kind, a DNS-1035 label that may have upper-case letters; returns undefined if it is valid. */
export function kindProblem(kind: string): string | undefined {
  const problem = dns1035Problem(kind.toLowerCase());
  return problem === undefined ? undefined : `may have mixed case, but should otherwise match: ${problem}`;
}

/** Validates a port name. */
export function portNameProblems(name: string): string[] {
  return [
    ...(byteLength(name) > 15 ? ["must be no more than 15 characters"] : []),
    ...(/^[-a-z0-9]+$/.test(name) ? [] : ["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"]),
    ...(/[a-z]/.test(name) ? [] : ["must contain at least one letter (a-z)"]),
    ...(name.includes("--") ? ["must not contain consecutive hyphens"] : []),
    ...(/^-|-$/.test(name) ? ["must not begin or end with a hyphen"] : []),
  ];
}

/** Validates a key of a ConfigMap or Secret, which becomes a file name. */
export function configKeyProblems(key: string): string[] {
  const isParent = key === "." || key === "..";
  return [
    ...(key.length > 253 ? ["must be no more than 253 characters"] : []),
    ...(CONFIG_KEY.test(key) ? [] : [CONFIG_KEY_RULE]),
    ...(isParent ? [`must not be '${key}'`] : key.startsWith("..") ? ["must not start with '..'"] : []),
  ];
}

const LABEL_KEY_SYNTAX = String.raw`(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`;
const LABEL_VALUE_SYNTAX = String.raw`(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?`;

// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors, and the operators ">" and "<", which the parser also
// accepts.
const REQUIREMENT = new RegExp(
  String.raw`^\s*(?:!\s*${LABEL_KEY_SYNTAX}|${LABEL_KEY_SYNTAX}(?:\s*(?:==?|!=)\s*${LABEL_VALUE_SYNTAX}|\s*[<>]\s*-?[0-9]+|\s+(?:in|notin)\s*\(\s*${LABEL_VALUE_SYNTAX}(?:\s*,\s*${LABEL_VALUE_SYNTAX})*\s*\))?)\s*$`,
);

const LABEL_KEY = new RegExp(`^${LABEL_KEY_SYNTAX}$`);

/** Returns whether a string is a valid label key. */
export function isLabelKey(text: string): boolean {
  return LABEL_KEY.test(text);
}

/** A requirement of a label selector. */
export interface LabelRequirement {
  readonly text: string;
  /** The index of its first character in the selector. */
  readonly offset: number;
}

/** Returns the requirements of a label selector that the API server rejects. An empty selector is valid. */
export function findWrongRequirements(selector: string): LabelRequirement[] {
  return selector === "" ? [] : requirementsOf(selector).filter(({ text }) => !REQUIREMENT.test(text));
}

/** Splits a selector at the commas outside of parentheses. */
function requirementsOf(selector: string): LabelRequirement[] {
  return [...selector.matchAll(/(?<=^|,)(?:\([^)]*\)|[^,(])*(?:\([^)]*$)?(?=,|$)/g)].map(({ 0: text, index }) => ({
    text,
    offset: index,
  }));
}

/** The characters of generated names: no vowels, to avoid forming words, and no characters that resemble others. */
export const NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789";

const ENDING_LENGTH = 5;
// A DNS label holds the base and the suffix.
const MAX_BASE_LENGTH = 63 - ENDING_LENGTH;

/** Generates a name from a prefix, as the API server does for `generateName`. */
export function generateName(base: string): string {
  const ending = Array.from({ length: ENDING_LENGTH }, () => NAME_CHARACTERS[randomInt(NAME_CHARACTERS.length)]);
  return base.slice(0, MAX_BASE_LENGTH) + ending.join("");
}

function byteLength(text: string): number {
  return Buffer.byteLength(text, "utf8");
}
