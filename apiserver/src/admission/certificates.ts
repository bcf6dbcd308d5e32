// Admission plugins CertificateApproval, CertificateSigning, and CertificateSubjectRestriction: approving or signing a request requires permission
// for its signer, and no client certificate may be in the group system:masters.
import { forbidden } from "../errors/status-error.js";
import type { Authorizer } from "../identity/authorizer.js";
import { MASTERS } from "../identity/user.js";
import { type JsonObject, deepEqual, objectAt, stringAt } from "../json.js";
import { resourceRefOf } from "../object/object-meta.js";
import { organizationsOf, parseSigningRequest } from "../x509/signing-request.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "./admission.js";

const GROUP = "certificates.k8s.io";

/** CertificateApproval and CertificateSigning: users need the verb `approve` or `sign` on the signer. */
export function certificateSigning(authorizer: Authorizer): AdmissionPlugin {
  return {
    resources: [`certificatesigningrequests.${GROUP}`],
    validate: (write) => checkSigner(authorizer, write),
  };
}

/** Throws 403 if the user approves or signs a request without permission for its signer. */
function checkSigner(authorizer: Authorizer, write: AdmittedWrite): void {
  const { context, operation, subresource, object, oldObject } = write;
  if (operation !== "UPDATE" || object === undefined || oldObject === undefined) return;
  const verb = subresource === "approval" ? "approve" : isSigned(subresource, object, oldObject) ? "sign" : undefined;
  if (verb === undefined) return;
  const signer = stringAt(objectAt(oldObject, "spec"), "signerName") ?? "";
  // A permission for `example.com/*` covers all signers of the domain.
  const names = [signer, `${signer.split("/")[0]}/*`];
  const asked = { verb, group: GROUP, resource: "signers", subresource: "", namespace: "" };
  if (names.some((name) => authorizer.decide(context.user, { ...asked, name }).allowed)) return;
  throw forbidden(
    refOfWrite(write),
    `user not permitted to ${verb} requests with signerName ${JSON.stringify(signer)}`,
  );
}

function isSigned(subresource: string, object: JsonObject, oldObject: JsonObject): boolean {
  if (subresource !== "status") return false;
  const [next, before] = [objectAt(object, "status"), objectAt(oldObject, "status")];
  return ["certificate", "conditions"].some((field) => !deepEqual(next?.[field], before?.[field]));
}

const SIGNER = "kubernetes.io/kube-apiserver-client";

export const certificateSubjectRestriction: AdmissionPlugin = {
  resources: ["certificatesigningrequests.certificates.k8s.io"],
  validate: checkCertificateSubject,
};

/** CertificateSubjectRestriction: throws 403 for a new request whose subject contains the group system:masters. */
function checkCertificateSubject({ context, operation, subresource, name, object }: AdmittedWrite): void {
  const { type } = context.resource;
  const spec = objectAt(object, "spec");
  if (operation !== "CREATE" || subresource !== "" || stringAt(spec, "signerName") !== SIGNER) return;
  const refuse = (detail: string): Error => forbidden(resourceRefOf(type, name), detail);
  if (groupsOf(stringAt(spec, "request") ?? "", refuse).includes(MASTERS))
    throw refuse(`use of ${SIGNER} signer with ${MASTERS} group is not allowed`);
}

function groupsOf(request: string, refuse: (detail: string) => Error): string[] {
  try {
    return organizationsOf(parseSigningRequest(Buffer.from(request, "base64").toString("latin1")));
  } catch (error) {
    throw refuse(`failed to parse CSR: ${(error as Error).message}`);
  }
}
