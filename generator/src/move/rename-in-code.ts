// Renames dependents in the user's code. Edits are replacements of names, so that comments and formatting stay as they are.
import { createCodeProject, pathIn, type CodeText } from "./code-project.js";
import { importEdits } from "./import-edits.js";
import { memberEdits } from "./member-edits.js";
import type { PendingMove } from "./pending-moves.js";

/** A part of a text that is replaced. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What is renamed. */
export interface RenameOptions {
  readonly root: string;
  readonly moves: readonly PendingMove[];
  /** The user's code, before. */
  readonly code: readonly CodeText[];
  /** The generated files, with the present names. */
  readonly generated: readonly CodeText[];
}

// Names that are found only when the names around them are the present ones: a few levels of patterns.
const MOST_PASSES = 10;

/** Returns the user's code with the present names; stubs that move have their new path. */
export function renameInCode({ root, moves, code, generated }: RenameOptions): CodeText[] {
  const moved = new Map(moves.map(({ stub }) => [stub.from, stub.to]));
  const texts = new Map(code.map(({ path, text }) => [moved.get(path) ?? path, text]));
  const project = createCodeProject(root, [...generated, ...[...texts].map(([path, text]) => ({ path, text }))]);
  const fileAt = (path: string) => project.getSourceFileOrThrow(pathIn(root, path));
  const apply = (path: string, edits: readonly TextEdit[]) => {
    if (edits.length === 0) return;
    const text = edited(texts.get(path) ?? "", edits);
    texts.set(path, text);
    project.createSourceFile(pathIn(root, path), text, { overwrite: true });
  };
  for (const path of texts.keys()) for (const move of moves) apply(path, importEdits(fileAt(path), { path, move }));
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    // All are found before one is changed: a change makes the compiler look at everything again.
    const found = [...texts.keys()].map((path) => ({
      path,
      edits: moves.flatMap((move) => memberEdits(fileAt(path), move)),
    }));
    if (found.every(({ edits }) => edits.length === 0)) break;
    for (const { path, edits } of found) apply(path, edits);
  }
  return [...texts].map(([path, text]) => ({ path, text }));
}

function edited(text: string, edits: readonly TextEdit[]): string {
  return [...edits]
    .sort((a, b) => b.start - a.start)
    .reduce((before, { start, end, text: wanted }) => before.slice(0, start) + wanted + before.slice(end), text);
}
