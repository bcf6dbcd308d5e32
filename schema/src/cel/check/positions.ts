import { OPTIONAL_FIELD, OPTIONAL_INDEX } from "../prepare/optional-syntax.js";
import type { Expression } from "../prepare/prepare-expression.js";

/** Where kube-apiserver says that the parts of an expression are. */
export class Positions {
  readonly #text: string;
  readonly #offsets: { readonly [id: string]: number };

  constructor(text: string, offsets: { readonly [id: string]: number }) {
    this.#text = text;
    this.#offsets = offsets;
  }

  /** Returns the offset of a part, or of the value of an entry. */
  of(part: Expression | bigint): number {
    if (typeof part === "bigint") return this.#firstOf(":", this.#startOf(part));
    const { id, exprKind } = part;
    const start = this.#startOf(id);
    // What a macro becomes is where its parenthesis is.
    const isMethod = /\.\D/y.test(this.#text.slice(start, start + 2));
    switch (exprKind.case) {
      case "selectExpr":
        return exprKind.value.testOnly ? this.#firstOf("(", start) : start;
      case "structExpr":
        return exprKind.value.messageName === "" && !isMethod ? start : this.#firstOf(isMethod ? "(" : "{", start);
      case "callExpr": {
        const name = exprKind.value.function;
        if (name === OPTIONAL_FIELD || name === OPTIONAL_INDEX) return start;
        if (isMethod || /^[A-Za-z]/.test(name)) return this.#firstOf("(", start);
        return name === "_?_:_" ? this.#firstOf("?", start) : start;
      }
      default:
        return isMethod ? this.#firstOf("(", start) : start;
    }
  }

  #startOf(id: bigint): number {
    const offset = this.#offsets[String(id)] ?? 0;
    const space = /\s*/y;
    space.lastIndex = offset;
    return offset + (space.exec(this.#text)?.[0].length ?? 0);
  }

  #firstOf(mark: string, start: number): number {
    const index = this.#text.indexOf(mark, start);
    return index === -1 ? start : index;
  }
}
