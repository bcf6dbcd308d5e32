/** A block of code in a document. */
export interface Fence {
  /** The path of the document. */
  readme: string;
  /** The line of its first line of code. */
  line: number;
  /** The text behind the opening backticks; empty if there is none. */
  info: string;
  code: string;
}

/** Returns the blocks of code of a document, in order. */
export function fencesOf(readme: string, text: string): Fence[] {
  const fences: Fence[] = [];
  let open: Fence | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (open === undefined) {
      const info = /^```(.*)$/.exec(line)?.[1];
      if (info !== undefined) open = { readme, line: index + 2, info: info.trim(), code: "" };
    } else if (line.startsWith("```")) {
      fences.push(open);
      open = undefined;
    } else {
      open.code += `${line}\n`;
    }
  }
  return fences;
}
