import { X509Certificate } from "node:crypto";
import { type KeyedCertificate, signCertificate } from "../x509/authority.js";
import { type SigningRequest, parseSigningRequest } from "../x509/signing-request.js";
import type { Controller } from "./feed/controller.js";
import type { KubernetesObject } from "./feed/kubernetes-object.js";
import { type StatusCondition, timestamp } from "./pods/pod.js";

interface CertificateSigningRequest extends KubernetesObject {
  spec: { request: string; signerName: string; usages?: string[]; expirationSeconds?: number };
  status?: { certificate?: string; conditions?: (StatusCondition & { lastUpdateTime?: string })[] };
}

const KIND = "certificatesigningrequests.certificates.k8s.io";
const MINUTE_MS = 60_000;
const BACKDATE_MS = 5 * MINUTE_MS;
const MIN_LIFE_MS = 10 * MINUTE_MS;
/** Certificates with a shorter lifetime get no backdated end. */
const SHORT_LIFE_MS = 8 * 60 * MINUTE_MS;
/** Default of kube-controller-manager's --cluster-signing-duration. */
const MAX_LIFE_MS = 365 * 24 * 60 * MINUTE_MS;

/** Signs approved CertificateSigningRequests for the signers of kube-controller-manager; without an authority, signs nothing. */
export function createSigning(): Controller<CertificateSigningRequest> {
  return {
    kind: KIND,
    async reconcile(request, { cluster, now, authority }) {
      const { spec, status = {} } = request;
      const objectionTo = SIGNERS[spec.signerName];
      const has = (type: string) => status.conditions?.some((one) => one.type === type && one.status === "True");
      const isWaiting = has("Approved") === true && has("Denied") !== true && has("Failed") !== true;
      if (!isWaiting || status.certificate !== undefined || objectionTo === undefined || authority === undefined)
        return;
      const asked = readRequest(spec.request);
      if (asked === undefined) return;
      const certificate = sign(asked, { spec, now: now(), authority });
      const objection = objectionTo(new X509Certificate(certificate), spec.usages ?? []);
      const lastUpdateTime = timestamp(now());
      const failed = { type: "Failed", status: "True", reason: "SignerValidationFailure", lastUpdateTime } as const;
      const result =
        objection === undefined
          ? { ...status, certificate: Buffer.from(certificate).toString("base64") }
          : { ...status, conditions: [...(status.conditions ?? []), { ...failed, message: objection }] };
      await cluster.update(KIND, { ...request, status: result }, { subresource: "status" });
    },
  };
}

// kube-controller-manager retries indefinitely if a request cannot be parsed.
function readRequest(request: string): SigningRequest | undefined {
  try {
    return parseSigningRequest(Buffer.from(request, "base64").toString("latin1"));
  } catch {
    return undefined;
  }
}

function sign(
  asked: SigningRequest,
  { spec, now, authority }: { spec: CertificateSigningRequest["spec"]; now: Date; authority: KeyedCertificate },
): string {
  const { expirationSeconds, usages = [] } = spec;
  const wanted = expirationSeconds === undefined ? MAX_LIFE_MS : expirationSeconds * 1000;
  const lifeMs = Math.min(Math.max(wanted, MIN_LIFE_MS), MAX_LIFE_MS);
  const notAfter = new Date(now.getTime() + (lifeMs < SHORT_LIFE_MS ? lifeMs : lifeMs - BACKDATE_MS));
  return signCertificate(authority, { ...asked, usages, notBefore: new Date(now.getTime() - BACKDATE_MS), notAfter });
}

// The signers of kube-controller-manager and their requirements.

const NODE_GROUP = "system:nodes";
const NODE_PREFIX = "system:node:";

/** Returns why a signer rejects a request with these usages; undefined if it signs it. */
type Objection = (certificate: X509Certificate, usages: readonly string[]) => string | undefined;

/** The built-in signers, by signerName. */
const SIGNERS: Readonly<Record<string, Objection>> = {
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
  // Signer of certificates.k8s.io/v1beta1, which v1 does not accept.
  "kubernetes.io/legacy-unknown": () => undefined,
};

function subjectOf(certificate: X509Certificate): { groups: string[]; name: string } {
  const { O, CN } = certificate.toLegacyObject().subject as { O?: string | string[]; CN?: string | string[] };
  return { groups: [O ?? []].flat(), name: [CN ?? ""].flat().at(-1) ?? "" };
}

function isNodeGroup(groups: readonly string[]): boolean {
  return groups.length === 1 && groups[0] === NODE_GROUP;
}

/** Lists the types of subject alternative names, as in error messages. */
function namesOf({ subjectAltName = "" }: X509Certificate): string[] {
  const words: Readonly<Record<string, string>> = { DNS: "DNS", "IP Address": "IP", email: "Email", URI: "URI" };
  const kinds = subjectAltName.split(", ").map((name) => words[name.slice(0, name.indexOf(":"))] ?? "");
  return ["DNS", "Email", "IP", "URI"].filter((kind) => kinds.includes(kind));
}

// Only RSA keys need "key encipherment", so it is optional.
function objectionTo(usages: readonly string[], needed: string): string | undefined {
  const required = ["digital signature", "key encipherment", needed];
  const isExact = usages.every((usage) => required.includes(usage));
  if (isExact && usages.includes("digital signature") && usages.includes(needed)) return undefined;
  return `usages did not match [${needed === "client auth" ? `${needed} ${required[0]} ${required[1]}` : `${required[0]} ${required[1]} ${needed}`}]`;
}
