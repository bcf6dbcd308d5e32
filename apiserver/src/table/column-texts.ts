// What a real server says of the columns of its tables: recorded, and read when the first table is asked for.
import { readFileSync } from "node:fs";
import { packageFile } from "../package-file.js";

const COLUMNS_FILE = packageFile("data/kubernetes-1.36-columns.json");

let memoisedTexts: Record<string, readonly string[]> | undefined;

/** Gives the texts of the columns of a built-in kind, named as `Kind` or `Kind.group`. */
export function columnTextsOf(qualifiedKind: string): readonly string[] {
  memoisedTexts ??= readTexts();
  return memoisedTexts[qualifiedKind] ?? [];
}

/** Gives what is said of the name and the time of creation of any object. */
export function textsOfEveryObject(): { name: string; creationTimestamp: string } {
  // It has no other columns.
  const [name = "", creationTimestamp = ""] = columnTextsOf("ServiceAccount");
  return { name, creationTimestamp };
}

function readTexts(): Record<string, readonly string[]> {
  const file = readFileSync(COLUMNS_FILE, "utf8");
  const { texts, kinds } = JSON.parse(file) as { texts: string[]; kinds: Record<string, number[]> };
  return Object.fromEntries(
    Object.entries(kinds).map(([kind, numbers]) => [kind, numbers.map((number) => texts[number] ?? "")]),
  );
}
