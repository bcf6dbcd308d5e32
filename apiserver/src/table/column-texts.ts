// Descriptions of table columns, recorded from kube-apiserver; loaded with the first table.
import { readFileSync } from "node:fs";
import { packageFile } from "../package-file.js";

const COLUMNS_FILE = packageFile("data/kubernetes-1.36-columns.json");

let memoisedTexts: Record<string, readonly string[]> | undefined;

/** Returns the column descriptions of a built-in kind, named `Kind` or `Kind.group`. */
export function columnTextsOf(qualifiedKind: string): readonly string[] {
  memoisedTexts ??= readTexts();
  return memoisedTexts[qualifiedKind] ?? [];
}

/** Returns the descriptions of the columns Name and Created At, which all kinds have. */
export function textsOfEveryObject(): { name: string; creationTimestamp: string } {
  // The table of ServiceAccounts has no other columns.
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
