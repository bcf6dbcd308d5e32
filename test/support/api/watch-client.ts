import * as http from "node:http";
import * as https from "node:https";
import type { ApiObject, Connection } from "./api-request.js";

/** A watch event. */
export interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: ApiObject & { code?: number; message?: string; reason?: string };
}

/** A watch whose events are read one by one. */
export interface WatchClient extends Disposable {
  status: number;
  /** Waits for the next event. Resolves to undefined at the end of the stream; rejects if the connection was closed prematurely. */
  next(): Promise<WatchEvent | undefined>;
}

/** Starts a watch and waits for the response headers. */
export function openWatch(
  connection: Connection,
  path: string,
  headers: Record<string, string> = {},
): Promise<WatchClient> {
  const send = connection.url.startsWith("https:") ? https.request : http.request;
  const options = {
    agent: false,
    headers: { authorization: `Bearer ${connection.token}`, ...headers },
    ...(connection.ca === undefined ? {} : { ca: connection.ca }),
  };
  return new Promise((resolve, reject) => {
    const request = send(connection.url + path, options);
    request.once("error", reject);
    request.once("response", (response) => {
      request.on("error", () => undefined);
      const lines = linesOf(response)[Symbol.asyncIterator]();
      resolve({
        status: response.statusCode ?? 0,
        async next() {
          const line = await lines.next();
          return line.done === true ? undefined : (JSON.parse(line.value) as WatchEvent);
        },
        [Symbol.dispose]: () => void request.destroy(),
      });
    });
    request.end();
  });
}

/** Reads events until the predicate is true, and returns them all. */
export async function eventsUntil(watch: WatchClient, isLast: (event: WatchEvent) => boolean): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
    events.push(event);
    if (isLast(event)) return events;
  }
  return events;
}

async function* linesOf(response: http.IncomingMessage): AsyncGenerator<string> {
  let rest = "";
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const parts = (rest + chunk.toString()).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } catch (error) {
    if (rest === "") throw error;
    throw new Error(`${(error as Error).message} in the middle of a line: ${rest}`, { cause: error });
  }
  if (rest !== "") throw new Error(`the stream ended in the middle of a line: ${rest}`);
}
