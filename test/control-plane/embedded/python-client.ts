import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { userCache } from "../../support/machine/user-cache.js";

/** A Python that has what a file of requirements names, or why there is none. */
export type InstalledPython = { readonly program: string } | { readonly problem: string };

const INSTALL_TIMEOUT_MS = 300_000;

/** Makes a virtual environment with these requirements, in the user's cache: once for each version of them. */
export function installPython(requirements: string): InstalledPython {
  const packages = readFileSync(requirements, "utf8").trim().split("\n");
  const folder = join(userCache(), "python", packages.join("+"));
  const program = join(folder, "bin", "python");
  if (existsSync(join(folder, "installed"))) return { program };
  try {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(dirname(folder), { recursive: true });
    const options = { stdio: "pipe", timeout: INSTALL_TIMEOUT_MS } as const;
    execFileSync("python3", ["-m", "venv", folder], options);
    execFileSync(program, ["-m", "pip", "install", "-q", "--log", join(folder, "installing"), ...packages], options);
    renameSync(join(folder, "installing"), join(folder, "installed"));
    return { program };
  } catch (error) {
    const { code, stderr = "" } = error as { code?: string; stderr?: Buffer | string };
    if (code === "ENOENT") return { problem: "there is no Python" };
    const [line = ""] = stderr.toString().trim().split("\n").slice(-1);
    return { problem: `${packages.join(", ")} could not be installed: ${line}` };
  }
}
