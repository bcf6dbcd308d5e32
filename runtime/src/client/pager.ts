import { isApiError } from "../base/errors.js";
import { JSON_BYTES, type Range, endOfValue, findMember, skipSpace } from "./object-decoder.js";
import { type ApiRequest, type ApiRequester, failed } from "./transport.js";

/** Asks for the metadata of the objects of a list alone. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

const LIST_LIMIT = 500;
// Five million objects, more than an etcd of 8 GiB holds.
const MAX_PAGES = 10_000;
const { COMMA, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES;

/** How the pages of a list are asked for, and read. */
interface PagedList<Page> extends Omit<ApiRequest, "method" | "path"> {
  pathOf(page: { readonly limit: number | undefined; readonly continue: string | undefined }): string;
  read(body: Buffer): Page;
  /** Called when the list begins again. */
  onRestart(): void;
}

/**
 * Yields the pages of a list. If the token of a page expired (410), the list begins again, once and as a whole, as in client-go's pager. A list
 * that would never end, because a token comes again or there are too many, fails with a ConnectionError.
 */
export async function* pagesOf<Page extends { readonly metadata?: { readonly continue?: string } }>(
  requester: ApiRequester,
  list: PagedList<Page>,
  isWhole = false,
): AsyncGenerator<Page, void> {
  const { pathOf, read, onRestart, ...request } = list;
  let next: string | undefined;
  const tokens = new Set<string>();
  for (;;) {
    try {
      const path = pathOf({ limit: isWhole ? undefined : LIST_LIMIT, continue: next });
      const page = read((await requester.send({ ...request, method: "GET", path })).body);
      if (!page.metadata)
        throw failed(request.what, requester.transport.foreignAnswer({ method: "GET", path }, "with no list"));
      yield page;
      next = page.metadata.continue || undefined;
      if (next === undefined) return;
      const problem = tokens.has(next)
        ? `with a continue token that an earlier page had, after ${tokens.size} pages: the list would never end`
        : `with a continue token after ${MAX_PAGES} pages, the limit of the client for one list`;
      if (tokens.has(next) || tokens.size + 1 >= MAX_PAGES)
        throw failed(request.what, requester.transport.refusedAnswer({ method: "GET", path }, problem));
      tokens.add(next);
    } catch (error) {
      if (next === undefined || isWhole || !isApiError(error, 410)) throw error;
      onRestart();
      return yield* pagesOf(requester, list, true);
    }
  }
}

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
