import { homedir } from "node:os";
import { join } from "node:path";

/** Returns the cache folder of the user for built and installed programs, outside of the checkout. */
export function userCache(environment = process.env): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "gen-operator");
}
