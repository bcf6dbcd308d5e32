import { printableLine, printableText } from "@gen-operator/schema";
import type { DependentReport, PrimaryReport } from "./operator/reports.js";

/** Output of a table. */
export interface LiveTableOptions {
  /** True to redraw the table in place on a terminal. Otherwise each change is printed as a line. */
  readonly isTerminal: boolean;
  readonly write: (text: string) => void;
  /** Current size of the terminal. Some terminals report 0, which counts as the default. Default: 100 columns and 40 rows */
  readonly size?: () => { readonly columns: number; readonly rows: number };
}

interface Row {
  readonly name: string;
  readonly state: string;
  readonly why: string;
}

interface Primary {
  readonly own: Row;
  readonly nodes: Map<string, Row>;
}

const ESCAPE = "\u001b[";
const HEADING: Row = { name: "PRIMARY", state: "STATE", why: "WHY" };
/** Rows of the terminal reserved for output above the table. */
const FREE_ROWS = 8;

/** Shows primaries and their dependents: as a table that is redrawn on a terminal, or as one line per change elsewhere. */
export class LiveTable {
  readonly #options: LiveTableOptions;
  readonly #primaries = new Map<string, Primary>();
  #drawnLines = 0;

  constructor(options: LiveTableOptions) {
    this.#options = options;
  }

  /** Prints a heading above the table. */
  step(text: string): void {
    this.#print(this.#bold(printableLine(text)));
  }

  /** Prints a note on the current step. */
  note(text: string): void {
    this.#print(`  ${printableLine(text)}`);
  }

  /** Prints lines above the table. Control characters are escaped. The caller indents continuation lines. */
  print(text: string): void {
    this.#print(printableText(text));
  }

  #print(text: string): void {
    this.#erase();
    this.#options.write(`${text}\n`);
    this.#draw();
  }

  /** Shows the result of a reconcile. */
  update({ primary, state, error, dependents }: PrimaryReport): void {
    const before = this.#primaries.get(primary);
    const nodes = new Map(dependents.map(({ name, state, why }) => [name, { name, state, why }]));
    // A reconcile that failed before its workflow reports no dependents.
    const kept = nodes.size > 0 ? nodes : (before?.nodes ?? nodes);
    const after = { own: { name: primary, state, why: error ?? "" }, nodes: kept };
    this.#primaries.set(primary, after);
    if (this.#options.isTerminal) return this.#redraw();
    // The error of the reconcile repeats those of its dependents.
    const isTold = dependents.some((each) => each.state === "failed");
    if (error !== undefined && !isTold) this.note(`${primary}: ${error}`);
    for (const { name, state, why } of dependents)
      if (isNews(before?.nodes.get(name), { state, why }))
        this.note(`${primary}  ${name}: ${state}${why === "" ? "" : `, ${why}`}`);
    if (error === undefined && before?.own.state !== state) this.note(`${primary}: ${state}`);
  }

  /** Removes a deleted primary from the table. */
  remove(primary: string): void {
    if (!this.#primaries.delete(primary)) return;
    if (this.#options.isTerminal) this.#redraw();
    else this.note(`${primary}: deleted`);
  }

  #redraw(): void {
    this.#erase();
    this.#draw();
  }

  #draw(): void {
    if (!this.#options.isTerminal || this.#primaries.size === 0) return;
    const size = this.#options.size?.();
    const columns = size?.columns || 100;
    const rows = size?.rows || 40;
    const all = [HEADING, ...[...this.#primaries.values()].flatMap(rowsOf)];
    const most = Math.max(2, rows - FREE_ROWS);
    const shown = all.length > most ? all.slice(0, most - 1) : all;
    const width = (column: keyof Row) => Math.max(...shown.map((row) => row[column].length)) + 2;
    const [name, state] = [width("name"), width("state")];
    const lines = shown.map((row) => `  ${row.name.padEnd(name)}${row.state.padEnd(state)}${row.why}`.trimEnd());
    if (shown.length < all.length) lines.push(`  … ${all.length - shown.length} more`);
    // Truncate lines: a wrapped line would not be erased completely.
    const cut = lines.map((line) => (line.length < columns ? line : `${line.slice(0, columns - 2)}…`));
    const [heading = "", ...rest] = cut;
    this.#options.write(`${[this.#bold(heading), ...rest].join("\n")}\n`);
    this.#drawnLines = lines.length;
  }

  #erase(): void {
    if (this.#drawnLines > 0) this.#options.write(`${ESCAPE}${this.#drawnLines}A${ESCAPE}J`);
    this.#drawnLines = 0;
  }

  #bold(text: string): string {
    return this.#options.isTerminal ? `${ESCAPE}1m${text}${ESCAPE}0m` : text;
  }
}

function rowsOf({ own, nodes }: Primary): Row[] {
  return [own, ...[...nodes.values()].map((node) => ({ ...node, name: `  ${node.name}` }))].map(
    ({ name, state, why }) => ({ name: printableLine(name), state: printableLine(state), why: printableLine(why) }),
  );
}

// Repeated writes are reported even if the row does not change.
function isNews(before: Row | undefined, { state, why }: Omit<DependentReport, "name">): boolean {
  const isWrite = state === "created" || state === "updated";
  return before?.state !== state || before.why !== why || isWrite;
}
