// The extension for texts, where it takes positions: they count characters, and those outside are told as cel-go tells them.
import { spendText } from "../budget.js";
import { typesOf, type FunctionsOf } from "../kubernetes-value.js";

/** `charAt`, `substring`, `indexOf` and `lastIndexOf`. */
export const positionFunctions: FunctionsOf = (library) => {
  const { celMethod } = library;
  const { STRING, INT } = typesOf(library);
  return [
    celMethod("charAt", STRING, [INT], STRING, function (position) {
      const characters = charactersOf(this);
      checkPosition(characters, position);
      return characters[Number(position)] ?? "";
    }),
    celMethod("substring", STRING, [INT], STRING, function (start) {
      const characters = charactersOf(this);
      checkPosition(characters, start);
      return characters.slice(Number(start)).join("");
    }),
    celMethod("substring", STRING, [INT, INT], STRING, function (start, end) {
      const characters = charactersOf(this);
      if (start > end) throw new Error(`invalid substring range. start: ${start}, end: ${end}`);
      checkPosition(characters, start);
      checkPosition(characters, end);
      return characters.slice(Number(start), Number(end)).join("");
    }),
    celMethod("indexOf", STRING, [STRING, INT], INT, function (part, start) {
      const characters = charactersOf(this);
      if (start < 0n) throw outOfRange(start);
      if (part === "") return start;
      const before = characters.slice(0, Number(start)).join("").length;
      return positionOf(this, start >= BigInt(characters.length) ? -1 : this.indexOf(part, before));
    }),
    celMethod("lastIndexOf", STRING, [STRING, INT], INT, function (part, start) {
      const characters = charactersOf(this);
      if (start < 0n) throw outOfRange(start);
      if (part === "") return start;
      const before = characters.slice(0, Number(start)).join("").length;
      return positionOf(this, start >= BigInt(characters.length) ? -1 : this.lastIndexOf(part, before));
    }),
  ];
};

function charactersOf(text: string): string[] {
  spendText(text);
  return [...text];
}

function positionOf(text: string, index: number): bigint {
  return index === -1 ? -1n : BigInt([...text.slice(0, index)].length);
}

function checkPosition(characters: readonly string[], position: bigint): void {
  if (position < 0n || position > BigInt(characters.length)) throw outOfRange(position);
}

function outOfRange(position: bigint): Error {
  return new Error(`index out of range: ${position}`);
}
