import { X509Certificate } from "node:crypto";
import { signCertificate, type KeyedCertificate } from "../../x509/authority.js";
import { parseSigningRequest, type SigningRequest } from "../../x509/signing-request.js";
import type { Controller } from "../feed/controller.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { type StatusCondition, timestamp } from "../pods/pod.js";
import { SIGNERS } from "./signers.js";

interface CertificateSigningRequest extends KubernetesObject {
  spec: { request: string; signerName: string; usages?: string[]; expirationSeconds?: number };
  status?: { certificate?: string; conditions?: (StatusCondition & { lastUpdateTime?: string })[] };
}

const KIND = "certificatesigningrequests.certificates.k8s.io";
const MINUTE_MS = 60_000;
const BACKDATE_MS = 5 * MINUTE_MS;
const MIN_LIFE_MS = 10 * MINUTE_MS;
/** Certificates that live shorter are not backdated at their end. */
const SHORT_LIFE_MS = 8 * 60 * MINUTE_MS;
/** Default of kube-controller-manager's --cluster-signing-duration. */
const MAX_LIFE_MS = 365 * 24 * 60 * MINUTE_MS;

/** Signs the requests for certificates that are approved and name a signer of Kubernetes; without an authority none. */
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

// kube-controller-manager tries for ever to read one that nobody can read.
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
