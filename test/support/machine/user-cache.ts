import { homedir } from "node:os";
import { join } from "node:path";

/** The folder of a user's outside of the checkout in which what was built or installed is kept, by what it is. */
export function userCache(environment = process.env): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "gen-operator");
}
