import { readFile } from "node:fs/promises";
import type { Credentials } from "./connection.js";

// Kubernetes rotates service account tokens well before they expire; client-go reads the file again once a minute.
const READ_AGAIN_AFTER_MS = 60_000;

/** Creates credentials from a file that holds a bearer token and may change; a rejected token is read again at once. */
export function createTokenFileCredentials(file: string): (options: { isRejected: boolean }) => Promise<Credentials> {
  let current: Promise<Credentials> | undefined;
  let readAt = 0;
  return ({ isRejected }) => {
    if (current === undefined || isRejected || performance.now() - readAt > READ_AGAIN_AFTER_MS) {
      readAt = performance.now();
      const before = current;
      current = readToken(file).catch((error: unknown) => {
        current = undefined;
        // A token that could be read before may still be good while the file is being replaced.
        if (before !== undefined && !isRejected) return before;
        throw new Error(`cannot read the token file ${file}`, { cause: error });
      });
    }
    return current;
  };
}

async function readToken(file: string): Promise<Credentials> {
  return { authorization: `Bearer ${(await readFile(file, "utf8")).trim()}` };
}
