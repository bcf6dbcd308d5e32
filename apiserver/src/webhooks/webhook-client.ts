/**
 * Calls of webhooks.
 *
 * Connections are kept between the calls, as kube-apiserver does, and one is only used again for the same address, name and authority: a
 * configuration that changes gets connections of its own. Those that are not used any more are closed after a while.
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
// That of Go's client.
const IDLE_TIMEOUT_MS = 90_000;
// No webhook may take longer.
const MAX_TIMEOUT_MS = 30_000;
// Addresses that have connections; an old one that is used again connects again.
const MAX_POOLS = 100;

/** How a webhook is reached. */
interface WebhookTarget {
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
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In PEM; undefined for the authorities of the machine. */
  readonly ca: string | undefined;
}

/** Calls webhooks over connections that it keeps until it is closed. */
export class WebhookClient {
  readonly #registry: Registry;
  // By address, name and authority; the one that was used last comes last.
  readonly #pools = new Map<string, Pool>();
  // By `clientConfig`, which nobody changes.
  readonly #prepared = new WeakMap<JsonObject, PreparedCall>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Posts a review to a webhook. Throws an Error in the words of Go's client when there is no answer within the timeout. */
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
        // A name of an address is no server name.
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

  /** Closes every connection. */
  close(): void {
    for (const pool of this.#pools.values()) void pool.destroy();
    this.#pools.clear();
  }
}

let loaded: Promise<typeof Pool> | undefined;

// Without fetch, WebSocket and caches, and only when a webhook is called.
async function loadPool(): Promise<typeof Pool> {
  loaded ??= loadParts().catch(
    // The folders are no promise of the package: another version may have them elsewhere.
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
    // The webhook closed a kept connection while it was used again: it has not seen the review.
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

// The words of Go's HTTP client, which users find in the answers of a real server.
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

/** Where a webhook is reached. */
interface WebhookAddress {
  host: string;
  port: number;
  /** The name that the certificate has to have. */
  serverName: string;
}

const SERVICES = { group: "", version: "v1", plural: "services" };
const SLICES = { group: "discovery.k8s.io", version: "v1", plural: "endpointslices" };

/**
 * Finds an address behind a Service, as kube-apiserver does without kube-proxy: one that is ready in its EndpointSlices.
 *
 * @throws an Error in the words of kube-apiserver when there is none.
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

// An endpoint that does not say whether it is ready counts as ready.
function readyAddressOf(slice: JsonObject): string | undefined {
  const endpoints = (arrayAt(slice, "endpoints") ?? []).filter(isObject);
  const ready = endpoints.find((endpoint) => objectAt(endpoint, "conditions")?.["ready"] !== false);
  return arrayAt(ready, "addresses")?.map(String)[0];
}

const GO_TYPE_META =
  'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/**
 * Reads the review that a webhook answered; throws an Error, in the words of Go's client, for what is none of this kind. Where the kind or the version is not
 * given, it is taken for the expected one at first; `checkGiven` refuses it after other checks.
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

/** Fails for a review that does not say of which kind and version it is. */
export function checkGiven(review: JsonObject, expected: { apiVersion: string; kind: string }): void {
  const [apiVersion, kind] = [stringAt(review, "apiVersion") ?? "", stringAt(review, "kind") ?? ""];
  if (apiVersion === expected.apiVersion && kind === expected.kind) return;
  const given = `${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${kind}`;
  throw new Error(`expected webhook response of ${expected.apiVersion}, Kind=${expected.kind}, got ${given}`);
}

function parsed(body: string): JsonObject {
  const start = "couldn't get version/kind; json parse error: ";
  try {
    // What is no JSON is read as YAML.
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
