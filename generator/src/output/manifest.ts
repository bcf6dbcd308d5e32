import { GENERATED_HEADER, type OutputFile } from "./output-file.js";

/** Where a project lists its generated files, so that those which are no longer generated can be deleted. */
export const MANIFEST_PATH = "src/generated/.gen-operator.json";

/** Renders the manifest of generated files. */
export function renderManifest(files: readonly OutputFile[]): string {
  const paths = files.map(({ path }) => path).sort();
  return `${JSON.stringify({ generatedFiles: paths }, undefined, 2)}\n`;
}

/** Reads the paths that a manifest lists; a missing or damaged one lists none. */
export function readManifest(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  try {
    const { generatedFiles } = JSON.parse(text) as { generatedFiles?: unknown };
    return Array.isArray(generatedFiles) ? generatedFiles.filter((path) => typeof path === "string") : [];
  } catch {
    return [];
  }
}

/** Tells whether a text says of itself that it is generated; comments start differently in other languages. */
export function isGenerated(text: string): boolean {
  return text.slice(0, 200).includes(GENERATED_HEADER.slice("// ".length));
}
