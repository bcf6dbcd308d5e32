import type { Project, SourceFileStructure } from "ts-morph";
import { loadLibrary } from "../model/library.js";
import { GENERATED_HEADER, type OutputFile } from "./output-file.js";

/** The parts of a generated file: structures of ts-morph, or printed text. */
export type Statements = Exclude<SourceFileStructure["statements"], undefined>;

/** Turns structures into the text of generated files. */
export interface SourcePrinter {
  /** Returns a generated file, formatted. */
  print(path: string, statements: Statements): Promise<OutputFile>;
}

/** Loads ts-morph and prettier, which take a quarter of a second. */
export async function loadSourcePrinter(): Promise<SourcePrinter> {
  const { Project, IndentationText } = loadLibrary("ts-morph");
  const { format } = await import("prettier");
  const project: Project = new Project({
    useInMemoryFileSystem: true,
    skipLoadingLibFiles: true,
    manipulationSettings: { indentationText: IndentationText.TwoSpaces },
  });
  return {
    async print(path, statements) {
      // Every manipulation parses the file again, so each is made of all its structures at once.
      const file = project.createSourceFile(path, { statements }, { overwrite: true });
      const text = `${GENERATED_HEADER}\n\n${file.getFullText()}`;
      project.removeSourceFile(file);
      // The same layout as the typescript parser's, several times faster on long files. The user's configuration has no say.
      const content = await format(text, { parser: "babel-ts", printWidth: 120 });
      return { path, owner: "generator", content: escapeSeparators(content) };
    },
  };
}

// JavaScript takes these for line ends; they can only stand in string literals here.
function escapeSeparators(text: string): string {
  return text.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}
