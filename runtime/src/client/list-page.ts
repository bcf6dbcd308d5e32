import { endOfValue, findMember, skipSpace, type Range } from "../decode/json-scanner.js";

const COMMA = 0x2c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACKET = 0x5b;

/** Finds the items of a page without parsing it; each range may be changed before the next one is asked for. */
export function* itemsOf(page: Buffer): Generator<Range, void> {
  const items = findMember(page, skipSpace(page, 0), '"items"');
  // Go writes a list that has nothing as null.
  if (items === undefined || page[items] !== OPEN_BRACKET) return;
  let index = skipSpace(page, items + 1);
  while (index < page.length && page[index] !== CLOSE_BRACKET) {
    const end = endOfValue(page, index);
    const next = skipSpace(page, end);
    yield { start: index, end };
    index = page[next] === COMMA ? skipSpace(page, next + 1) : next;
  }
}

/** Reads the metadata of a page; it must not have been changed yet. */
export function metadataOf(page: Buffer): { readonly resourceVersion: string; readonly continue?: string } {
  const member = findMember(page, skipSpace(page, 0), '"metadata"');
  const text = member === undefined ? "{}" : page.toString("utf8", member, endOfValue(page, member));
  const { resourceVersion, continue: next } = (JSON.parse(text) ?? {}) as {
    resourceVersion?: unknown;
    continue?: string;
  };
  if (typeof resourceVersion !== "string") throw new SyntaxError("a list states no version");
  return next ? { resourceVersion, continue: next } : { resourceVersion };
}
