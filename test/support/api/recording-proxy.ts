// A proxy between one client and an API server: it writes down what passes, and does to it what a test says.
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import type { Connection } from "./api-request.js";

/** A request that came to the proxy; times are of `performance.now()` of this process. */
export interface ProxiedRequest {
  readonly at: number;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body: string;
  /** Absent until the client gets an answer, of the server or of the proxy in its place. */
  status?: number;
  answeredAt?: number;
}

/** What becomes of a request. */
export type Treatment =
  | "pass"
  /** The connection breaks, and the server gets nothing. */
  | "drop"
  /** The server gets it, and its answer waits. */
  | { readonly holdAnswerMs: number }
  /** The proxy answers with a Status. */
  | { readonly status: number; readonly retryAfterSeconds?: number };

/** A proxy that runs until it is closed. */
export interface RecordingProxy extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly ProxiedRequest[];
  /** Says what becomes of each request from now on. Default: it passes. */
  treat(treatment: (request: ProxiedRequest) => Treatment): void;
  /** Breaks all connections, and so the watches. */
  cut(): void;
}

/** Starts a proxy, over plain HTTP on loopback, for an API server. */
export async function startRecordingProxy(target: Connection): Promise<RecordingProxy> {
  const requests: ProxiedRequest[] = [];
  let treatmentOf: (request: ProxiedRequest) => Treatment = () => "pass";
  const upstream = new URL(target.url);
  const send = upstream.protocol === "https:" ? httpsRequest : httpRequest;

  const forward = (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    record: ProxiedRequest,
    holdAnswerMs: number,
  ) => {
    const { method, url: path, headers } = incoming;
    const request = send(
      { host: upstream.hostname, port: upstream.port, method, path, headers, agent: false, ca: target.ca },
      (response) => {
        const answer = () => {
          record.status = response.statusCode ?? 0;
          record.answeredAt = performance.now();
          outgoing.writeHead(response.statusCode ?? 0, response.headers);
          // A quiet watch has no body yet.
          outgoing.flushHeaders();
          response.pipe(outgoing);
        };
        if (holdAnswerMs === 0) answer();
        else setTimeout(answer, holdAnswerMs).unref();
      },
    );
    request.on("error", () => outgoing.destroy());
    outgoing.on("close", () => request.destroy());
    request.end(record.body);
  };
  const server = createServer((incoming, outgoing) => {
    const at = performance.now();
    const parts: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => parts.push(chunk));
    incoming.on("error", () => {});
    incoming.once("end", () => {
      const record: ProxiedRequest = {
        ...{ at, method: incoming.method ?? "", path: incoming.url ?? "" },
        body: Buffer.concat(parts).toString("utf8"),
      };
      requests.push(record);
      const treatment = treatmentOf(record);
      if (treatment === "drop") return outgoing.destroy();
      if (treatment === "pass") return forward(incoming, outgoing, record, 0);
      if ("holdAnswerMs" in treatment) return forward(incoming, outgoing, record, treatment.holdAnswerMs);
      const { status, retryAfterSeconds } = treatment;
      record.status = status;
      record.answeredAt = performance.now();
      const retryAfter = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
      outgoing.writeHead(status, { "content-type": "application/json", ...retryAfter });
      outgoing.end(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: status }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    treat: (treatment) => void (treatmentOf = treatment),
    cut: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
