import type { RememberedDependent } from "../../model/project-memory.js";
import { MEMORY_FIELD, readMemory, renderMemory } from "./manifest-memory.js";
import { GENERATED_HEADER, type OutputFile } from "./output-file.js";

/** Where a project lists its generated files, so that those which are no longer generated can be deleted. */
export const MANIFEST_PATH = "src/generated/.gen-operator.json";

/** What a manifest lists, by path. */
export interface Manifest {
  readonly generatedFiles: readonly string[];
  /** Stubs of earlier runs, so that a stub that is no longer needed can be named. */
  readonly stubs: readonly string[];
  /** The dependents that objects may run of; absent if nothing is known. */
  readonly dependents?: readonly RememberedDependent[] | undefined;
  /** Whether the run that wrote it has not ended: any of the files may be old, new or missing. */
  readonly isUnfinished: boolean;
}

const NOTHING: Manifest = { generatedFiles: [], stubs: [], isUnfinished: false };

/** Returns the manifest of the files of a project, and of its dependents. */
export function manifestOf(files: readonly OutputFile[], dependents: Manifest["dependents"]): Manifest {
  const pathsOf = (wanted: OutputFile["owner"]) => files.flatMap(({ path, owner }) => (owner === wanted ? [path] : []));
  return { generatedFiles: pathsOf("generator"), stubs: pathsOf("user"), dependents, isUnfinished: false };
}

/** Returns the manifest of a run that has not ended: it lists what the last run had, too, so that a crash leaves nothing unknown. */
export function unfinishedManifest(before: Manifest, after: Manifest): Manifest {
  const isKnown = before.dependents !== undefined || after.dependents !== undefined;
  return {
    generatedFiles: [...before.generatedFiles, ...after.generatedFiles],
    stubs: [...before.stubs, ...after.stubs],
    dependents: isKnown ? [...(before.dependents ?? []), ...(after.dependents ?? [])] : undefined,
    isUnfinished: true,
  };
}

/** Renders a manifest. */
export function renderManifest({ generatedFiles, stubs, dependents, isUnfinished }: Manifest): string {
  const manifest = {
    ...(isUnfinished ? { unfinished: true } : {}),
    generatedFiles: sorted(generatedFiles),
    ...(stubs.length > 0 ? { stubs: sorted(stubs) } : {}),
  };
  const text = JSON.stringify(manifest, undefined, 2);
  if (dependents === undefined) return `${text}\n`;
  return `${text.slice(0, -2)},\n  "${MEMORY_FIELD}": ${renderMemory(dependents)}\n}\n`;
}

/** Reads a manifest; a missing or damaged manifest lists no files. */
export function readManifest(text: string | undefined): Manifest {
  const dependents = text === undefined ? undefined : readMemory(text);
  try {
    const read = JSON.parse(text ?? "{}") as { readonly [K in "generatedFiles" | "stubs" | "unfinished"]?: unknown };
    return {
      generatedFiles: pathsIn(read.generatedFiles),
      stubs: pathsIn(read.stubs),
      dependents,
      isUnfinished: read.unfinished === true,
    };
  } catch {
    return { ...NOTHING, dependents };
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
