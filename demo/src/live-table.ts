import type { DependentOutcome, ReconcileEvent } from "@gen-operator/runtime";

interface Row {
  readonly primary: string;
  readonly dependent: string;
  readonly state: string;
  readonly why: string;
}

const ESCAPE = "\u001b[";

/** Shows what happens: a table that is drawn anew on a terminal, or a line for each change elsewhere. */
export class LiveTable {
  readonly #isTerminal: boolean;
  readonly #write: (text: string) => void;
  readonly #rows = new Map<string, Row>();
  #drawnLines = 0;

  constructor({ isTerminal, write }: { isTerminal: boolean; write: (text: string) => void }) {
    this.#isTerminal = isTerminal;
    this.#write = write;
  }

  /** Prints a heading; the table goes on below it. */
  step(text: string): void {
    this.#erase();
    this.#write(`${this.#isTerminal ? `${ESCAPE}1m${text}${ESCAPE}0m` : text}\n`);
    this.#draw();
  }

  /** Prints a remark on the current step. */
  note(text: string): void {
    this.#erase();
    this.#write(`  ${text}\n`);
    this.#draw();
  }

  /** Takes what a reconcile did. */
  update({ primary, workflow, error }: ReconcileEvent): void {
    const page = primary.slice(primary.indexOf("/") + 1);
    if (error !== undefined) this.note(`${page}: ${error instanceof Error ? error.message : String(error)}`);
    for (const [dependent, outcome] of Object.entries(workflow?.dependents ?? {}))
      this.#set({ primary: page, dependent, ...describeOutcome(outcome) });
  }

  /** Takes a primary out of the table. */
  remove(primary: string): void {
    this.#erase();
    for (const [key, row] of this.#rows) if (row.primary === primary) this.#rows.delete(key);
    this.#draw();
  }

  #set(row: Row): void {
    const key = `${row.primary}/${row.dependent}`;
    const before = this.#rows.get(key);
    // A second repair looks like the first, and is news all the same.
    const isWrite = row.state === "created" || row.state === "updated";
    if (before?.state === row.state && before.why === row.why && !isWrite) return;
    this.#erase();
    this.#rows.set(key, row);
    if (this.#isTerminal) this.#draw();
    else this.#write(`  ${row.primary}  ${row.dependent}: ${row.state}${row.why === "" ? "" : `, ${row.why}`}\n`);
  }

  #draw(): void {
    if (!this.#isTerminal || this.#rows.size === 0) return;
    const rows = [{ primary: "WEBPAGE", dependent: "DEPENDENT", state: "STATE", why: "" }, ...this.#rows.values()];
    const width = (column: keyof Row) => Math.max(...rows.map((row) => row[column].length)) + 2;
    const [primary, dependent, state] = [width("primary"), width("dependent"), width("state")];
    const lines = rows.map(
      (row) => `  ${row.primary.padEnd(primary)}${row.dependent.padEnd(dependent)}${row.state.padEnd(state)}${row.why}`,
    );
    this.#write(`${lines.join("\n")}\n`);
    this.#drawnLines = lines.length;
  }

  #erase(): void {
    if (this.#drawnLines > 0) this.#write(`${ESCAPE}${this.#drawnLines}A${ESCAPE}J`);
    this.#drawnLines = 0;
  }
}

/** Says what became of a dependent, and why nothing did. */
export function describeOutcome(outcome: DependentOutcome): { state: string; why: string } {
  switch (outcome.kind) {
    case "created":
    case "updated":
      return { state: outcome.kind, why: outcome.isReady ? "" : "not ready yet" };
    case "unchanged":
      return outcome.isReady ? { state: "ready", why: "" } : { state: "as desired", why: "not ready yet" };
    case "waiting":
      return { state: "waiting", why: `for ${outcome.for.join(", ")}` };
    case "deleted":
      return { state: outcome.isGone ? "absent" : "going", why: outcome.because };
    case "inactive":
      return { state: "inactive", why: "its activation condition does not hold" };
    case "left":
      return { state: "left", why: "to the garbage collector" };
    case "failed":
      return { state: "failed", why: outcome.error instanceof Error ? outcome.error.message : String(outcome.error) };
  }
}
