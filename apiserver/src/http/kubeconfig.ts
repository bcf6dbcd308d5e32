import { stringify } from "yaml";

const NAME = "gen-operator";

/** Builds the text of a kubeconfig that logs in as the administrator of the server. */
export function kubeconfigOf(server: { url: string; token: string; ca: string | undefined }): string {
  const authority = server.ca === undefined ? {} : { "certificate-authority-data": base64(server.ca) };
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: NAME, cluster: { server: server.url, ...authority } }],
    users: [{ name: NAME, user: { token: server.token } }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: "default" } }],
    "current-context": NAME,
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
