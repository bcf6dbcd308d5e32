/**
 * Calls of webhooks.
 *
 * Connections are kept between the calls, as kube-apiserver does, and one is only used again for the same address, name and authority: a
 * configuration that changes gets connections of its own. Those that are not used any more are closed after a while.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request, type RequestOptions } from "node:https";
import { objectAt, stringAt, type JsonObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import { addressOfService, type WebhookAddress } from "./service-address.js";

const DEFAULT_PORT = 443;
const MAX_ANSWER_BYTES = 3 * 1024 * 1024;
// Those of Go's client.
const IDLE_TIMEOUT_MS = 90_000;
const MAX_IDLE_CONNECTIONS = 25;

/** How a webhook is reached. */
export interface WebhookTarget {
  /** `url` or `service`, and `caBundle`. */
  clientConfig: JsonObject;
  timeoutSeconds: number;
}

/** What a webhook answered: the text, and the status of HTTP. */
export interface WebhookReply {
  status: number;
  body: string;
  /** "" if it is not said. */
  contentType: string;
}

/** Calls webhooks over connections that it keeps until it is closed. */
export class WebhookClient {
  readonly #registry: Registry;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, timeout: IDLE_TIMEOUT_MS });

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Posts a review to a webhook. Throws an Error in the words of Go's client when there is no answer within the timeout. */
  async post(target: WebhookTarget, review: JsonObject): Promise<WebhookReply> {
    const url = urlOf(target);
    try {
      const address = addressOf(this.#registry, target, url);
      const options = { ...requestOf(target, { url, address }), agent: this.#agent };
      return await send(options, JSON.stringify(review));
    } catch (error) {
      throw new Error(`Post "${shownUrl(target, url)}": ${goTextOf(error as NodeJS.ErrnoException, url)}`);
    }
  }

  /** Closes every connection. */
  close(): void {
    this.#agent.destroy();
  }
}

function urlOf({ clientConfig, timeoutSeconds }: WebhookTarget): URL {
  const service = objectAt(clientConfig, "service");
  const url = new URL(
    service === undefined
      ? (stringAt(clientConfig, "url") ?? "")
      : `https://${stringAt(service, "name")}.${stringAt(service, "namespace")}.svc${stringAt(service, "path") ?? "/"}`,
  );
  url.searchParams.set("timeout", `${timeoutSeconds}s`);
  return url;
}

// The port of a service is always shown, that of an address only if it is given.
function shownUrl({ clientConfig }: WebhookTarget, url: URL): string {
  const service = objectAt(clientConfig, "service");
  if (service === undefined) return url.href;
  return `https://${url.host}:${String(service["port"] ?? DEFAULT_PORT)}${url.pathname}${url.search}`;
}

function addressOf(registry: Registry, { clientConfig }: WebhookTarget, url: URL): WebhookAddress {
  const service = objectAt(clientConfig, "service");
  if (service === undefined) {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    return { host, port: Number(url.port || DEFAULT_PORT), serverName: host };
  }
  const port = service["port"];
  return addressOfService(registry, {
    name: stringAt(service, "name") ?? "",
    namespace: stringAt(service, "namespace") ?? "",
    port: typeof port === "number" ? port : DEFAULT_PORT,
  });
}

function requestOf(
  { clientConfig, timeoutSeconds }: WebhookTarget,
  { url, address }: { url: URL; address: WebhookAddress },
): RequestOptions {
  const { host, port, serverName } = address;
  const bundle = stringAt(clientConfig, "caBundle") ?? "";
  return {
    host,
    port,
    path: `${url.pathname}${url.search}`,
    method: "POST",
    // A name of an address is no server name.
    ...(/^[\d.]+$|:/.test(serverName) ? {} : { servername: serverName }),
    ...(bundle === "" ? {} : { ca: Buffer.from(bundle, "base64").toString() }),
    signal: AbortSignal.timeout(timeoutSeconds * 1000),
    headers: { host: url.host, "content-type": "application/json", accept: "application/json, */*" },
  };
}

async function send(options: RequestOptions, body: string): Promise<WebhookReply> {
  const call = request({ ...options, headers: { ...options.headers, "content-length": Buffer.byteLength(body) } });
  call.end(body);
  let answer: IncomingMessage;
  try {
    [answer] = (await once(call, "response")) as [IncomingMessage];
  } catch (error) {
    // The webhook closed a kept connection while it was used again: it has not seen the review.
    const isStale = call.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET";
    if (isStale) return send(options, body);
    throw error;
  }
  // What breaks from now on is told by the answer.
  call.on("error", () => undefined);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error("http: response body too large");
    chunks.push(chunk);
  }
  const contentType = answer.headers["content-type"] ?? "";
  return { status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString(), contentType };
}

// The words of Go's HTTP client, which users find in the answers of a real server.
function goTextOf(error: NodeJS.ErrnoException & { reason?: string }, url: URL): string {
  const address = `${url.hostname}:${url.port || DEFAULT_PORT}`;
  switch (error.code) {
    case "ABORT_ERR":
      return "context deadline exceeded";
    case "ECONNREFUSED":
      return `dial tcp ${address}: connect: connection refused`;
    case "ENOTFOUND":
      return `dial tcp: lookup ${url.hostname}: no such host`;
    case "ECONNRESET":
      return "EOF";
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
      return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    case "CERT_HAS_EXPIRED":
      return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `tls: failed to verify certificate: x509: ${error.reason ?? error.message}`;
    default:
      return error.message;
  }
}
