// Tells whether a JSON text is made as another one was, and differs from it only in what some strings say, by comparing the two word by
// word: that is many times faster than scanning it, and neighbours in a list or a watch are mostly made alike.
//
// It holds for any text: as long as two texts are equal, they are at the same point of the same token, and behind a string that both have
// at the same place they are again.
import { endOfString, type Range } from "./json-scanner.js";

/** A longer text is no model, and is compared with none: its memory would be missed. */
export const LONGEST_BYTES = 64 * 1024;

const WORD_BYTES = 8;
const BACKSLASH = 0x5c;

/** A text in memory of its own, which is read by words wherever they stand. */
class LoadedText {
  length = 0;
  bytes: Buffer = Buffer.alloc(0);
  words = wordsOf(this.bytes);

  load(source: Buffer, { start, end }: Range): void {
    this.length = end - start;
    if (this.length > this.bytes.length) {
      this.bytes = Buffer.allocUnsafeSlow(Math.min(LONGEST_BYTES, 2 * this.length));
      this.words = wordsOf(this.bytes);
    }
    source.copy(this.bytes, 0, start, end);
  }
}

function wordsOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}

// One is enough: a text is not looked at any more once it has been compared.
const compared = new LoadedText();

/** A text with which others are compared. */
export class TextModel {
  readonly #model = new LoadedText();
  /** Where the strings that may differ stand in the model, in their order: the start and the end of each by turns. */
  #strings: Int32Array = new Int32Array(0);
  /** From where on the text is shifted against the model, and how far, by turns. */
  readonly #shifts: number[] = [];
  /** Where the text begins in its buffer. */
  #start = 0;

  /** Takes a text that is not too long as the model; `strings` are the ranges of strings in it that others may have otherwise, in their order. */
  take(source: Buffer, range: Range, strings: readonly Range[]): void {
    this.#model.load(source, range);
    this.#strings = Int32Array.from(strings.flatMap(({ start, end }) => [start - range.start, end - range.start]));
  }

  /** Compares a text with the model; tells whether it differs in these strings only, of which each may have another length. */
  matches(source: Buffer, range: Range): boolean {
    if (range.end - range.start > LONGEST_BYTES) return false;
    compared.load(source, range);
    this.#start = range.start;
    this.#shifts.length = 0;
    const [model, text, strings] = [this.#model, compared, this.#strings];
    let shift = 0;
    let string = 0;
    let at = firstDifference(model, text, { at: 0, shift });
    while (at < model.length) {
      while (string < strings.length && strings[string + 1]! <= at) string += 2;
      // At the opening quote there is none, or something else.
      if (string >= strings.length || strings[string]! >= at) return false;
      const end = endOfRest(text.bytes, { start: strings[string]! + shift, at: at + shift });
      at = strings[string + 1]!;
      if (end - at !== shift) this.#shifts.push(at, (shift = end - at));
      at = firstDifference(model, text, { at, shift });
    }
    return model.length + shift === text.length;
  }

  /** Returns where in the text that was found to match stands what the model has at `index`, which is not inside of a string. */
  placeOf(index: number): number {
    let shift = 0;
    for (let next = 0; next < this.#shifts.length && this.#shifts[next]! <= index; next += 2)
      shift = this.#shifts[next + 1]!;
    return this.#start + index + shift;
  }
}

/** Returns the index in the model, from `at` on, of the first byte that a text which is shifted has otherwise, or the end of one of both. */
function firstDifference(
  { bytes: model, words: modelWords, length }: LoadedText,
  { bytes: text, words: textWords, length: textLength }: LoadedText,
  { at, shift }: { at: number; readonly shift: number },
): number {
  const common = Math.min(length, textLength - shift);
  const lastWord = common - WORD_BYTES;
  // As numbers, words are equal only if their bytes are: text has no zero bytes, which 0 and -0 consist of, and UTF-8 no NaN.
  while (at <= lastWord && modelWords.getFloat64(at, true) === textWords.getFloat64(at + shift, true)) at += WORD_BYTES;
  while (at < common && model[at] === text[at + shift]) at++;
  return at;
}

// What is known to be equal need not be looked at again, unless it ends in the middle of an escape.
function endOfRest(text: Buffer, { start, at }: { readonly start: number; readonly at: number }): number {
  return endOfString(text, text[at - 1] === BACKSLASH ? start : at - 1);
}
