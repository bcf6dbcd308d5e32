import { GENERATED_HEADER, type OutputFile } from "./output-file.js";

/** Where a project lists its generated files, so that those which are no longer generated can be deleted. */
export const MANIFEST_PATH = "src/generated/.gen-operator.json";

/** What a manifest lists, by path. */
export interface Manifest {
  readonly generatedFiles: readonly string[];
  /** Stubs of earlier runs, so that a stub that is no longer needed can be named. */
  readonly stubs: readonly string[];
}

/** Renders the manifest of the files of a project. */
export function renderManifest(files: readonly OutputFile[]): string {
  const pathsOf = (wanted: OutputFile["owner"]) =>
    files.flatMap(({ path, owner }) => (owner === wanted ? [path] : [])).sort();
  const stubs = pathsOf("user");
  const manifest = { generatedFiles: pathsOf("generator"), ...(stubs.length > 0 ? { stubs } : {}) };
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

/** Reads a manifest; a missing or damaged manifest lists nothing. */
export function readManifest(text: string | undefined): Manifest {
  try {
    const { generatedFiles, stubs } = JSON.parse(text ?? "{}") as Partial<Record<keyof Manifest, unknown>>;
    return { generatedFiles: pathsIn(generatedFiles), stubs: pathsIn(stubs) };
  } catch {
    return { generatedFiles: [], stubs: [] };
  }
}

function pathsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((path) => typeof path === "string") : [];
}

/** Tells whether a text says of itself that it is generated; comments start differently in other languages. */
export function isGenerated(text: string): boolean {
  return text.slice(0, 200).includes(GENERATED_HEADER.slice("// ".length));
}
