import { tmpdir } from "node:os";
import { runOrThrow } from "./command.js";

/** Returns the path of a Node 24, which npm's package "node" brings. */
export async function findNode24(): Promise<string> {
  const command = ["npm", "exec", "--yes", "--package=node@24", "--", "node", "-p", "process.execPath"];
  return (await runOrThrow(command, { cwd: tmpdir() })).trim();
}
