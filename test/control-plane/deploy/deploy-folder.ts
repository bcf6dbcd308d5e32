import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { generate } from "#generator/generate.js";
import { initProject } from "../../support/projects/new-project.js";
import { findBinaryOrThrow, type BinaryName } from "../../support/machine/binaries.js";
import { readNewCrdFiles } from "../../support/kinds/new-crds.js";
import { repositoryRoot } from "../../support/repository.js";
import { createTemporaryFolder, type TemporaryFolder } from "../../support/temporary-folder.js";

/** An object as manifests have it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** What came of a program. */
export interface ProgramOutcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const CRD = "crds/webpages.example.com.yaml";

/** A namespace beside the operator's own, in which it has a dependent; its name begins like that of the other. */
export const TEAM = "pages-system-of-a-team";

/** Creates a project called `pages` as `init` and `generate` make it, with a dependent in the namespace of a team. */
export async function createDeployFolder(): Promise<TemporaryFolder> {
  const folder = await createTemporaryFolder();
  const crd = join(repositoryRoot, "fixtures/samples/webpage", CRD);
  await initProject({ directory: folder.path, crdFiles: await readNewCrdFiles(crd), name: "@acme/pages" });
  const workflow = join(folder.path, "workflow.yaml");
  const dependent = `    notes: { resource: v1/Secret, namespace: ${TEAM}, deletion: ordered }\n`;
  await writeFile(workflow, (await readFile(workflow, "utf8")).replace("  dependents:\n", `$&${dependent}`));
  const { diagnostics } = await generate({ project: folder.path });
  if (diagnostics.length > 0) throw new Error(JSON.stringify(diagnostics));
  // What Helm spoils when it takes it for a template, for a replacement of a pattern, or for a float.
  const generated = join(folder.path, "deploy/generated", CRD);
  const text = (await readFile(generated, "utf8"))
    .replace(/^  annotations:\n/m, "  annotations:\n    example.com/note: kept\n\n")
    .replace(/^( +)format: int64$/m, "$1format: int64\n$1maximum: 9007199254740991")
    .replace(/description: .*/, 'description: "{{ .Values.nothing }} ${1} $1 {{ end"');
  await writeFile(generated, text);
  return folder;
}

/** Runs a program of the control plane in a folder. */
export function runBinary(name: BinaryName, cwd: string, args: readonly string[], input?: string): ProgramOutcome {
  // The programs keep caches in the home folder: neither that of the user nor the folder of a sample gets any.
  const home = mkdtempSync(join(tmpdir(), "gen-operator-home-"));
  try {
    const env = { PATH: process.env["PATH"], HOME: home, KUBECACHEDIR: join(home, ".cache") };
    const { status, stdout, stderr } = spawnSync(findBinaryOrThrow(name), args, {
      ...{ cwd, env, encoding: "utf8", timeout: 60_000, maxBuffer: 1e8 },
      ...(input === undefined ? {} : { input }),
    });
    return { status, stdout, stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Parses manifests; their order says nothing. */
export function parseManifests(text: string): ReadonlyMap<string, Manifest> {
  const objects = parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null);
  return new Map(
    objects.map((object): [string, Manifest] => [titleOf(object), object]).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function titleOf({ kind, metadata: { name, namespace } }: Manifest): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
