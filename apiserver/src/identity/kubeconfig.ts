import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";

const NAME = "gen-operator";

/** What a user shows to a server: a token, or a certificate and its key in PEM. */
export type Credentials = { token: string } | { certificate: string; key: string };

/** Builds the text of a kubeconfig that logs in with these credentials. */
export function kubeconfigOf(server: { url: string; credentials: Credentials; ca?: string }): string {
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
  // A given token may look like a number.
  if ("token" in credentials) return [`token: ${JSON.stringify(credentials.token)}`];
  const { certificate, key } = credentials;
  return [`client-certificate-data: ${base64(certificate)}`, `client-key-data: ${base64(key)}`];
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/**
 * Writes a file that only its user may read, also where there was one that others may read. What is there is replaced, not written through: the
 * target of a symbolic link stays as it is.
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
