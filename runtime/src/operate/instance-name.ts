import { hostname } from "node:os";

/** Returns the name of this replica: that of its pod, which is also the name of its host. */
export function instanceName(env: NodeJS.ProcessEnv = process.env): string {
  return env["POD_NAME"] || hostname();
}
