import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** The flags with which a generated project starts Node. */
export const startFlags: readonly string[] = readStartFlags();

function readStartFlags(): string[] {
  const text = readFileSync(join(repositoryRoot, "templates/project/package.json"), "utf8");
  const { scripts } = JSON.parse(text) as { scripts: { start: string } };
  return scripts.start.split(" ").filter((word) => word.startsWith("--"));
}
