import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** Reads the patterns of known differences from a file with lines `pattern ⇒ reason`. */
export function readKnownPatterns(file: string): RegExp[] {
  const text = readFileSync(join(repositoryRoot, "test/control-plane/embedded", file), "utf8");
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  return lines.map((line) => new RegExp(line.split(" ⇒ ")[0] ?? ""));
}
