import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { isTrue } from "../decode/options.js";
import type { ClientCertificate } from "../identity/authenticator.js";
import type { StreamSink } from "../read/watch.js";

/** A request as the core sees it: no sockets, the whole body at hand. */
export interface ApiRequest {
  method: string;
  /** The path as it was sent, still percent-encoded. */
  path: string;
  /** What the path means, if it is one of a resource. */
  target: ResourcePath | undefined;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** What the client showed when it connected. */
  certificate?: ClientCertificate | undefined;
  body: Buffer;
  /** What admission adds to the entry of the request in the audit log; the first value of a key counts. */
  auditAnnotations: Map<string, string>;
}

/** A request of a client in the same process, which needs no socket; `path` has its query. */
export interface LocalRequest {
  method: string;
  path: string;
  headers: OutgoingHttpHeaders;
  body: string | undefined;
}

/** The answer to it. */
export interface LocalAnswer {
  status: number;
  text: string;
}

/** An answer that is complete. */
export interface Answer {
  kind: "answer";
  status: number;
  contentType: string;
  /** Bytes where it is no text. */
  body: string | Buffer;
  headers?: Record<string, string>;
  /** Texts for `Warning` headers. */
  warnings?: readonly string[];
  /** The connection breaks in the middle of the body. */
  isCut?: boolean;
}

/** An answer that goes on until the client leaves, its time is up or the server ends it. */
export interface StreamAnswer {
  kind: "stream";
  contentType: string;
  warnings: readonly string[];
  /** Starts to write; the returned function is called once when the connection is gone. */
  open(sink: StreamSink): () => void;
}

/** What a path below /api or /apis means. */
export interface ResourcePath {
  group: string;
  version: string;
  namespace?: string;
  plural: string;
  name?: string;
  subresource?: string;
  /** True below the old `/watch/` prefix, where a GET is a watch. */
  isWatchPath: boolean;
  /** The object that such a path ends with: the watch is of that alone. */
  watchedName?: string;
}

/** Parses a path such as `/apis/apps/v1/namespaces/default/deployments/web/scale`; undefined when it is of another form. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = path.split("/");
  if (segments.length > 3 && segments.at(-1) === "") segments.pop();
  // The path begins with a slash, so the first segment is empty.
  const first = segments[1] === "api" ? 2 : segments[1] === "apis" ? 3 : undefined;
  if (first === undefined || segments.indexOf("", 1) > 0) return undefined;
  const below = segments.slice(first + 1);
  const version = segments[first];
  if (version === undefined) return undefined;
  return parseBelow({ group: first === 3 ? (segments[2] as string) : "", version }, below);
}

function parseBelow(on: { group: string; version: string }, segments: string[]): ResourcePath | undefined {
  const { group, version } = on;
  const isWatchPath = segments[0] === "watch" && segments.length > 1;
  const [first, second, third, ...more] = isWatchPath ? segments.slice(1) : segments;
  if (first === undefined) return undefined;
  if (first === "namespaces" && second !== undefined && third !== undefined && !isOfNamespace(third, more)) {
    const path: ResourcePath = { group, version, namespace: decoded(second), plural: third, isWatchPath };
    return withObject(path, more);
  }
  const rest = third === undefined ? [] : [third, ...more];
  return withObject({ group, version, plural: first, isWatchPath }, second === undefined ? [] : [second, ...rest]);
}

// These belong to the namespace itself and are not resources inside it.
function isOfNamespace(segment: string, more: string[]): boolean {
  return more.length === 0 && (segment === "status" || segment === "finalize");
}

function withObject(path: ResourcePath, segments: string[]): ResourcePath {
  const [name, ...subresource] = segments;
  if (name !== undefined && path.isWatchPath && subresource.length === 0) path.watchedName = decoded(name);
  else if (name !== undefined) path.name = decoded(name);
  // What is behind a proxy has paths of its own.
  if (subresource.length > 0) path.subresource = hasProxy(path, subresource) ? "proxy" : subresource.join("/");
  return path;
}

function hasProxy({ group, plural }: ResourcePath, [first]: string[]): boolean {
  return first === "proxy" && group === "" && ["pods", "services", "nodes"].includes(plural);
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Returns the verb of a request in the words of Kubernetes, for authorization, records and fault rules. */
export function verbOf({ method, target, query }: ApiRequest): string {
  const isCollection = target !== undefined && target.name === undefined;
  if (method === "GET" && isCollection) return isWatch(query, target) ? "watch" : "list";
  if (method === "DELETE") return isCollection ? "deletecollection" : "delete";
  return { POST: "create", PUT: "update" }[method] ?? method.toLowerCase();
}

/** Says whether a GET of a collection is a watch. */
export function isWatch(query: URLSearchParams, path: ResourcePath): boolean {
  return path.isWatchPath || isTrue(query.get("watch"));
}
