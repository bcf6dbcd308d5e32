/** Tells whether a class, a function or a method of this name begins in a text, and is not only called or imported there. */
export function isDeclaredIn(text: string, name: string): boolean {
  const isMember = new RegExp(`^ +(async )?${name}(<[^(]*>)?(\\([^\\n]*(\\{|,|\\()$|\\($|: (async )?\\()`, "m");
  return new RegExp(`\\b((class|function) ${name}\\b|const ${name} = (async )?\\()`).test(text) || isMember.test(text);
}

/** Returns the cells of all tables in a page whose heads have these columns. */
export function rowsWith(page: string, columns: readonly string[]): string[][] {
  const tables = page.split(/\n(?!\|)/).filter((part) => part.startsWith("\n|"));
  return tables.flatMap((table) => {
    const [head, , ...rows] = table.trim().split("\n").map(cellsOf);
    return columns.every((column, index) => head?.[index] === column) ? rows : [];
  });
}

function cellsOf(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** Returns what a text has between backticks, outside of blocks of code. */
export function namesIn(text = ""): string[] {
  return [...text.replaceAll(/^```[^]*?^```$/gm, "").matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
}
