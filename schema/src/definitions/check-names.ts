// The names that a definition gives its kind, and the approval that those in Kubernetes' own groups need.
import { dns1035Problem } from "../strings/names.js";
import { invalidError, requiredError, type FieldError } from "./field-error.js";
import { arrayAt, objectAt, stringAt, type JsonObject } from "../json/json.js";

const APPROVAL_LINK = "see https://github.com/kubernetes/enhancements/pull/1111";

/** The annotation that allows a CRD in one of Kubernetes' own groups. */
const APPROVAL_ANNOTATION = "api-approved.kubernetes.io";

/** True for the groups that Kubernetes keeps for itself. */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** Checks the names that a definition must give. */
export function checkMissingNames(names: JsonObject): FieldError[] {
  const missing = ["plural", "singular", "kind", "listKind"].filter((member) => !stringAt(names, member));
  return missing.map((member) => requiredError(`spec.names.${member}`));
}

/** Checks the names that are given at `path`. */
export function checkNames(names: JsonObject, path: string): FieldError[] {
  const check = (member: string, text: string, problemOf = dns1035Problem): FieldError[] => {
    const problem = problemOf(text);
    return problem === undefined ? [] : [invalidError(`${path}.${member}`, text, problem)];
  };
  const checkOne = (member: string, problemOf = dns1035Problem): FieldError[] => {
    const text = stringAt(names, member) ?? "";
    return text === "" ? [] : check(member, text, problemOf);
  };
  const checkEach = (member: string): FieldError[] =>
    (arrayAt(names, member) ?? []).flatMap((name, index) => check(`${member}[${index}]`, String(name)));
  const kind = stringAt(names, "kind") ?? "";
  const isSame = kind !== "" && kind === stringAt(names, "listKind");
  return [
    ...checkOne("plural"),
    ...checkOne("singular"),
    ...checkOne("kind", mixedCaseProblem),
    ...checkOne("listKind", mixedCaseProblem),
    ...checkEach("shortNames"),
    ...(isSame ? [invalidError(`${path}.listKind`, kind, "kind and listKind may not be the same")] : []),
    ...checkEach("categories"),
  ];
}

function mixedCaseProblem(text: string): string | undefined {
  const problem = dns1035Problem(text.toLowerCase());
  return problem && `may have mixed case, but should otherwise match: ${problem}`;
}

/** Checks that a definition in one of Kubernetes' own groups is approved; what `old` said already is not looked at again. */
export function checkApproval(crd: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (!isProtectedGroup(stringAt(objectAt(crd, "spec"), "group") ?? "")) return [];
  const approval = approvalTextOf(crd);
  const state = approvalState(approval);
  if (old !== undefined && state === approvalState(approvalTextOf(old))) return [];
  const field = `metadata.annotations[${APPROVAL_ANNOTATION}]`;
  const text = `protected groups must have approval annotation "${APPROVAL_ANNOTATION}"`;
  if (state === "missing") return [requiredError(field, `${text}, ${APPROVAL_LINK}`)];
  if (state !== "invalid") return [];
  const detail = `${text} with either a URL or a reason starting with "unapproved", ${APPROVAL_LINK}`;
  return [invalidError(field, approval, detail)];
}

/** Gives what a definition says of its approval. */
export function approvalTextOf(crd: JsonObject): string {
  return stringAt(objectAt(objectAt(crd, "metadata"), "annotations"), APPROVAL_ANNOTATION) ?? "";
}

/** Reads what a definition says of its approval. */
export function approvalState(approval: string): "missing" | "bypassed" | "approved" | "invalid" {
  if (approval === "") return "missing";
  if (approval.startsWith("unapproved")) return "bypassed";
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?]/i.test(approval) && URL.canParse(approval) ? "approved" : "invalid";
}
