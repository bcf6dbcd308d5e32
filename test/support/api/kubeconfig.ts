import { writeFile } from "node:fs/promises";
import type { Connection } from "./api-request.js";

/** Writes a kubeconfig for a connection, as JSON, which is valid YAML. */
export async function writeKubeconfig(path: string, { url, token, ca }: Connection): Promise<void> {
  const authority = ca === undefined ? {} : { "certificate-authority-data": Buffer.from(ca).toString("base64") };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, ...authority } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin", namespace: "default" } }],
    "current-context": "test",
  };
  await writeFile(path, `${JSON.stringify(kubeconfig, null, 2)}\n`, { mode: 0o600 });
}
