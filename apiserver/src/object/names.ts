import { exactAddressProblems } from "../builtin/rules/address-syntax.js";
import { quote } from "../errors/quote.js";
import { badRequest } from "../errors/status-error.js";
import { pathSegmentProblems, subdomainProblems } from "../builtin/rules/name-syntax.js";

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const labelPattern = new RegExp(`^${LABEL}$`);

/** How a type restricts the names of its objects. */
export type NameRule = "subdomain" | "label" | "path-segment" | "namespace" | "address" | "long-name";

/** Checks a name and returns what is wrong with it; the base of a generated name may end in a dash. */
export function checkName(rule: NameRule, name: string, { isPrefix = false } = {}): string[] {
  // Of a long name only what was generated is looked at, and it is counted in bytes.
  if (rule === "long-name")
    return isPrefix ? [] : subdomainProblems(name).map((problem) => problem.replace(/ characters$/, " bytes"));
  if (rule === "path-segment") return pathSegmentProblems(name, { isPrefix });
  // As Kubernetes has it, one letter stands for the dash at the end of a prefix and for what is before the dash.
  const tried = isPrefix ? name.replace(/.-$/s, "a") : name;
  // Labels count bytes, names count characters.
  if (rule === "address") return exactAddressProblems(tried);
  if (rule === "subdomain") return subdomainProblems(tried);
  return checkLabel(tried);
}

function checkLabel(text: string): string[] {
  const isDotted = text.includes(".") && subdomainProblems(text).length === 0;
  return [
    ...(text.length > 63 ? ["must be no more than 63 characters"] : []),
    ...(labelPattern.test(text) ? [] : [isDotted ? "must not contain dots" : LABEL_TEXT]),
  ];
}

/** Fails for the name of a path that no object can have. */
export function checkPathName(name: string): void {
  const problems = pathSegmentProblems(name);
  if (problems.length > 0) throw badRequest(`Name parameter invalid: ${quote(name)}: ${problems.join(";")}`);
}
