// What the admission plugins CertificateApproval and CertificateSigning do: who approves a request or signs it needs that right for its signer.
import { forbidden } from "../errors/status-error.js";
import type { Authorizer } from "../identity/authorizer.js";
import { type JsonObject, deepEqual, objectAt, stringAt } from "../json.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "./admission.js";

const GROUP = "certificates.k8s.io";

/** Lets those approve requests and sign them who have that right for the signer. */
export function certificateSigning(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: "CertificateSigning",
    resources: [`certificatesigningrequests.${GROUP}`],
    validate: (write) => checkSigner(authorizer, write),
  };
}

/** Throws 403 for a verdict on a request, or for its certificate, by a user who has no right to that signer. */
function checkSigner(authorizer: Authorizer, write: AdmittedWrite): void {
  const { context, operation, subresource, object, oldObject } = write;
  if (operation !== "UPDATE" || object === undefined || oldObject === undefined) return;
  const verb = subresource === "approval" ? "approve" : isSigned(subresource, object, oldObject) ? "sign" : undefined;
  if (verb === undefined) return;
  const signer = stringAt(objectAt(oldObject, "spec"), "signerName") ?? "";
  // The right to all signers of a domain has the name `example.com/*`.
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
