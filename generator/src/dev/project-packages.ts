import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as runtime from "@gen-operator/runtime";
import { formatDiagnostic } from "../diagnostic.js";
import { readPackageName } from "../read/project-files.js";
import type { Esbuild } from "./code/transpile.js";

/** The part of the embedded API server that `dev` uses. */
export interface ApiServerModule {
  startApiServer(options: { readonly simulate: boolean }): Promise<EmbeddedServer>;
}

/** An API server in this process. */
export interface EmbeddedServer {
  readonly url: string;
  writeKubeconfig(file: string): Promise<void>;
  close(): Promise<void>;
}

/** The packages that `dev` uses, in the versions installed in the project. */
export interface ProjectPackages {
  readonly runtime: typeof runtime;
  /** Path of the runtime's entry point, for the operator process. */
  readonly runtimeFile: string;
  readonly esbuild: Esbuild;
  readonly typescriptFolder: string;
  /** Loaded on demand: a project that runs on a cluster may not have it installed. */
  loadApiServer(): Promise<ApiServerModule>;
}

/** Thrown if a session cannot run, for example because a package is not installed or another session is running. */
export class DevError extends Error {
  override readonly name = "DevError";
}

/** Finds the packages of a project. Throws a DevError for the first missing package, or for an invalid package.json. */
export async function findPackages(project: string): Promise<ProjectPackages> {
  const { problem } = await readPackageName(project);
  if (problem !== undefined) throw new DevError(formatDiagnostic(problem));
  const { resolve } = createRequire(join(project, "package.json"));
  const find = (name: string, install = name) => {
    try {
      return resolve(name);
    } catch (cause) {
      const message = `${install} is not installed in ${project}; run npm install there, or set --project to another folder`;
      throw new DevError(message, { cause });
    }
  };
  const load = async (name: string) => (await import(pathToFileURL(find(name)).href)) as unknown;
  const runtimeFile = find("@gen-operator/runtime");
  const typescriptFolder = dirname(find("typescript/package.json", "typescript"));
  return {
    ...{ runtimeFile, typescriptFolder },
    runtime: (await load("@gen-operator/runtime")) as typeof runtime,
    esbuild: (await load("esbuild")) as Esbuild,
    loadApiServer: async () => (await load("@gen-operator/apiserver")) as ApiServerModule,
  };
}
