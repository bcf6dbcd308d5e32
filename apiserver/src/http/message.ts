import type { IncomingHttpHeaders } from "node:http";
import type { ResourcePath } from "./resource-path.js";

/** A request as the core sees it: no sockets, the whole body at hand. */
export interface ApiRequest {
  method: string;
  /** The path as it was sent, still percent-encoded. */
  path: string;
  /** What the path means, if it is one of a resource. */
  target: ResourcePath | undefined;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** An answer that is complete. */
export interface Answer {
  kind: "answer";
  status: number;
  contentType: string;
  body: string;
  headers?: Record<string, string>;
  /** Texts for `Warning` headers. */
  warnings?: readonly string[];
}

/** An answer that goes on until the client leaves, its time is up or the server ends it. */
export interface StreamAnswer {
  kind: "stream";
  contentType: string;
  warnings: readonly string[];
  /** Starts to write; the returned function is called once when the connection is gone. */
  open(sink: StreamSink): () => void;
}

/** Where a stream writes its lines. */
export interface StreamSink {
  /** Queues lines that are made only when the client is ready to take them, such as the initial state of a watch. */
  sendLazily(lines: Iterable<Buffer>): void;
  /** Queues one line; a client that is too far behind is disconnected. */
  send(line: Buffer): void;
  /** Ends the answer properly after everything that is queued. */
  end(): void;
}
