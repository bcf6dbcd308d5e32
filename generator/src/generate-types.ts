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

/** Options of {@link generateTypes}. */
export interface GenerateTypesOptions {
  /** The CustomResourceDefinitions: YAML or JSON files, folders, or glob patterns, relative to the working directory; or the texts of files. */
  readonly files: readonly string[] | Inputs;
  /** Output folder. Created if it does not exist. */
  readonly out: string;
  /** Report stale files instead of writing. Default: false */
  readonly check?: boolean;
  /** Skip versions that are not served. Default: false */
  readonly servedOnly?: boolean;
  /** Only generate these versions, for example `v1`. Default: all */
  readonly versions?: readonly string[];
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** The folder of generated files in a project, which the output folder replaces. */
const PREFIX = "src/generated/";

/** Generates typed resources from CRDs, without a workflow. */
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

/** Selects the requested versions. Reports versions that no CRD has. */
function selectVersions(
  crds: readonly Crd[],
  { servedOnly = false, versions }: GenerateTypesOptions,
): { readonly crds: readonly Crd[]; readonly diagnostics: readonly Diagnostic[] } {
  const names = new Set(crds.flatMap((crd) => crd.versions.map(({ name }) => name)));
  const diagnostics = (versions ?? [])
    .filter((version) => crds.length > 0 && !names.has(version))
    .map((version): Diagnostic => ({
      ...UNKNOWN_VERSION.violation,
      message: `version ${quote(version)} not found in any CustomResourceDefinition`,
      hint: `known versions: ${[...names].sort().join(", ")}`,
    }));
  const isWanted = ({ name, isServed }: Crd["versions"][number]) =>
    (isServed || !servedOnly) && (versions?.includes(name) ?? true);
  const selected = crds.map((crd) => ({ ...crd, versions: crd.versions.filter(isWanted) }));
  return { crds: selected.filter((crd) => crd.versions.length > 0), diagnostics };
}
