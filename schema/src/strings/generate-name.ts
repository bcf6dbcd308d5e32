import { randomInt } from "node:crypto";

/** The characters of generated names: no vowels, so that they spell no words, and nothing that looks like another letter. */
export const NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789";

const ENDING_LENGTH = 5;
// What fits into a label of DNS with the ending.
const MAX_BASE_LENGTH = 63 - ENDING_LENGTH;

/** Returns a name that begins with `base`, as the API server makes one of `generateName`. */
export function generateName(base: string): string {
  const ending = Array.from({ length: ENDING_LENGTH }, () => NAME_CHARACTERS[randomInt(NAME_CHARACTERS.length)]);
  return base.slice(0, MAX_BASE_LENGTH) + ending.join("");
}
