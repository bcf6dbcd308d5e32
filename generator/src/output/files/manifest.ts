import { GENERATED_HEADER, type OutputFile } from "./output-file.js";

/** Where a project lists its generated files, so that those which are no longer generated can be deleted. */
export const MANIFEST_PATH = "src/generated/.gen-operator.json";

/** What a manifest lists, by path. */
export interface Manifest {
  readonly generatedFiles: readonly string[];
  /** Stubs of earlier runs, so that a stub that is no longer needed can be named. */
  readonly stubs: readonly string[];
  /** Whether the run that wrote it has not ended: any of the files may be old, new or missing. */
  readonly isUnfinished: boolean;
}

const NOTHING: Manifest = { generatedFiles: [], stubs: [], isUnfinished: false };

/** Returns the manifest of the files of a project. */
export function manifestOf(files: readonly OutputFile[]): Manifest {
  const pathsOf = (wanted: OutputFile["owner"]) => files.flatMap(({ path, owner }) => (owner === wanted ? [path] : []));
  return { generatedFiles: pathsOf("generator"), stubs: pathsOf("user"), isUnfinished: false };
}

/** Returns the manifest of a run that has not ended: it lists the files of the last run, too, so that a crash leaves none unknown. */
export function unfinishedManifest(before: Manifest, after: Manifest): Manifest {
  return {
    generatedFiles: [...before.generatedFiles, ...after.generatedFiles],
    stubs: [...before.stubs, ...after.stubs],
    isUnfinished: true,
  };
}

/** Renders a manifest. */
export function renderManifest({ generatedFiles, stubs, isUnfinished }: Manifest): string {
  const manifest = {
    ...(isUnfinished ? { unfinished: true } : {}),
    generatedFiles: sorted(generatedFiles),
    ...(stubs.length > 0 ? { stubs: sorted(stubs) } : {}),
  };
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

/** Reads a manifest; a missing or damaged manifest lists nothing. */
export function readManifest(text: string | undefined): Manifest {
  try {
    const read = JSON.parse(text ?? "{}") as { readonly [K in "generatedFiles" | "stubs" | "unfinished"]?: unknown };
    return {
      generatedFiles: pathsIn(read.generatedFiles),
      stubs: pathsIn(read.stubs),
      isUnfinished: read.unfinished === true,
    };
  } catch {
    return NOTHING;
  }
}

function pathsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((path) => typeof path === "string") : [];
}

function sorted(paths: readonly string[]): string[] {
  return [...new Set(paths)].sort();
}

/** Tells whether a text says of itself that it is generated; comments start differently in other languages. */
export function isGenerated(text: string): boolean {
  return text.slice(0, 200).includes(GENERATED_HEADER.slice("// ".length));
}
