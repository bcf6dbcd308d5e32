/**
 * Calls of webhooks.
 *
 * Connections are kept between the calls, as kube-apiserver does, and one is only used again for the same address, name and authority: a
 * configuration that changes gets connections of its own. Those that are not used any more are closed after a while.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
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

/** What is the same in every call of a webhook. */
interface PreparedCall {
  readonly url: URL;
  readonly options: RequestOptions;
}

/** Calls webhooks over connections that it keeps until it is closed. */
export class WebhookClient {
  readonly #registry: Registry;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, timeout: IDLE_TIMEOUT_MS });
  // By `clientConfig`, which nobody changes.
  readonly #prepared = new WeakMap<JsonObject, PreparedCall>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Posts a review to a webhook. Throws an Error in the words of Go's client when there is no answer within the timeout. */
  async post(target: WebhookTarget, review: JsonObject): Promise<WebhookReply> {
    const { url, options } = this.#prepare(target);
    try {
      const { host, port, serverName } = addressOf(this.#registry, target, url);
      // A name of an address is no server name.
      const servername = /^[\d.]+$|:/.test(serverName) ? undefined : serverName;
      return await new Call({ ...options, host, port, servername }, JSON.stringify(review)).reply(
        target.timeoutSeconds,
      );
    } catch (error) {
      throw new Error(`Post "${shownUrl(target, url)}": ${goTextOf(error as NodeJS.ErrnoException, url)}`);
    }
  }

  #prepare(target: WebhookTarget): PreparedCall {
    let prepared = this.#prepared.get(target.clientConfig);
    if (prepared === undefined) {
      const url = urlOf(target);
      prepared = { url, options: { ...optionsOf(target, url), agent: this.#agent } };
      this.#prepared.set(target.clientConfig, prepared);
    }
    return prepared;
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

function optionsOf({ clientConfig }: WebhookTarget, url: URL): RequestOptions {
  const bundle = stringAt(clientConfig, "caBundle") ?? "";
  return {
    path: `${url.pathname}${url.search}`,
    method: "POST",
    ...(bundle === "" ? {} : { ca: Buffer.from(bundle, "base64").toString() }),
    headers: { host: url.host, "content-type": "application/json", accept: "application/json, */*" },
  };
}

/** One call of a webhook. */
class Call {
  readonly #options: RequestOptions;
  readonly #body: string;
  #request: ClientRequest | undefined;
  // Answered, or given up.
  #isOver = false;

  constructor({ headers, ...options }: RequestOptions, body: string) {
    this.#options = { ...options, headers: { ...headers, "content-length": Buffer.byteLength(body) } };
    this.#body = body;
  }

  async reply(timeoutSeconds: number): Promise<WebhookReply> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = (_: unknown, reject: (error: Error) => void): void => {
      timer = setTimeout(() => reject(new Error("context deadline exceeded")), timeoutSeconds * 1000);
    };
    try {
      return await Promise.race([this.#answer().then(readAnswer), new Promise<never>(deadline)]);
    } catch (error) {
      this.#isOver = true;
      this.#request?.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #answer(): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = request(this.#options, (answer) => {
        this.#isOver = true;
        resolve(answer);
      });
      this.#request = call;
      call.on("error", (error: NodeJS.ErrnoException) => {
        // The webhook closed a kept connection while it was used again: it has not seen the review.
        const isStale = call.reusedSocket && error.code === "ECONNRESET";
        if (isStale && !this.#isOver) resolve(this.#answer());
        else reject(error);
      });
      call.end(this.#body);
    });
  }
}

function readAnswer(answer: IncomingMessage): Promise<WebhookReply> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    answer.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) return reject(new Error("http: response body too large"));
      chunks.push(chunk);
    });
    answer.on("end", () => {
      const contentType = answer.headers["content-type"] ?? "";
      resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString(), contentType });
    });
    answer.on("error", reject);
  });
}

// The words of Go's HTTP client, which users find in the answers of a real server.
function goTextOf(error: NodeJS.ErrnoException & { reason?: string }, url: URL): string {
  const address = `${url.hostname}:${url.port || DEFAULT_PORT}`;
  switch (error.code) {
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
