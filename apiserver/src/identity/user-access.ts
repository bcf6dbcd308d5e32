import { issueCertificate, subjectOf } from "../x509/authority.js";
import type { ServingCertificate } from "../x509/serving-certificate.js";
import type { Authenticator } from "./authenticator.js";
import { kubeconfigOf } from "./kubeconfig.js";
import { authenticatedUser } from "./user.js";

/** How a client reaches a server. */
export interface ServerAccess {
  readonly url: string;
  /** The authority of the serving certificate in PEM; absent without TLS. */
  readonly ca?: string;
  /** A kubeconfig as YAML text. */
  readonly kubeconfig: string;
}

/** How one user reaches a server. */
export interface UserAccess extends ServerAccess {
  readonly token: string;
}

/** How a user who shows a certificate reaches a server; both parts are PEM. */
export interface CertificateAccess extends ServerAccess {
  readonly certificate: string;
  readonly key: string;
}

/** Which groups a user is in. */
export interface UserOptions {
  groups?: readonly string[];
}

/** Hands out what users reach a server with. */
export interface Accesses {
  ofToken(token: string): UserAccess;
  ofUser(username: string, options?: UserOptions): UserAccess;
  ofCertificate(username: string, options?: UserOptions): CertificateAccess;
}

/** Makes what hands out the accesses of a server at `url`, which has no certificate without TLS. */
export function createAccesses(
  url: string,
  authenticator: Authenticator,
  serving: ServingCertificate | undefined,
): Accesses {
  const server = { url, ...(serving === undefined ? {} : { ca: serving.ca }) };
  const ofToken = (token: string): UserAccess => ({
    ...server,
    token,
    kubeconfig: kubeconfigOf({ ...server, credentials: { token } }),
  });
  return {
    ofToken,
    ofUser: (username, { groups = [] } = {}) => ofToken(authenticator.tokenOf(authenticatedUser(username, groups))),
    ofCertificate(username, { groups = [] } = {}) {
      if (serving === undefined)
        throw new Error("a server without TLS sees no certificates; start it without tls: false");
      const authority = { certificate: serving.ca, key: serving.caKey };
      const subject = subjectOf({ commonName: username, organizations: groups });
      const issued = issueCertificate(authority, { subject, usages: ["digital signature", "client auth"] });
      return { ...server, ...issued, kubeconfig: kubeconfigOf({ ...server, credentials: issued }) };
    },
  };
}
