import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { type ServingCertificate, issueCertificate, subjectOf } from "../x509/authority.js";
import type { Authenticator } from "./authenticator.js";
import { authenticatedUser } from "./user.js";

/** How a client connects to a server. */
interface ServerAccess {
  readonly url: string;
  /** The CA certificate of the server in PEM; undefined without TLS. */
  readonly ca?: string;
  /** A kubeconfig in YAML. */
  readonly kubeconfig: string;
}

/** How a user connects with a token. */
export interface UserAccess extends ServerAccess {
  readonly token: string;
}

/** How a user connects with a client certificate. `certificate` and `key` are in PEM. */
export interface CertificateAccess extends ServerAccess {
  readonly certificate: string;
  readonly key: string;
}

/** Options of a user: the groups, in addition to those of every authenticated user. */
interface UserOptions {
  groups?: readonly string[];
}

/** Issues credentials for users. */
export interface Accesses {
  ofToken(token: string): UserAccess;
  ofUser(username: string, options?: UserOptions): UserAccess;
  ofCertificate(username: string, options?: UserOptions): CertificateAccess;
}

/** Creates the source of credentials for the server at `url`. `serving` is undefined without TLS. */
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
        throw new Error("client certificates require HTTPS: start the API server without tls: false");
      const authority = { certificate: serving.ca, key: serving.caKey };
      const subject = subjectOf({ commonName: username, organizations: groups });
      const issued = issueCertificate(authority, { subject, usages: ["digital signature", "client auth"] });
      return { ...server, ...issued, kubeconfig: kubeconfigOf({ ...server, credentials: issued }) };
    },
  };
}

const NAME = "gen-operator";

/** A token, or a client certificate with its key in PEM. */
type Credentials = { token: string } | { certificate: string; key: string };

/** Returns a kubeconfig with these credentials. */
function kubeconfigOf(server: { url: string; credentials: Credentials; ca?: string }): string {
  return [
    "apiVersion: v1",
    "kind: Config",
    "clusters:",
    `  - name: ${NAME}`,
    "    cluster:",
    `      server: ${server.url}`,
    ...(server.ca === undefined ? [] : [`      certificate-authority-data: ${base64(server.ca)}`]),
    "users:",
    `  - name: ${NAME}`,
    "    user:",
    ...credentialLines(server.credentials).map((line) => `      ${line}`),
    "contexts:",
    `  - name: ${NAME}`,
    "    context:",
    `      cluster: ${NAME}`,
    `      user: ${NAME}`,
    "      namespace: default",
    `current-context: ${NAME}`,
    "",
  ].join("\n");
}

function credentialLines(credentials: Credentials): string[] {
  // Quoted, because a token may look like a number.
  if ("token" in credentials) return [`token: ${JSON.stringify(credentials.token)}`];
  const { certificate, key } = credentials;
  return [`client-certificate-data: ${base64(certificate)}`, `client-key-data: ${base64(key)}`];
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/**
 * Writes a file with mode 0600, even if it existed with wider permissions. An existing file is replaced instead of overwritten, so the target of a
 * symbolic link does not change.
 */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}`;
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: "wx" });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
