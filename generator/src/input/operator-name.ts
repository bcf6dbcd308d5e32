import { readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { isRecord } from "./json.js";

// The longest name that leaves room for what is added, such as "-system" of the namespace.
const MAX_LENGTH = 48;

/** Returns the name of the operator of a package: a DNS label, without the scope of the package. */
export function operatorNameOf(packageName: string): string {
  const label = packageName
    .slice(packageName.lastIndexOf("/") + 1)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[-0-9]+/, "")
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, "");
  return label === "" ? "operator" : label;
}

/** Reads the name of the operator of a project: that of its package, or of its folder where there is none. */
export async function readOperatorName(project: string): Promise<string> {
  const text = await readFile(join(project, "package.json"), "utf8").catch(() => "{}");
  return operatorNameOf(packageNameIn(text) ?? basename(resolve(project)));
}

function packageNameIn(text: string): string | undefined {
  try {
    const manifest = JSON.parse(text) as unknown;
    const name = isRecord(manifest) ? manifest["name"] : undefined;
    return typeof name === "string" ? name : undefined;
  } catch {
    // npm says what is wrong with it.
    return undefined;
  }
}
