const DNS_1035_LABEL = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const DNS_1123_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const DNS_1035_TEXT =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const DNS_1123_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/** Tells what keeps a text from being a DNS-1035 label, in Kubernetes' words. */
export function dns1035Problem(text: string): string | undefined {
  if (text.length > 63) return "must be no more than 63 characters";
  return DNS_1035_LABEL.test(text) ? undefined : DNS_1035_TEXT;
}

/** Tells what keeps a text from being a DNS-1123 subdomain, in Kubernetes' words. */
export function dns1123SubdomainProblem(text: string): string | undefined {
  if (text.length > 253) return "must be no more than 253 characters";
  return DNS_1123_SUBDOMAIN.test(text) ? undefined : DNS_1123_TEXT;
}

/** The annotation that allows a CRD in one of Kubernetes' own groups. */
export const APPROVAL_ANNOTATION = "api-approved.kubernetes.io";

/** True for the groups that Kubernetes keeps for itself. */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}
