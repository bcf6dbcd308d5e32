import { OPTIONAL_FIELD, OPTIONAL_INDEX, quotedAt } from "../expression/optional-syntax.js";
import type { Expression } from "../expression/prepare-expression.js";

// The parser says of these where their first operand begins.
const OUTER_MARKS: { readonly [operator: string]: string } = { "_?_:_": "?", "_||_": "||", "_&&_": "&&" };

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
        const mark = OUTER_MARKS[name];
        return mark === undefined ? start : this.#outerMark(mark, start);
      }
      case "identExpr":
        // The name of a type has a dot, as `net.IP`.
        return isMethod && !exprKind.value.name.includes(".") ? this.#firstOf("(", start) : start;
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

  // The mark after an operand, which may have others in brackets and in texts.
  #outerMark(mark: string, start: number): number {
    let depth = 0;
    for (let index = start; index < this.#text.length; index++) {
      const quoted = quotedAt(this.#text, index);
      const character = this.#text[index]!;
      if (quoted !== undefined) index += quoted.length - 1;
      else if ("([{".includes(character)) depth++;
      else if (")]}".includes(character)) depth--;
      else if (depth === 0 && this.#text.startsWith(mark, index)) return index;
    }
    return start;
  }

  #firstOf(mark: string, start: number): number {
    const index = this.#text.indexOf(mark, start);
    return index === -1 ? start : index;
  }
}
