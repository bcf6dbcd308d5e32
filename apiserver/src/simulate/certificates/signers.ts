// Who signs which requests for certificates, as kube-controller-manager does.
import { X509Certificate } from "node:crypto";

const NODE_GROUP = "system:nodes";
const NODE_PREFIX = "system:node:";

/** Says why a signer refuses a certificate that was made for these usages; undefined if it does not. */
type Objection = (certificate: X509Certificate, usages: readonly string[]) => string | undefined;

/** The signers of Kubernetes that sign what is approved, by name. */
export const SIGNERS: Readonly<Record<string, Objection>> = {
  "kubernetes.io/kube-apiserver-client": (_, usages) => {
    const odd = usages.find((usage) => !["digital signature", "key encipherment", "client auth"].includes(usage));
    if (odd !== undefined) return `invalid usage for client certificate: ${odd}`;
    return usages.includes("client auth") ? undefined : "missing required usage for client certificate: client auth";
  },
  "kubernetes.io/kube-apiserver-client-kubelet": (certificate, usages) => {
    const { groups, name } = subjectOf(certificate);
    const [present] = namesOf(certificate);
    if (!isNodeGroup(groups)) return "subject organization is not system:nodes";
    if (present !== undefined) return `${present} subjectAltNames are not allowed`;
    if (!name.startsWith(NODE_PREFIX)) return "subject common name does not begin with system:node:";
    return objectionTo(usages, "client auth");
  },
  "kubernetes.io/kubelet-serving": (certificate, usages) => {
    const { groups, name } = subjectOf(certificate);
    const names = namesOf(certificate);
    const odd = names.find((kind) => kind !== "DNS" && kind !== "IP");
    if (!isNodeGroup(groups)) return "subject organization is not system:nodes";
    if (names.every((kind) => kind === odd)) return "DNS or IP subjectAltName is required";
    if (odd !== undefined) return `${odd} subjectAltNames are not allowed`;
    return (
      objectionTo(usages, "server auth") ??
      (name.startsWith(NODE_PREFIX) ? undefined : "subject common name does not begin with system:node:")
    );
  },
  // Requests of earlier versions, which the API does not take any more.
  "kubernetes.io/legacy-unknown": () => undefined,
};

function subjectOf(certificate: X509Certificate): { groups: string[]; name: string } {
  const { O, CN } = certificate.toLegacyObject().subject as { O?: string | string[]; CN?: string | string[] };
  return { groups: [O ?? []].flat(), name: [CN ?? ""].flat().at(-1) ?? "" };
}

function isNodeGroup(groups: readonly string[]): boolean {
  return groups.length === 1 && groups[0] === NODE_GROUP;
}

/** Lists the kinds of other names of a subject, as messages name them. */
function namesOf({ subjectAltName = "" }: X509Certificate): string[] {
  const words: Readonly<Record<string, string>> = { DNS: "DNS", "IP Address": "IP", email: "Email", URI: "URI" };
  const kinds = subjectAltName.split(", ").map((name) => words[name.slice(0, name.indexOf(":"))] ?? "");
  return ["DNS", "Email", "IP", "URI"].filter((kind) => kinds.includes(kind));
}

// RSA keys also encipher others.
function objectionTo(usages: readonly string[], needed: string): string | undefined {
  const required = ["digital signature", "key encipherment", needed];
  const isExact = usages.every((usage) => required.includes(usage));
  if (isExact && usages.includes("digital signature") && usages.includes(needed)) return undefined;
  return `usages did not match [${needed === "client auth" ? `${needed} ${required[0]} ${required[1]}` : `${required[0]} ${required[1]} ${needed}`}]`;
}
