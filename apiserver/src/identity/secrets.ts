import { X509Certificate, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { machineTime } from "../clock.js";
import { type ServingCertificate, createServingCertificate } from "../x509/authority.js";

/** Secrets of the server itself, such as keys, stored beside the objects. A Map serves for a server without a data folder. */
export interface Secrets {
  get(name: string): string | undefined;
  set(name: string, text: string): unknown;
}

const ADMIN_TOKEN = "admin-token";

/** Returns the administrator's token: the given one, the one from the data folder, or a new one, in this order. */
export function adminTokenOf(secrets: Secrets, given: string | undefined): string {
  if (given !== undefined) return given;
  const token = secrets.get(ADMIN_TOKEN) ?? randomBytes(16).toString("hex");
  secrets.set(ADMIN_TOKEN, token);
  return token;
}

const MIN_REMAINING_MS = 30 * 24 * 3_600_000;
const SERVING_CERTIFICATE = "serving-certificate";

/** Returns the serving certificate. A stored one is reused unless it expires within 30 days or lacks one of the names. */
export function servingCertificateOf(secrets: Secrets, names: readonly string[]): ServingCertificate {
  const kept = secrets.get(SERVING_CERTIFICATE);
  const before = kept === undefined ? undefined : (JSON.parse(kept) as Partial<ServingCertificate>);
  if (isUsable(before, names)) return before;
  const created = createServingCertificate(names);
  secrets.set(SERVING_CERTIFICATE, JSON.stringify(created));
  return created;
}

// A data folder of an earlier version lacks the CA key.
function isUsable(kept: Partial<ServingCertificate> | undefined, names: readonly string[]): kept is ServingCertificate {
  if (kept?.certificate === undefined || kept.caKey === undefined) return false;
  const certificate = new X509Certificate(kept.certificate);
  const isFor = (name: string) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name));
  if (!names.every((name) => isFor(name) !== undefined)) return false;
  return Date.parse(certificate.validTo) - machineTime().getTime() > MIN_REMAINING_MS;
}
