// Finds the head of an object that is made as the one before was, without scanning it: its members have the same names in the same order,
// and its managed fields the same managers. What its values say may differ.
import {
  endOfString,
  endOfValue,
  firstMember,
  isEndOfObject,
  nextMember,
  startsWith,
  valueOfMember,
  walkElements,
  type Range,
} from "./json-scanner.js";
import type { ObjectHead, OwnedRange } from "./object-head.js";
import { LONGEST_BYTES, TextModel } from "./text-model.js";

/** What is known of an object without parsing it. */
export interface ObjectOutline {
  readonly head: ObjectHead;
  /** The names of the members behind the metadata. */
  readonly names: readonly string[];
}

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
// To make a model takes as long as to scan an object; where no two are alike, it is hardly ever made.
const LONGEST_PAUSE = 64;

/** The outline of an object that was scanned, and of those that are made like it. */
export class HeadModel {
  readonly #text = new TextModel();
  #outline: ObjectOutline | undefined;
  #start = 0;
  /** For how many objects no model is made, and for how many none was. */
  #pause = 0;
  #passed = 0;

  /** Takes an object that was scanned as the model of those to come, unless models were in vain lately. */
  take(bytes: Buffer, range: Range, outline: ObjectOutline): void {
    if (range.end - range.start > LONGEST_BYTES || this.#passed++ < this.#pause) return;
    this.#pause = Math.min(2 * this.#pause + 1, LONGEST_PAUSE);
    this.#passed = 0;
    this.#text.take(bytes, range, variableStrings(bytes, range.start));
    this.#outline = outline;
    this.#start = range.start;
  }

  /** Returns the outline of an object; undefined if it is not made like the model. */
  outlineOf(bytes: Buffer, range: Range): ObjectOutline | undefined {
    if (this.#outline === undefined || !this.#text.matches(bytes, range)) return undefined;
    this.#pause = 0;
    const { head, names } = this.#outline;
    return { head: this.#moved(head), names };
  }

  #moved(head: ObjectHead): ObjectHead {
    return {
      start: this.#place(head.start),
      end: this.#place(head.end),
      nameStart: head.nameStart && this.#place(head.nameStart),
      namespaceStart: head.namespaceStart && this.#place(head.namespaceStart),
      versionStart: this.#place(head.versionStart),
      versionEnd: this.#place(head.versionEnd),
      cutStart: this.#place(head.cutStart),
      cutEnd: this.#place(head.cutEnd),
      owned: head.owned.map((range) => this.#movedOwned(range)),
    };
  }

  #movedOwned({ fieldManager, subresource, apiVersion, fieldsStart, fieldsEnd }: OwnedRange): OwnedRange {
    if (fieldsEnd === fieldsStart) return { fieldManager, subresource, apiVersion, fieldsStart, fieldsEnd };
    const [start, end] = [this.#place(fieldsStart), this.#place(fieldsEnd)];
    return { fieldManager, subresource, apiVersion, fieldsStart: start, fieldsEnd: end };
  }

  #place(index: number): number {
    return this.#text.placeOf(index - this.#start);
  }
}

/** Returns the strings of an object with metadata that have no part in its outline. */
function variableStrings(bytes: Buffer, start: number): readonly Range[] {
  const strings: Range[] = [];
  let isBehind = false;
  eachMember(bytes, start, (key, value, end) => {
    if (isBehind) addStrings(bytes, { start: value, end }, strings);
    else if (startsWith(bytes, key, '"metadata"')) {
      isBehind = true;
      addFromMetadata(bytes, value, strings);
    }
  });
  return strings;
}

function addFromMetadata(bytes: Buffer, start: number, strings: Range[]): void {
  eachMember(bytes, start, (key, value, end) => {
    if (startsWith(bytes, key, '"managedFields"') && bytes[value] === OPEN_BRACKET)
      walkElements(bytes, value, (entry) => addFromEntry(bytes, entry, strings));
    else addStrings(bytes, { start: value, end }, strings);
  });
}

// Everything else in an entry decides whether its fields are kept.
function addFromEntry(bytes: Buffer, start: number, strings: Range[]): number {
  if (bytes[start] !== OPEN_BRACE) return endOfValue(bytes, start);
  return eachMember(bytes, start, (key, value, end) => {
    if (startsWith(bytes, key, '"fieldsV1"') || startsWith(bytes, key, '"time"'))
      addStrings(bytes, { start: value, end }, strings);
  });
}

/** Visits the members of an object; returns the index behind it. */
function eachMember(bytes: Buffer, start: number, visit: (key: number, value: number, end: number) => void): number {
  let key = firstMember(bytes, start);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    const end = endOfValue(bytes, value);
    visit(key, value, end);
    key = nextMember(bytes, end);
  }
  return key + 1;
}

function addStrings(bytes: Buffer, { start, end }: Range, strings: Range[]): void {
  for (let index = start; index < end; index++) {
    if (bytes[index] !== QUOTE) continue;
    const behind = endOfString(bytes, index);
    strings.push({ start: index, end: behind });
    index = behind - 1;
  }
}
