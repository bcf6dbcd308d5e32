import { createServingCertificate } from "#apiserver/x509/authority.js";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

/** The fields that tests read from the request of an AdmissionReview or ConversionReview. */
export interface ReviewRequest {
  uid: string;
  operation: string;
  name?: string;
  namespace?: string;
  subResource?: string;
  dryRun?: boolean;
  object: Record<string, unknown> | null;
  oldObject: Record<string, unknown> | null;
  [member: string]: unknown;
}

/** The response of a webhook: that of the review without its uid, or the whole HTTP response. */
export type WebhookAnswer = { response: object } | { status?: number; body: string };

/** A webhook server that records its requests. */
export interface WebhookServer extends AsyncDisposable {
  readonly url: string;
  /** The CA certificate in base64-encoded PEM, for caBundle. */
  readonly caBundle: string;
  readonly requests: { path: string; apiVersion: string; request: ReviewRequest }[];
  /** Returns the number of connections that were opened. */
  readonly connections: () => number;
  /** Returns the number of open connections. */
  readonly openConnections: () => number;
}

function readText(message: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("end", () => resolve(Buffer.concat(chunks).toString()));
    message.on("error", reject);
  });
}

/**
 * Starts a webhook server that responds to each review with the result of `answer`. With `keepsRequests: false`, as under load, requests are not
 * recorded.
 */
export async function startWebhookServer(
  answer: (path: string, request: ReviewRequest) => WebhookAnswer | Promise<WebhookAnswer>,
  { keepsRequests = true }: { keepsRequests?: boolean } = {},
): Promise<WebhookServer> {
  const { ca, certificate, key } = createServingCertificate();
  const requests: WebhookServer["requests"] = [];
  const server = createServer({ cert: certificate, key }, (message, response) => {
    const respond = async (): Promise<void> => {
      const text = await readText(message);
      const { apiVersion, kind, request } = JSON.parse(text) as {
        apiVersion: string;
        kind: string;
        request: ReviewRequest;
      };
      const path = message.url ?? "";
      if (keepsRequests) requests.push({ path, apiVersion, request });
      const given = await answer(path.replace(/\?.*/, ""), request);
      if ("body" in given) return void response.writeHead(given.status ?? 200).end(given.body);
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ apiVersion, kind, response: { uid: request.uid, ...given.response } }));
    };
    respond().catch(() => response.destroy());
  });
  let [connections, open] = [0, 0];
  server.on("secureConnection", (socket) => {
    connections++;
    open++;
    socket.on("close", () => open--);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caBundle: Buffer.from(ca).toString("base64"),
    requests,
    connections: () => connections,
    openConnections: () => open,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
