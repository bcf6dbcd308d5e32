/**
 * Client for webhooks.
 *
 * Connections are kept alive, as in kube-apiserver, and reused only for the same address, server name, and CA, so a changed configuration gets new
 * connections. Idle connections are closed.
 */
import { createRequire } from "node:module";
import { isIP } from "node:net";
import type { Pool } from "undici";
import { clearTimeout, setTimeout } from "../clock.js";
import { NumberRangeError, parseYaml } from "../decode/body.js";
import { BodySyntaxError, unregisteredKind } from "../errors/decode-errors.js";
import { quote } from "../errors/go-format.js";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { keyOf } from "../object/object-meta.js";
import type { Registry } from "../registry/registry.js";

const DEFAULT_PORT = 443;
const MAX_ANSWER_BYTES = 3 * 1024 * 1024;
// Default of Go's HTTP client.
const IDLE_TIMEOUT_MS = 90_000;
// Maximum timeoutSeconds of a webhook.
const MAX_TIMEOUT_MS = 30_000;
// Maximum number of connection pools; the least recently used is closed.
const MAX_POOLS = 100;

/** clientConfig and timeout of a webhook. */
interface WebhookTarget {
  /** `url` or `service`, and `caBundle`. */
  clientConfig: JsonObject;
  timeoutSeconds: number;
}

/** Response of a webhook: HTTP status and body. */
export interface WebhookReply {
  status: number;
  body: string;
  /** "" if it is absent. */
  contentType: string;
}

/** The constant parts of requests to a webhook. */
interface PreparedCall {
  readonly url: URL;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM; undefined to trust the CAs of the system. */
  readonly ca: string | undefined;
}

/** Calls webhooks over connections that are kept alive until it is closed. */
export class WebhookClient {
  readonly #registry: Registry;
  // By address, server name, and CA, least recently used first.
  readonly #pools = new Map<string, Pool>();
  // By `clientConfig`, which is immutable.
  readonly #prepared = new WeakMap<JsonObject, PreparedCall>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Posts a review to a webhook. Throws an Error with the message of Go's client if there is no response within the timeout. */
  async post(target: WebhookTarget, review: JsonObject): Promise<WebhookReply> {
    const call = this.#prepare(target);
    const deadline = new AbortController();
    const timer = setTimeout(
      () => deadline.abort(new Error("context deadline exceeded")),
      target.timeoutSeconds * 1000,
    );
    try {
      const pool = await this.#poolOf(addressOf(this.#registry, target, call.url), call.ca);
      return await send(pool, call, { body: JSON.stringify(review), signal: deadline.signal });
    } catch (error) {
      throw new Error(`Post "${shownUrl(target, call.url)}": ${goTextOf(error as NodeJS.ErrnoException, call.url)}`);
    } finally {
      clearTimeout(timer);
    }
  }

  #prepare(target: WebhookTarget): PreparedCall {
    let prepared = this.#prepared.get(target.clientConfig);
    if (prepared === undefined) this.#prepared.set(target.clientConfig, (prepared = preparedCall(target)));
    return prepared;
  }

  async #poolOf({ host, port, serverName }: WebhookAddress, ca: string | undefined): Promise<Pool> {
    const UndiciPool = await loadPool();
    const key = `${host} ${port} ${serverName} ${ca ?? ""}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new UndiciPool(`https://${host.includes(":") ? `[${host}]` : host}:${port}`, {
        pipelining: 1,
        allowH2: false,
        keepAliveTimeout: IDLE_TIMEOUT_MS,
        connectTimeout: MAX_TIMEOUT_MS,
        headersTimeout: 0,
        bodyTimeout: 0,
        maxResponseSize: MAX_ANSWER_BYTES,
        // An IP cannot be used as server name (SNI).
        connect: { ...(ca === undefined ? {} : { ca }), servername: isIP(serverName) === 0 ? serverName : "" },
      });
    } else this.#pools.delete(key);
    this.#pools.set(key, pool);
    for (const [oldest, unused] of this.#pools) {
      if (this.#pools.size <= MAX_POOLS) break;
      this.#pools.delete(oldest);
      void unused.close();
    }
    return pool;
  }

  close(): void {
    for (const pool of this.#pools.values()) void pool.destroy();
    this.#pools.clear();
  }
}

let loaded: Promise<typeof Pool> | undefined;

// Loads only parts of undici, without fetch, WebSocket, and cache, and only when a webhook is called.
async function loadPool(): Promise<typeof Pool> {
  loaded ??= loadParts().catch(
    // These files are not exported by undici, so other versions may have them elsewhere.
    () => (createRequire(import.meta.url)("undici") as { Pool: typeof Pool }).Pool,
  );
  return loaded;
}

async function loadParts(): Promise<typeof Pool> {
  // @ts-expect-error the file comes without types
  const { default: only } = (await import("undici/lib/dispatcher/pool.js")) as { default: typeof Pool };
  // @ts-expect-error the file comes without types
  const { default: request } = (await import("undici/lib/api/api-request.js")) as { default: Pool["request"] };
  return class extends only {
    override request = request;
  };
}

async function send(
  pool: Pool,
  { path, headers }: PreparedCall,
  { body, signal }: { body: string; signal: AbortSignal },
): Promise<WebhookReply> {
  const mayBeStale = pool.stats.connected > 0;
  const request = () => pool.request({ method: "POST", path, headers, body, signal });
  const answer = await request().catch((error: NodeJS.ErrnoException) => {
    // The webhook closed an idle connection while it was being reused, so it has not received the review.
    if (mayBeStale && !signal.aborted && isCut(error)) return request();
    throw error;
  });
  const contentType = String(answer.headers["content-type"] ?? "");
  return { status: answer.statusCode, body: await answer.body.text(), contentType };
}

function isCut({ code }: NodeJS.ErrnoException): boolean {
  return code === "ECONNRESET" || code === "UND_ERR_SOCKET";
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

// The port of a Service is always part of the URL, that of `url` only if it is set.
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

function preparedCall(target: WebhookTarget): PreparedCall {
  const url = urlOf(target);
  const bundle = stringAt(target.clientConfig, "caBundle") ?? "";
  return {
    url,
    path: `${url.pathname}${url.search}`,
    headers: { host: url.host, "content-type": "application/json", accept: "application/json, */*" },
    ca: bundle === "" ? undefined : Buffer.from(bundle, "base64").toString(),
  };
}

// Error messages of Go's HTTP client, as a real API server returns them.
function goTextOf(error: NodeJS.ErrnoException & { reason?: string }, url: URL): string {
  const address = `${url.hostname}:${url.port || DEFAULT_PORT}`;
  switch (error.code) {
    case "ECONNREFUSED":
      return `dial tcp ${address}: connect: connection refused`;
    case "ENOTFOUND":
      return `dial tcp: lookup ${url.hostname}: no such host`;
    case "ECONNRESET":
    case "UND_ERR_SOCKET":
      return "EOF";
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
      return "http: response body too large";
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

/** Resolved address of a webhook. */
interface WebhookAddress {
  host: string;
  port: number;
  /** Server name that the certificate must contain. */
  serverName: string;
}

const SERVICES = { group: "", version: "v1", plural: "services" };
const SLICES = { group: "discovery.k8s.io", version: "v1", plural: "endpointslices" };

/**
 * Resolves a Service to a ready endpoint in its EndpointSlices, as kube-apiserver does without kube-proxy.
 *
 * @throws an Error with the message of kube-apiserver if there is none.
 */
function addressOfService(
  registry: Registry,
  service: { name: string; namespace: string; port: number },
): WebhookAddress {
  const { name, namespace } = service;
  const found = registry.find(SERVICES)?.store.get(keyOf({ namespace, name }))?.object;
  if (found === undefined) throw new Error(`service "${name}" not found`);
  const ports = (arrayAt(objectAt(found, "spec"), "ports") ?? []).filter(isObject);
  const port = ports.find((one) => one["port"] === service.port);
  if (port === undefined) throw new Error(`no service port ${service.port} found for service "${name}"`);
  const serverName = `${name}.${namespace}.svc`;
  const slices = registry.find(SLICES)?.store.list(`${namespace}/`) ?? [];
  for (const { object } of slices) {
    const labels = objectAt(objectAt(object, "metadata"), "labels");
    if (stringAt(labels, "kubernetes.io/service-name") !== name) continue;
    const target = portOf(object, stringAt(port, "name") ?? "");
    const host = readyAddressOf(object);
    if (target !== undefined && host !== undefined) return { host, port: target, serverName };
  }
  throw new Error(`no endpoints available for service "${name}"`);
}

function portOf(slice: JsonObject, name: string): number | undefined {
  const ports = (arrayAt(slice, "ports") ?? []).filter(isObject);
  const port = ports.find((one) => (stringAt(one, "name") ?? "") === name)?.["port"];
  return typeof port === "number" ? port : undefined;
}

// An endpoint with unknown readiness counts as ready.
function readyAddressOf(slice: JsonObject): string | undefined {
  const endpoints = (arrayAt(slice, "endpoints") ?? []).filter(isObject);
  const ready = endpoints.find((endpoint) => objectAt(endpoint, "conditions")?.["ready"] !== false);
  return arrayAt(ready, "addresses")?.map(String)[0];
}

const GO_TYPE_META =
  'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/**
 * Parses the review in a response; throws an Error with the message of Go's client if it is not one. An absent kind or apiVersion is treated as the
 * expected one here; `checkGiven` rejects it later.
 */
export function readReply(reply: WebhookReply, of: { kind: string; apiVersions: readonly string[] }): JsonObject {
  const { status, body } = reply;
  if (status < 200 || status > 299) throw new Error(textOfFailure(reply));
  const review = parsed(body);
  const apiVersion = stringAt(review, "apiVersion") || (of.apiVersions[0] ?? "");
  const kind = stringAt(review, "kind") || of.kind;
  if (kind === of.kind && of.apiVersions.includes(apiVersion)) return review;
  throw new Error(unregisteredKind(kind, apiVersion));
}

/** Throws if the review has no kind or apiVersion, or unexpected ones. */
export function checkGiven(review: JsonObject, expected: { apiVersion: string; kind: string }): void {
  const [apiVersion, kind] = [stringAt(review, "apiVersion") ?? "", stringAt(review, "kind") ?? ""];
  if (apiVersion === expected.apiVersion && kind === expected.kind) return;
  const given = `${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${kind}`;
  throw new Error(`expected webhook response of ${expected.apiVersion}, Kind=${expected.kind}, got ${given}`);
}

function parsed(body: string): JsonObject {
  const start = "couldn't get version/kind; json parse error: ";
  try {
    // If it is not JSON, it is parsed as YAML.
    const { value } = parseYaml(Buffer.from(body));
    if (isObject(value)) return value;
    const type = Array.isArray(value) ? "array" : typeof value;
    throw new Error(`${start}json: cannot unmarshal ${type} into Go value of ${GO_TYPE_META}`);
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw new Error(`${start}${error.message}`);
  }
}

function textOfFailure({ status, body, contentType }: WebhookReply): string {
  const told = messageOfStatus(body);
  if (told !== undefined) return told;
  if (status === 404) return "the server could not find the requested resource";
  if (status < 500) return `the server responded with the status code ${status} but did not return more information`;
  const isText = contentType === "" || contentType.startsWith("text/");
  const shown = (isText && body.trim()) || "unknown";
  return `an error on the server (${quote(shown)}) has prevented the request from succeeding`;
}

function messageOfStatus(body: string): string | undefined {
  if (!body.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) && value["kind"] === "Status" && value["status"] === "Failure"
      ? (stringAt(value, "message") ?? "")
      : undefined;
  } catch {
    return undefined;
  }
}
