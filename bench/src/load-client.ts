import * as http from "node:http";
import * as https from "node:https";

/** The connection to an API server. */
export interface Connection {
  url: string;
  token: string;
  ca?: string;
}

/** A request of a load test. The body is sent unchanged. */
export interface LoadRequest {
  method: string;
  path: string;
  body?: string;
  contentType?: string;
}

/** Sends requests over keep-alive connections. */
export interface LoadClient {
  /** Returns the body of the response; rejects for error responses. */
  send(request: LoadRequest): Promise<string>;
  /** Calls `onLine` with each line of a watch until the returned function is called, and `onEnd` if the server ends the watch. */
  watch(path: string, onLine: (line: string) => void, onEnd?: () => void): Promise<() => void>;
  close(): void;
}

/** Creates a client with a number of connections for requests. Each watch has its own connection. */
export function createLoadClient(
  { url, token, ca }: Connection,
  connections: number,
  headers: Record<string, string> = {},
): LoadClient {
  let isClosed = false;
  const isTls = url.startsWith("https:");
  const options = { keepAlive: true, maxSockets: connections, ...(ca === undefined ? {} : { ca }) };
  const agent = isTls ? new https.Agent(options) : new http.Agent(options);
  const watchAgent = isTls ? new https.Agent(ca === undefined ? {} : { ca }) : new http.Agent();
  const open = ({ method, path, body, contentType = "application/json" }: LoadRequest, via: http.Agent) =>
    new Promise<http.IncomingMessage>((done, fail) => {
      const sent = {
        ...headers,
        authorization: `Bearer ${token}`,
        "user-agent": "bench-driver",
        ...(body === undefined ? {} : { "content-type": contentType, "content-length": Buffer.byteLength(body) }),
      };
      const request = (isTls ? https : http).request(url + path, { method, agent: via, headers: sent });
      request.on("error", fail);
      request.once("response", done);
      request.end(body);
    });
  return {
    async send(request) {
      const response = await open(request, agent);
      const text = await readText(response);
      if ((response.statusCode ?? 500) >= 300)
        throw new Error(`${request.method} ${request.path}: ${response.statusCode} ${text.slice(0, 300)}`);
      return text;
    },
    async watch(path, onLine, onEnd) {
      const response = await open({ method: "GET", path }, watchAgent);
      if (response.statusCode !== 200) throw new Error(`watch ${path}: ${response.statusCode}`);
      let pending = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        const lines = (pending + chunk).split("\n");
        pending = lines.pop() ?? "";
        lines.forEach(onLine);
      });
      response.on("error", () => {});
      let isEnded = false;
      response.on("close", () => !isEnded && !isClosed && onEnd?.());
      return () => {
        isEnded = true;
        response.destroy();
      };
    },
    close() {
      isClosed = true;
      agent.destroy();
      watchAgent.destroy();
    },
  };
}

/** Calls `work` with 0 to `count` - 1, up to `concurrency` calls at a time. */
export async function inParallel(
  count: number,
  concurrency: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker));
}

// An async iterator would cost as much as everything else here.
function readText(response: http.IncomingMessage): Promise<string> {
  return new Promise((done, fail) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () => done(Buffer.concat(chunks).toString()));
    response.on("error", fail);
  });
}
