// How wide code is laid out, by the algorithm of prettier: what is printed here stays as it is when prettier formats it.
import { builders, printer } from "prettier/doc";

/** A text of which it is known where lines may end. */
export type Doc = builders.Doc;

/** The builders of documents, as prettier describes them. */
export const { align, group, conditionalGroup, hardline, ifBreak, indent, indentIfBreak, join, line, softline } =
  builders;

/** The columns of a line. */
export const WIDTH = 120;

/** Lays a document out; `depth` columns are in front of all lines but the first, which the caller writes. */
export function layOut(doc: Doc, depth = 0): string {
  // Most of what is printed fits on a line, and needs no algorithm.
  const text = flatText(doc, false);
  if (text !== undefined && text.length <= WIDTH - depth) return text;
  const { formatted } = printer.printDocToString(doc, { printWidth: WIDTH - depth, tabWidth: 2, useTabs: false });
  return depth === 0 ? formatted : formatted.replaceAll("\n", `\n${" ".repeat(depth)}`).replaceAll(/\n +(?=\n)/g, "\n");
}

/** Returns a document on one line; undefined if it has to break, or has parts that are laid out in other ways. */
function flatText(doc: Doc, isInGroup: boolean): string | undefined {
  // Other letters may be wider than one column.
  if (typeof doc === "string") return /^[ -~]*$/.test(doc) ? doc : undefined;
  if (Array.isArray(doc)) {
    let text = "";
    for (const part of doc) {
      const flat = flatText(part, isInGroup);
      if (flat === undefined) return undefined;
      text += flat;
    }
    return text;
  }
  switch (doc.type) {
    case "group":
      return doc.break ? undefined : flatText(doc.contents, true);
    case "indent":
    case "align":
      return flatText(doc.contents, isInGroup);
    case "if-break":
      // Another group may decide.
      return isInGroup && !("groupId" in doc && doc.groupId !== undefined)
        ? flatText(doc.flatContents, true)
        : undefined;
    case "line":
      // Outside of a group, lines end here.
      return doc.hard || !isInGroup ? undefined : doc.soft ? "" : " ";
    default:
      return undefined;
  }
}

/** How the items of a list are put between brackets. */
export interface ListStyle {
  /** What is between the brackets and the items on one line. */
  readonly space: Doc;
  /** What ends the last item on lines of its own. */
  readonly end: "" | "," | ";";
  /** Whether each item is on a line of its own, however short. */
  readonly shouldBreak?: boolean;
}

/** Puts items between brackets: on one line if they fit, else each on its own. */
export function listOf([open, close]: readonly [string, string], items: readonly Doc[], style: ListStyle): Doc {
  if (items.length === 0) return `${open}${close}`;
  const { space, end, shouldBreak = false } = style;
  const separator = end === ";" ? ";" : ",";
  return group([open, indent([space, join([separator, line], [...items])]), ifBreak(end), space, close], {
    shouldBreak,
  });
}
