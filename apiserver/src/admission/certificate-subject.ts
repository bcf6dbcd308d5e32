// What the admission plugin CertificateSubjectRestriction does: nobody gets a certificate of a client that may do everything.
import { forbidden } from "../errors/status-error.js";
import { MASTERS } from "../identity/user.js";
import { objectAt, stringAt } from "../json.js";
import { resourceRefOf } from "../object/names.js";
import { organizationsOf, parseSigningRequest } from "../x509/signing-request.js";
import type { AdmissionPlugin, AdmittedWrite } from "./admission.js";

const SIGNER = "kubernetes.io/kube-apiserver-client";

export const certificateSubjectRestriction: AdmissionPlugin = {
  name: "CertificateSubjectRestriction",
  resources: ["certificatesigningrequests.certificates.k8s.io"],
  validate: checkCertificateSubject,
};

/** Throws 403 for a new request for a certificate of the group of administrators. */
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
