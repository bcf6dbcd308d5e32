import { serverTime } from "../clock.js";
import { AUTHENTICATED, type UserInfo } from "./user.js";

/** A certificate that a client showed when it connected. */
export interface ClientCertificate {
  /** False if no authority of the server has signed it. */
  readonly isTrusted: boolean;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly validFrom: Date;
  readonly validTo: Date;
  /** The SHA-256 of the certificate, in lower-case hexadecimal digits. */
  readonly fingerprint: string;
}

/** Tells whether a certificate proves anything now. */
export function isValid({ isTrusted, validFrom, validTo }: ClientCertificate): boolean {
  const now = serverTime();
  return isTrusted && validFrom <= now && now <= validTo;
}

/** Returns the user that a valid certificate names: the common name, in the groups of the organizations; undefined if it names none. */
export function userOfCertificate({ commonName, organizations, fingerprint }: ClientCertificate): UserInfo | undefined {
  if (commonName === "") return undefined;
  const extra = { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] };
  return { username: commonName, groups: [...new Set([...organizations, AUTHENTICATED])], extra };
}
