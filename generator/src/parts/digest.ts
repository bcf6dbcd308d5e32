import { createHash } from "node:crypto";

/** Returns a text that stands for a content: two contents have the same one only if they are the same. */
export function digestOf(...contents: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  // The length keeps what is in two parts from being taken for the same in other parts.
  for (const content of contents) hash.update(`${Buffer.byteLength(content)}:`).update(content);
  return hash.digest("base64url");
}
