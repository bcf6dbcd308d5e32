import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { buildModel } from "./check/build-model.js";
import { UNKNOWN_VERSION } from "./check/rules.js";
import { type Diagnostic, counted, hasErrors, quote } from "./diagnostic.js";
import { emitResources } from "./emit/emit-project.js";
import type { GenerateResult } from "./generate.js";
import { type Crd, readCrdFiles } from "./read/crd/read-crds.js";
import { readBuiltinKinds, withKinds } from "./read/kinds.js";
import { type Inputs, readInputs } from "./read/read-inputs.js";
import { writeFiles } from "./write/write-files.js";

/** What `generateTypes` works on. */
export interface GenerateTypesOptions {
  /** What has CustomResourceDefinitions, relative to the working directory: files of YAML or JSON, folders, glob patterns; or their texts. */
  readonly files: readonly string[] | Inputs;
  /** The folder to write to; created if missing. */
  readonly out: string;
  /** Reports what is stale and writes nothing. */
  readonly check?: boolean;
  /** Leaves out versions that no API server serves. */
  readonly servedOnly?: boolean;
  /** Only these versions, such as `v1`. Default: all. */
  readonly versions?: readonly string[];
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** The folder of generated files in a whole project; here, the folder that was asked for takes its place. */
const PREFIX = "src/generated/";

/** Generates the typed resources of CRDs without a workflow. */
export async function generateTypes(options: GenerateTypesOptions): Promise<GenerateResult> {
  const { files, out, check = false, onStep = () => {} } = options;
  const inputs = "files" in files ? files : await readInputs(files, { folder: ".", readStdin: refuseStdin });
  const count = inputs.files.length;
  let begun = 0;
  const read = readCrdFiles(inputs, (file) => onStep(`reading ${file} (${++begun} of ${count})`));
  const { crds, diagnostics } = selectVersions(read.crds, options);
  const found: Diagnostic[] = [...read.diagnostics, ...diagnostics];
  if (hasErrors(found)) return { diagnostics: found };

  const built = await buildModel({ crds, workflows: [], builtin: withKinds(await readBuiltinKinds(), read.kinds) });
  found.push(...built.diagnostics);
  if (built.model === undefined) return { diagnostics: found };

  const { resources } = built.model;
  let made = 0;
  const emitted = emitResources(resources, ({ kind, version }) =>
    onStep(`generating the types of ${kind} ${version} (${++made} of ${resources.length})`),
  );
  const moved = emitted.map((file) => ({ ...file, path: file.path.slice(PREFIX.length) }));
  onStep(`${check ? "comparing" : "writing"} ${counted(moved.length, "file")}`);
  if (!check) await mkdir(resolve(out), { recursive: true });
  const report = await writeFiles(resolve(out), moved, { check, manifestPath: ".gen-operator.json" });
  return { diagnostics: found, report };
}

function refuseStdin(): never {
  throw new Error("refused to read the standard input: pass its text");
}

/** Keeps the versions that are asked for; a version that no CRD has is a slip. */
function selectVersions(
  crds: readonly Crd[],
  { servedOnly = false, versions }: GenerateTypesOptions,
): { readonly crds: readonly Crd[]; readonly diagnostics: readonly Diagnostic[] } {
  const names = new Set(crds.flatMap((crd) => crd.versions.map(({ name }) => name)));
  const diagnostics = (versions ?? [])
    .filter((version) => crds.length > 0 && !names.has(version))
    .map((version): Diagnostic => ({
      ...UNKNOWN_VERSION.violation,
      message: `no CustomResourceDefinition has the version ${quote(version)}`,
      hint: `there are: ${[...names].sort().join(", ")}`,
    }));
  const isWanted = ({ name, isServed }: Crd["versions"][number]) =>
    (isServed || !servedOnly) && (versions?.includes(name) ?? true);
  const selected = crds.map((crd) => ({ ...crd, versions: crd.versions.filter(isWanted) }));
  return { crds: selected.filter((crd) => crd.versions.length > 0), diagnostics };
}
