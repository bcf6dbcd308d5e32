import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";

const NAME = "gen-operator";

/** Builds the text of a kubeconfig that logs in as the administrator of the server. */
export function kubeconfigOf(server: { url: string; token: string; ca: string | undefined }): string {
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
    // A given token may look like a number.
    `      token: ${JSON.stringify(server.token)}`,
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
