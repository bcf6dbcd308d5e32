import { once } from "node:events";
import { request } from "node:https";
import { rootCertificates } from "node:tls";
import { objectAt, stringAt, type JsonObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import { addressOfService, type WebhookAddress } from "./service-address.js";
import type { Webhook } from "./webhook.js";

const DEFAULT_PORT = 443;
const MAX_ANSWER_BYTES = 3 * 1024 * 1024;

/** What a webhook answered: the text, and the status of HTTP. */
export interface WebhookReply {
  status: number;
  body: string;
}

/** Posts a review to a webhook. Throws an Error in the words of Go's client when there is no answer within the timeout. */
export async function callWebhook(registry: Registry, webhook: Webhook, review: JsonObject): Promise<WebhookReply> {
  const url = urlOf(webhook);
  try {
    const address = addressOf(registry, webhook, url);
    return await post(url, { address, webhook, body: JSON.stringify(review) });
  } catch (error) {
    throw new Error(`Post "${shownUrl(webhook, url)}": ${goTextOf(error as NodeJS.ErrnoException, url)}`);
  }
}

function urlOf({ clientConfig, timeoutSeconds }: Webhook): URL {
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
function shownUrl({ clientConfig }: Webhook, url: URL): string {
  const service = objectAt(clientConfig, "service");
  if (service === undefined) return url.href;
  return `https://${url.host}:${String(service["port"] ?? DEFAULT_PORT)}${url.pathname}${url.search}`;
}

function addressOf(registry: Registry, { clientConfig }: Webhook, url: URL): WebhookAddress {
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

async function post(
  url: URL,
  { address, webhook, body }: { address: WebhookAddress; webhook: Webhook; body: string },
): Promise<WebhookReply> {
  const { host, port, serverName } = address;
  const bundle = stringAt(webhook.clientConfig, "caBundle") ?? "";
  const call = request({
    host,
    port,
    path: `${url.pathname}${url.search}`,
    method: "POST",
    // A name of an address is no server name.
    ...(/^[\d.]+$|:/.test(serverName) ? {} : { servername: serverName }),
    ca: bundle === "" ? [...rootCertificates] : Buffer.from(bundle, "base64").toString(),
    // No connection outlives its call, and the certificate is checked each time.
    agent: false,
    signal: AbortSignal.timeout(webhook.timeoutSeconds * 1000),
    headers: {
      host: url.host,
      "content-type": "application/json",
      accept: "application/json, */*",
      "content-length": Buffer.byteLength(body),
    },
  });
  call.end(body);
  const [answer] = (await once(call, "response")) as [import("node:http").IncomingMessage];
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error("http: response body too large");
    chunks.push(chunk);
  }
  return { status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString() };
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
