import { randomBytes } from "node:crypto";
import type { Secrets } from "../secrets.js";

const SECRET = "admin-token";

/** Returns the token of the administrator: the given one, else the one that the server had before, else a new one. */
export function adminTokenOf(secrets: Secrets, given: string | undefined): string {
  if (given !== undefined) return given;
  const token = secrets.get(SECRET) ?? randomBytes(16).toString("hex");
  secrets.set(SECRET, token);
  return token;
}
