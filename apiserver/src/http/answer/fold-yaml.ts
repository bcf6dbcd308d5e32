const MAX_COLUMN = 80;
const KEY = `(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*'|[^'"\\s](?:(?!: ).)*): `;
const LINE = new RegExp(`^( *(?:- )*)(${KEY})?(.*)$`);
const BLOCK = /^[|>][-+\d]*$/;

/** Folds texts in YAML as go-yaml does: at the first single space after eighty columns. Expects each text in one line, or in a block. */
export function foldTexts(yaml: string): string {
  // The column of the key or dash of a block, whose lines stand deeper.
  let block: number | undefined;
  const lines = yaml.split("\n").map((line) => {
    if (block !== undefined && /^ */.exec(line)![0].length > block) return line;
    const [, indent = "", key = "", text = ""] = LINE.exec(line) ?? [];
    const column = key === "" ? Math.max(0, indent.length - 2) : indent.length;
    if (line !== "") block = BLOCK.test(text) ? column : undefined;
    return folded(text, { start: indent + key, indent: " ".repeat(column + 2) });
  });
  return lines.join("\n");
}

function folded(text: string, { start, indent }: { start: string; indent: string }): string {
  let [lines, line] = ["", start];
  for (let at = 0; at < text.length; at++) {
    const isBreak = text[at] === " " && line.length > MAX_COLUMN && text[at - 1] !== " " && text[at + 1] !== " ";
    if (isBreak) [lines, line] = [`${lines}${line}\n`, indent];
    else line += text[at];
  }
  return lines + line;
}
