import type { Expression } from "../prepare/prepare-expression.js";

/** Where the parts of an expression are in its text. */
export class Positions {
  readonly #text: string;
  readonly #offsets: { readonly [id: string]: number };

  constructor(text: string, offsets: { readonly [id: string]: number }) {
    this.#text = text;
    this.#offsets = offsets;
  }

  ofId(id: bigint): number {
    return this.#offsets[String(id)] ?? 0;
  }

  of({ id }: Expression): number {
    return this.ofId(id);
  }

  // kube-apiserver names the brace of what is constructed.
  startOf(expression: Expression): number {
    const offset = this.of(expression);
    const { exprKind } = expression;
    const isMessage = exprKind.case === "structExpr" && exprKind.value.messageName !== "";
    return isMessage ? this.#text.indexOf("{", offset) : offset;
  }

  // kube-apiserver names the parenthesis of a call, and the question mark of a choice.
  ofCall(expression: Expression, name: string): number {
    const start = this.#text.indexOf(name, this.of(expression));
    const parenthesis = start === -1 ? -1 : this.#text.indexOf("(", start + name.length);
    return parenthesis === -1 ? this.of(expression) : parenthesis;
  }

  ofOperator(expression: Expression, name: string): number {
    const offset = this.of(expression);
    const mark = name === "_?_:_" ? this.#text.indexOf("?", offset) : -1;
    return mark === -1 ? offset : mark;
  }
}
