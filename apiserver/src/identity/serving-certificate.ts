import { machineTime } from "../real-time.js";
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createServingCertificate, type ServingCertificate } from "../x509/serving-certificate.js";
import type { Secrets } from "./secrets.js";

const MIN_REMAINING_MS = 30 * 24 * 3_600_000;
const SECRET = "serving-certificate";

/** Returns the serving certificate. A stored one is reused unless it expires soon or lacks one of the names. */
export function servingCertificateOf(secrets: Secrets, names: readonly string[]): ServingCertificate {
  const kept = secrets.get(SECRET);
  const before = kept === undefined ? undefined : (JSON.parse(kept) as Partial<ServingCertificate>);
  if (isUsable(before, names)) return before;
  const created = createServingCertificate(names);
  secrets.set(SECRET, JSON.stringify(created));
  return created;
}

// A folder of an earlier version lacks the key of the authority.
function isUsable(kept: Partial<ServingCertificate> | undefined, names: readonly string[]): kept is ServingCertificate {
  if (kept?.certificate === undefined || kept.caKey === undefined) return false;
  const certificate = new X509Certificate(kept.certificate);
  const isFor = (name: string) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name));
  if (!names.every((name) => isFor(name) !== undefined)) return false;
  return Date.parse(certificate.validTo) - machineTime().getTime() > MIN_REMAINING_MS;
}
