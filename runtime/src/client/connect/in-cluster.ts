import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Connection } from "./connection.js";
import { proxyFromEnvironment } from "./proxy.js";
import { createRenewedCredentials, readTokenFile } from "./renewed-credentials.js";

// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Creates the connection of a pod's service account; undefined outside of a cluster. */
export function createInClusterConnection(
  env: NodeJS.ProcessEnv = process.env,
  folder: string = SERVICE_ACCOUNT_FOLDER,
): Connection | undefined {
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = env["KUBERNETES_SERVICE_PORT"] ?? "443";
  const tokenFile = join(folder, "token");
  if (host === undefined || host === "" || !existsSync(tokenFile)) return undefined;
  const namespaceFile = join(folder, "namespace");
  const caFile = join(folder, "ca.crt");
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    server,
    origin: `service account in ${folder}`,
    ca: readFileSync(caFile),
    caFile,
    proxyUrl: proxyFromEnvironment(server, env),
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, "utf8").trim() : undefined,
    credentials: createRenewedCredentials({
      what: `reading the token file ${tokenFile}`,
      read: () => readTokenFile(tokenFile),
    }),
  };
}
