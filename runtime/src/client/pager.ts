import { isApiError } from "../base/errors.js";
import { JSON_BYTES, type Range, endOfValue, findMember, skipSpace } from "./object-decoder.js";
import { type ApiRequest, type ApiRequester, failed } from "./transport.js";

/** Accept header that requests only the metadata of the objects in a list. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

const LIST_LIMIT = 500;
// Five million objects, more than fit into an etcd of 8 GiB.
const MAX_PAGES = 10_000;
const { COMMA, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES;

/** How to request and decode the pages of a list. */
interface PagedList<Page> extends Omit<ApiRequest, "method" | "path"> {
  pathOf(page: { readonly limit: number | undefined; readonly continue: string | undefined }): string;
  read(body: Buffer): Page;
  /** Called when the list restarts from the beginning. */
  onRestart(): void;
}

/**
 * Yields the pages of a list. If a continue token has expired (410), restarts the list once, without pages, like client-go's pager. Fails with a
 * ConnectionError if the list would never end, because a token repeats or there are too many pages.
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

/** Yields the ranges of the items of a page without parsing them. The bytes of a range may be modified before the next one is requested. */
export function* itemsOf(page: Buffer): Generator<Range, void> {
  const items = findMember(page, skipSpace(page, 0), '"items"');
  // Go serializes an empty list as null.
  if (items === undefined || page[items] !== OPEN_BRACKET) return;
  let index = skipSpace(page, items + 1);
  while (index < page.length && page[index] !== CLOSE_BRACKET) {
    const end = endOfValue(page, index);
    const next = skipSpace(page, end);
    yield { start: index, end };
    index = page[next] === COMMA ? skipSpace(page, next + 1) : next;
  }
}

/** Reads the metadata of a page. Call it before the bytes of the page are modified. */
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
