import type { RememberedController, RememberedDependent } from "../../model/project-memory.js";
import {
  CONTROLLERS_FIELD,
  MEMORY_FIELD,
  readControllers,
  readMemory,
  renderControllers,
  renderMemory,
} from "./manifest-memory.js";
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
  /** The controllers of the last generation; absent if nothing is known. */
  readonly controllers?: readonly RememberedController[] | undefined;
  /** Whether the run that wrote it has not ended: any of the files may be old, new or missing. */
  readonly isUnfinished: boolean;
}

const NOTHING: Manifest = { generatedFiles: [], stubs: [], isUnfinished: false };

/** Returns the manifest of the files of a project, and of its controllers and dependents. */
export function manifestOf(
  files: readonly OutputFile[],
  { dependents, controllers }: Pick<Manifest, "dependents" | "controllers">,
): Manifest {
  const pathsOf = (wanted: OutputFile["owner"]) => files.flatMap(({ path, owner }) => (owner === wanted ? [path] : []));
  return { generatedFiles: pathsOf("generator"), stubs: pathsOf("user"), dependents, controllers, isUnfinished: false };
}

/** Returns the manifest of a run that has not ended: it lists what the last run had, too, so that a crash leaves nothing unknown. */
export function unfinishedManifest(before: Manifest, after: Manifest): Manifest {
  return {
    generatedFiles: [...before.generatedFiles, ...after.generatedFiles],
    stubs: [...before.stubs, ...after.stubs],
    dependents: joined(before.dependents, after.dependents),
    controllers: joined(before.controllers, after.controllers),
    isUnfinished: true,
  };
}

function joined<Entry>(before: readonly Entry[] | undefined, after: readonly Entry[] | undefined) {
  return before === undefined && after === undefined ? undefined : [...(before ?? []), ...(after ?? [])];
}

/** Renders a manifest. */
export function renderManifest({ generatedFiles, stubs, dependents, controllers, isUnfinished }: Manifest): string {
  const manifest = {
    ...(isUnfinished ? { unfinished: true } : {}),
    generatedFiles: sorted(generatedFiles),
    ...(stubs.length > 0 ? { stubs: sorted(stubs) } : {}),
  };
  const text = JSON.stringify(manifest, undefined, 2);
  const memory = [
    ...(controllers === undefined ? [] : [`"${CONTROLLERS_FIELD}": ${renderControllers(controllers)}`]),
    ...(dependents === undefined ? [] : [`"${MEMORY_FIELD}": ${renderMemory(dependents)}`]),
  ];
  return memory.length === 0 ? `${text}\n` : `${text.slice(0, -2)},\n  ${memory.join(",\n  ")}\n}\n`;
}

/** Reads a manifest; a missing or damaged manifest lists no files. */
export function readManifest(text: string | undefined): Manifest {
  const [dependents, controllers] = text === undefined ? [] : [readMemory(text), readControllers(text)];
  try {
    const read = JSON.parse(text ?? "{}") as { readonly [K in "generatedFiles" | "stubs" | "unfinished"]?: unknown };
    return {
      generatedFiles: pathsIn(read.generatedFiles),
      stubs: pathsIn(read.stubs),
      dependents,
      controllers,
      isUnfinished: read.unfinished === true,
    };
  } catch {
    return { ...NOTHING, dependents, controllers };
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
