import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { isTrue } from "../decode/options.js";
import type { ClientCertificate } from "../identity/authenticator.js";
import type { StreamSink } from "../read/watch.js";

/** A request with its complete body, independent of sockets. */
export interface ApiRequest {
  method: string;
  /** The path as received, still percent-encoded. */
  path: string;
  /** The parsed path; undefined if it is not that of a resource. */
  target: ResourcePath | undefined;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** The client certificate. */
  certificate?: ClientCertificate | undefined;
  body: Buffer;
  /** Annotations that admission adds to the audit event. The first value of a key is kept. */
  auditAnnotations: Map<string, string>;
}

/** A request from a client in the same process, which needs no socket. `path` includes the query. */
export interface LocalRequest {
  method: string;
  path: string;
  headers: OutgoingHttpHeaders;
  body: string | undefined;
}

/** The response to a LocalRequest. */
export interface LocalAnswer {
  status: number;
  text: string;
}

/** A complete response. */
export interface Answer {
  kind: "answer";
  status: number;
  contentType: string;
  /** A Buffer if the content is binary. */
  body: string | Buffer;
  headers?: Record<string, string>;
  /** Texts of the `Warning` headers. */
  warnings?: readonly string[];
  /** Whether a fault breaks the connection in the middle of the body. */
  isCut?: boolean;
}

/** A streaming response. It ends when the client disconnects, its timeout expires, or the server ends it. */
export interface StreamAnswer {
  kind: "stream";
  contentType: string;
  warnings: readonly string[];
  /** Starts the stream. The returned function is called once, when the connection is closed. */
  open(sink: StreamSink): () => void;
}

/** A parsed path below /api or /apis. */
export interface ResourcePath {
  group: string;
  version: string;
  namespace?: string;
  plural: string;
  name?: string;
  subresource?: string;
  /** Whether the path has the deprecated `/watch/` prefix, which makes a GET a watch. */
  isWatchPath: boolean;
  /** The name of the object that such a path watches. */
  watchedName?: string;
}

/** Parses a path such as `/apis/apps/v1/namespaces/default/deployments/web/scale`; undefined if it is not that of a resource. */
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

// Subresources of the namespace itself, not resources in it.
function isOfNamespace(segment: string, more: string[]): boolean {
  return more.length === 0 && (segment === "status" || segment === "finalize");
}

function withObject(path: ResourcePath, segments: string[]): ResourcePath {
  const [name, ...subresource] = segments;
  if (name !== undefined && path.isWatchPath && subresource.length === 0) path.watchedName = decoded(name);
  else if (name !== undefined) path.name = decoded(name);
  // The path behind a proxy belongs to the proxied server.
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

/** Returns the Kubernetes verb of a request, for authorization, audit, metrics, and fault rules. */
export function verbOf({ method, target, query }: ApiRequest): string {
  const isCollection = target !== undefined && target.name === undefined;
  if (method === "GET" && isCollection) return isWatch(query, target) ? "watch" : "list";
  if (method === "DELETE") return isCollection ? "deletecollection" : "delete";
  return { POST: "create", PUT: "update" }[method] ?? method.toLowerCase();
}

/** Reports whether a GET of a collection is a watch. */
export function isWatch(query: URLSearchParams, path: ResourcePath): boolean {
  return path.isWatchPath || isTrue(query.get("watch"));
}
