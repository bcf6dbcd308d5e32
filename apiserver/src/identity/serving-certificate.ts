import { X509Certificate } from "node:crypto";
import { createServingCertificate, type ServingCertificate } from "../x509/serving-certificate.js";
import type { Secrets } from "./secrets.js";

const MIN_REMAINING_MS = 30 * 24 * 3_600_000;
const SECRET = "serving-certificate";

/** Returns the certificate of a server: the one that it had before, as long as that is valid for a while. */
export function servingCertificateOf(secrets: Secrets): ServingCertificate {
  const kept = secrets.get(SECRET);
  const before = kept === undefined ? undefined : (JSON.parse(kept) as Partial<ServingCertificate>);
  if (isUsable(before)) return before;
  const created = createServingCertificate();
  secrets.set(SECRET, JSON.stringify(created));
  return created;
}

// A folder of an earlier version lacks the key of the authority.
function isUsable(kept: Partial<ServingCertificate> | undefined): kept is ServingCertificate {
  if (kept?.certificate === undefined || kept.caKey === undefined) return false;
  return Date.parse(new X509Certificate(kept.certificate).validTo) - Date.now() > MIN_REMAINING_MS;
}
