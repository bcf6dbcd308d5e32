import { type ListOptions, checkResourceVersion } from "../decode/options.js";
import { jsonSyntaxError } from "../errors/decode-errors.js";
import { goTypeOf } from "../errors/go-format.js";
import { badRequest, expired, statusError, tooLargeResourceVersion } from "../errors/status-error.js";
import { type JsonObject, type JsonValue, isObject } from "../json.js";
import type { ServedResource } from "../registry/registry.js";
import type { StoredObject } from "../storage/store.js";
import { type Selection, parseSelection } from "./selectors.js";

/** One page of a list. */
export interface ListResult {
  revision: number;
  items: StoredObject[];
  continueToken: string;
  remainingItemCount: number | undefined;
}

const TOO_OLD_TOKEN =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue " +
  "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided " +
  "token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was " +
  "returned and now may show up in the list.";

/**
 * Prepares a list of the current objects, or of those at the revision that the options name.
 *
 * Invalid options throw immediately. The returned function reads the objects and may throw a PendingConversion.
 */
export function prepareList(
  resource: ServedResource,
  options: ListOptions & { namespace: string | undefined },
): () => ListResult {
  const selection = parseSelection(resource, options);
  const token = options.continueToken === "" ? undefined : readContinueToken(options.continueToken);
  if (token !== undefined && options.resourceVersion !== "" && options.resourceVersion !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  checkResourceVersion(options);
  return () => readPage(resource, { options, selection, token });
}

function readPage(
  resource: ServedResource,
  page: { options: ListOptions; selection: Selection; token: ContinueToken | undefined },
): ListResult {
  const { options, selection, token } = page;
  const revision = revisionOf(resource, options, token);
  const all = objectsAt(resource, { revision, selection, token });
  const rest = token === undefined ? all : all.slice(firstFrom(all, selection.prefix + token.startKey));
  if (selection.isFiltered) resource.require(rest);
  const matching = selection.isFiltered
    ? rest.filter((stored) => selection.matches(resource.read(stored).object))
    : rest;
  // kube-apiserver answers resourceVersion=0 from its watch cache, which ignores the limit.
  const limit = options.resourceVersion === "0" && token === undefined ? 0 : options.limit;
  const result = pageOf(matching, { limit, revision, selection, last: rest.at(-1) });
  resource.require(result.items);
  return result;
}

function revisionOf(resource: ServedResource, options: ListOptions, token: ContinueToken | undefined): number {
  const current = resource.store.revision;
  if (token !== undefined) return token.revision < 0 ? current : token.revision;
  const requested = Number(options.resourceVersion || "0");
  if (requested > current) throw tooLargeResourceVersion(String(requested), String(current));
  const { resourceVersionMatch: match, limit } = options;
  // With a limit and a resourceVersion, the default of resourceVersionMatch is Exact.
  return match === "Exact" || (match === "" && limit > 0 && requested > 0) ? requested : current;
}

function objectsAt(
  resource: ServedResource,
  at: { revision: number; selection: Selection; token: ContinueToken | undefined },
): StoredObject[] {
  const { revision, selection, token } = at;
  if (revision === resource.store.revision) return presentObjects(resource, selection);
  const objects = resource.store.listAt(revision, selection.prefix);
  if (objects !== undefined) return objects;
  if (token === undefined) throw expired(`The resourceVersion for the provided list is too old.`);
  const fresh = writeContinueToken({ revision: -1, lastKey: token.startKey.replace(/\0$/, "") });
  const failure = statusError({ code: 410, reason: "Expired", message: TOO_OLD_TOKEN });
  failure.status.metadata = { continue: fresh };
  throw failure;
}

/** Returns the candidates in key order; labels and fields are not evaluated. */
export function presentObjects(resource: ServedResource, selection: Selection): StoredObject[] {
  if (selection.key === undefined) return resource.store.list(selection.prefix);
  const only = resource.store.get(selection.key);
  return only === undefined ? [] : [only];
}

interface Page {
  limit: number;
  revision: number;
  selection: Selection;
  /** The last candidate in key order, whether it matches the selectors or not. */
  last: StoredObject | undefined;
}

// A full page gets a continue token even if no later object matches, as in kube-apiserver, which does not look ahead.
function pageOf(matching: StoredObject[], { limit, revision, selection, last }: Page): ListResult {
  const items = limit > 0 ? matching.slice(0, limit) : matching;
  if (limit <= 0 || matching.length < limit || items.at(-1) === last)
    return { revision, items, continueToken: "", remainingItemCount: undefined };
  const lastKey = (items.at(-1) as StoredObject).key.slice(selection.prefix.length);
  return {
    revision,
    items,
    continueToken: writeContinueToken({ revision, lastKey }),
    // With selectors, the count would require a scan of the remaining objects; kube-apiserver omits it, too.
    remainingItemCount: selection.isFiltered ? undefined : matching.length - limit,
  };
}

function firstFrom(objects: StoredObject[], key: string): number {
  const index = objects.findIndex((object) => object.key >= key);
  return index < 0 ? objects.length : index;
}

/** The start of the next page of a list, and the revision of the list. */
interface ContinueToken {
  /** A negative revision stands for the current one. */
  revision: number;
  /** The first key of the next page, relative to the prefix of the list. */
  startKey: string;
}

const VERSION = "meta.k8s.io/v1";
const MEMBERS = {
  v: { json: "string", go: "string" },
  rv: { json: "number", go: "int64" },
  start: { json: "string", go: "string" },
};

/** Encodes a continue token for the page after `lastKey`, a key relative to the prefix of the list. */
export function writeContinueToken(token: { revision: number; lastKey: string }): string {
  const content = { v: VERSION, rv: token.revision, start: `/${token.lastKey}\u0000` };
  return Buffer.from(JSON.stringify(content)).toString("base64url");
}

/** Decodes and validates a continue token; throws a StatusError if it is invalid. */
export function readContinueToken(text: string): ContinueToken {
  const content = parseToken(text);
  if (content["v"] !== VERSION) {
    throw invalidToken(`server does not recognize this encoded version ${String(content["v"] ?? "")}`);
  }
  const { rv, start } = content;
  if (typeof rv !== "number" || rv === 0)
    throw invalidToken(`incorrect encoded start resourceVersion (version ${VERSION})`);
  if (typeof start !== "string" || start === "") throw invalidToken(`encoded start key empty (version ${VERSION})`);
  return { revision: rv, startKey: start.replace(/^\//, "") };
}

function parseToken(text: string): JsonObject {
  const offset = text.search(/[^A-Za-z0-9_-]/);
  // A remainder of one base64 character does not encode a byte.
  const isCut = text.length % 4 === 1;
  if (offset >= 0 || isCut)
    throw invalidToken(`illegal base64 data at input byte ${offset >= 0 ? offset : text.length - 1}`);
  const decoded = Buffer.from(text, "base64url");
  const unreadable = jsonSyntaxError(decoded);
  if (unreadable !== "") throw invalidToken(unreadable);
  // Go decodes null into the zero value.
  const content = (JSON.parse(decoded.toString()) as JsonValue) ?? {};
  if (!isObject(content))
    throw invalidToken(`json: cannot unmarshal ${goTypeOf(content)} into Go value of type storage.continueToken`);
  for (const [member, type] of Object.entries(MEMBERS)) {
    const value = content[member] ?? null;
    if (value === null || typeof value === type.json) continue;
    const misfit = `cannot unmarshal ${goTypeOf(value)} into Go struct field continueToken.${member} of type ${type.go}`;
    throw invalidToken(`json: ${misfit}`);
  }
  return content;
}

function invalidToken(detail: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${detail}`);
}
