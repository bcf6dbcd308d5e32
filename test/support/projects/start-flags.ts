import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** The Node.js flags of a generated project. */
export const startFlags: readonly string[] = readStartFlags();

/** The environment variables in the image of a generated project. */
export const imageEnvironment: { readonly [name: string]: string } = readImageEnvironment();

/** The command of the image of a generated project: the program, followed by its arguments. */
export const imageCommand: readonly string[] = readImageCommand();

function readDockerfile(): string {
  return readFileSync(join(repositoryRoot, "templates/project/Dockerfile"), "utf8");
}

function readImageCommand(): string[] {
  return JSON.parse(/^ENTRYPOINT (.*)$/m.exec(readDockerfile())?.[1] ?? "[]") as string[];
}

function readImageEnvironment(): { [name: string]: string } {
  const variables = [...readDockerfile().matchAll(/^ENV (.*)$/gm)].flatMap(([, pairs = ""]) => pairs.split(" "));
  return Object.fromEntries(variables.map((pair) => pair.split("=", 2) as [string, string]));
}

function readStartFlags(): string[] {
  const text = readFileSync(join(repositoryRoot, "templates/project/package.json"), "utf8");
  const { scripts } = JSON.parse(text) as { scripts: { start: string } };
  return scripts.start.split(" ").filter((word) => word.startsWith("--"));
}
