import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { ClientCertificate } from "../identity/client-certificate.js";
import type { StreamSink } from "../read/stream-sink.js";
import type { ResourcePath } from "./requests/resource-path.js";

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
