import { endOfValue, findMember, skipSpace, type Range } from "../decode/json-scanner.js";

/** What the metadata of a page of a list say. */
export interface ListMetadata {
  readonly resourceVersion: string;
  /** What to ask for the next page with; absent on the last one. */
  readonly continue?: string;
}

const COMMA = 0x2c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACKET = 0x5b;

/**
 * Finds the items of a page without parsing it; each range may be changed before the next one is asked for.
 *
 * A whole page as a text, and then as a tree, would be many times what its largest object is.
 */
export function* itemsOf(page: Buffer): Generator<Range, void> {
  const items = findMember(page, skipSpace(page, 0), '"items"');
  // Go writes a list that has nothing as null.
  if (items === undefined || page[items.value] !== OPEN_BRACKET) return;
  let index = skipSpace(page, items.value + 1);
  while (index < page.length && page[index] !== CLOSE_BRACKET) {
    const end = endOfValue(page, index);
    const next = skipSpace(page, end);
    yield { start: index, end };
    index = page[next] === COMMA ? skipSpace(page, next + 1) : next;
  }
}

/** Reads the metadata of a page; it must not have been changed yet. */
export function metadataOf(page: Buffer): ListMetadata {
  const member = findMember(page, skipSpace(page, 0), '"metadata"');
  const text = member && page.toString("utf8", member.value, endOfValue(page, member.value));
  const metadata = text === undefined ? undefined : (JSON.parse(text) as ListMetadata);
  if (typeof metadata?.resourceVersion !== "string") throw new SyntaxError("a list states no version");
  const { resourceVersion, continue: next } = metadata;
  return next ? { resourceVersion, continue: next } : { resourceVersion };
}
