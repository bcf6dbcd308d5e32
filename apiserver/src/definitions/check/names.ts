import { startingLabelProblems, subdomainProblems } from "../../builtin/rules/name-syntax.js";

/** Tells what keeps a text from being a DNS-1035 label, in Kubernetes' words. */
export function dns1035Problem(text: string): string | undefined {
  return joined(startingLabelProblems(text));
}

/** Tells what keeps a text from being a DNS-1123 subdomain, in Kubernetes' words. */
export function dns1123SubdomainProblem(text: string): string | undefined {
  return joined(subdomainProblems(text));
}

function joined(problems: string[]): string | undefined {
  return problems.length === 0 ? undefined : problems.join(",");
}

/** The annotation that allows a CRD in one of Kubernetes' own groups. */
export const APPROVAL_ANNOTATION = "api-approved.kubernetes.io";

/** True for the groups that Kubernetes keeps for itself. */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}
