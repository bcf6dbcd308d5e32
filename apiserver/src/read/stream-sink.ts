/** Where a stream writes its lines. */
export interface StreamSink {
  /** Queues lines that are made only when the client is ready to take them, such as the initial state of a watch. */
  sendLazily(lines: Iterable<Buffer>): void;
  /** Queues one line; a client that is too far behind is disconnected. */
  send(line: Buffer): void;
  /** Ends the answer properly after everything that is queued. */
  end(): void;
}
