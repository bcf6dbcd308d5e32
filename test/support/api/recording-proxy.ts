// A proxy between a client and an API server that records requests, and can delay, drop, or answer them.
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import type { Connection } from "./api-request.js";

/** A request to the proxy. Times are those of `performance.now()` in this process. */
export interface ProxiedRequest {
  readonly at: number;
  readonly method: string;
  /** The path and query. */
  readonly path: string;
  readonly body: string;
  /** Undefined until the client receives a response from the server or from the proxy. */
  status?: number;
  answeredAt?: number;
}

/** How the proxy handles a request. */
export type Treatment =
  | "pass"
  /** Closes the connection without forwarding the request. */
  | "drop"
  /** Forwards the request, and delays the response. */
  | { readonly holdAnswerMs: number }
  /** Responds with a Status without forwarding the request. */
  | { readonly status: number; readonly retryAfterSeconds?: number };

/** A running proxy. */
export interface RecordingProxy extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly ProxiedRequest[];
  /** Sets how requests are handled from now on. Default: "pass" */
  treat(treatment: (request: ProxiedRequest) => Treatment): void;
  /** Closes all connections, including those of watches. */
  cut(): void;
}

/** Starts a proxy for an API server, with plain HTTP on the loopback address. */
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
          // Without this, a watch without events would not send its headers.
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
