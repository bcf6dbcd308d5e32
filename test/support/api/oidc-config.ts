import { writeFile } from "node:fs/promises";

const HOUR_S = 3600;

/** Returns an unsigned token that clients consider valid for an hour. */
export function createOidcToken(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ exp: Math.floor(Date.now() / 1000) + HOUR_S })}.`;
}

/** Writes a kubeconfig with the context "office" and the user "jane", who authenticates by OIDC and already has a token. */
export async function writeOidcConfig(file: string, server: string, token: string): Promise<void> {
  const provider = { "client-id": "me", "idp-issuer-url": "https://127.0.0.1:1", "id-token": token };
  const config = {
    "current-context": "office",
    contexts: [{ name: "office", context: { cluster: "x", user: "jane" } }],
    clusters: [{ name: "x", cluster: { server } }],
    users: [{ name: "jane", user: { "auth-provider": { name: "oidc", config: provider } } }],
  };
  await writeFile(file, JSON.stringify(config));
}
