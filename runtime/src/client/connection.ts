import { BlockList, isIP } from "node:net";
import { TerminalError } from "../base/errors.js";

/** The address of an API server, and the identity of the client there (client-go rest.Config). */
export interface Connection {
  /** `https://host:port`, without a path. */
  readonly server: string;
  /** What stands before every path, where a proxy serves several clusters at one address: `/k8s/clusters/c-1`. */
  readonly basePath?: string | undefined;
  /** Where this came from, for messages: a file and context, or the service account. */
  readonly origin: string;
  /** Whether this is the service account of the pod that this process runs in. */
  readonly isInCluster?: boolean | undefined;
  /** The namespace to use where one is needed and none is set. */
  readonly namespace?: string | undefined;
  /** PEM of the certificate authorities to trust. Default: those of Node. */
  readonly ca?: string | Buffer | undefined;
  /** The file that holds `ca`; it is read again when the certificate of the server cannot be verified. */
  readonly caFile?: string | undefined;
  readonly serverName?: string | undefined;
  readonly skipTlsVerify?: boolean | undefined;
  /** URL of the HTTP proxy that opens a tunnel (CONNECT) to the server. */
  readonly proxyUrl?: string | undefined;
  /** The identity that requests impersonate; the credentials need the permission to impersonate. */
  readonly impersonation?: Impersonation | undefined;
  /** Returns what identifies the client; called before every request, so it caches what is costly to get. */
  credentials(options: {
    /** Whether the server answered 401 to what was returned last. */
    isRejected: boolean;
  }): Promise<Credentials> | Credentials;
}

/** What identifies a client: a header, a client certificate, or both. */
export interface Credentials {
  /** Value of the Authorization header. */
  readonly authorization?: string | undefined;
  /** PEM of the client certificate. */
  readonly cert?: string | Buffer | undefined;
  /** PEM of the private key of the client certificate. */
  readonly key?: string | Buffer | undefined;
}

/** The identity that requests are carried out as, in place of that of the credentials (kubectl's `--as`). */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: { readonly [key: string]: readonly string[] } | undefined;
}

/** A connection whose values are all given, as in tests and for embedded servers. */
export interface ConnectionOptions
  extends
    Omit<Credentials, "authorization">,
    Pick<Connection, "namespace" | "ca" | "serverName" | "skipTlsVerify" | "proxyUrl" | "impersonation"> {
  readonly server?: string;
  /** The same as `server`. */
  readonly url?: string;
  readonly token?: string;
}

// What Node takes as the value of a header. A line feed or a NUL in it fails each request as if the server were down.
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Throws an error that names the field if its text cannot be sent in a header; the text itself may be a secret. */
export function checkHeaderValue(text: string, field: string): void {
  if (HEADER_VALUE.test(text.trim())) return;
  throw new TerminalError(
    `${field} has a line break, a NUL or another character that no HTTP header may have; remove it, for example a second line of the file that it was copied from`,
  );
}

/** Checks all texts of an identity, with the name of the field that is wrong. */
export function checkImpersonation(impersonation: Impersonation | undefined, nameOf: (field: string) => string): void {
  const { user = "", uid = "", groups = [], extra = {} } = impersonation ?? {};
  checkHeaderValue(user, nameOf("user"));
  checkHeaderValue(uid, nameOf("uid"));
  for (const group of groups) checkHeaderValue(group, nameOf("groups"));
  for (const value of Object.values(extra).flat()) checkHeaderValue(value, nameOf("extra"));
}

/** Returns the address and the base path of an API server. */
export function serverOf(url: string): Pick<Connection, "server" | "basePath"> {
  const { origin, pathname } = new URL(url);
  return { server: origin, basePath: pathname.replace(/\/+$/, "") };
}

/** Creates a connection whose credentials never change; without a `proxyUrl` the environment may name a proxy. */
export function createConnection(options: ConnectionOptions): Connection {
  const { url, server = url, token, cert, key, proxyUrl, ...stated } = options;
  if (server === undefined || !URL.canParse(server))
    throw new TypeError(`a connection needs the URL of its server, and has ${JSON.stringify(server)}`);
  if (token !== undefined && typeof token !== "string")
    throw new TypeError(`the token of a connection has to be a text, and is a ${typeof token}`);
  checkHeaderValue(token ?? "", "the token of the connection");
  checkImpersonation(stated.impersonation, (field) => `${field} of the impersonation of the connection`);
  const credentials = { authorization: token === undefined ? undefined : `Bearer ${token.trim()}`, cert, key };
  const address = serverOf(server);
  const proxy =
    proxyUrl === undefined
      ? proxyFromEnvironment(address.server)
      : checkProxyUrl(proxyUrl, "proxyUrl of the connection");
  return { ...stated, ...address, origin: "connection options", proxyUrl: proxy, credentials: () => credentials };
}

/** Returns the namespace of a connection that `owner` watches; throws if it has none. */
export function namespaceOf({ namespace, origin }: Pick<Connection, "namespace" | "origin">, owner: string): string {
  if (namespace !== undefined) return namespace;
  const problem = `${owner} watches the namespace of its connection, and ${origin} has none`;
  throw new Error(`${problem}; set one there, or list the namespaces`);
}

/** Returns the headers of impersonation. */
export function impersonationHeaders(impersonation: Impersonation | undefined): Record<string, string | string[]> {
  if (impersonation === undefined) return {};
  const { user, uid, groups = [], extra = {} } = impersonation;
  const headers: Record<string, string | string[]> = { "impersonate-user": user };
  if (uid !== undefined) headers["impersonate-uid"] = uid;
  if (groups.length > 0) headers["impersonate-group"] = [...groups];
  for (const [key, values] of Object.entries(extra)) {
    // The server decodes percent signs; what may not stand in the name of a header has to be escaped.
    const name = encodeURIComponent(key).replaceAll("(", "%28").replaceAll(")", "%29");
    headers[`impersonate-extra-${name}`] = [...values];
  }
  return headers;
}

// Which HTTP proxy a server is reached through, by the rules of Go's http.ProxyFromEnvironment.

/** Returns the URL of the proxy that `HTTPS_PROXY` or `HTTP_PROXY` names, unless `NO_PROXY` or a loopback address excludes the server. */
export function proxyFromEnvironment(server: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const url = new URL(server);
  const isSecure = url.protocol === "https:";
  const name = isSecure ? "HTTPS_PROXY" : "HTTP_PROXY";
  const proxy = environmentValue(env, name);
  if (proxy === "") return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const port = url.port || (isSecure ? "443" : "80");
  const isLoopback = host === "localhost" || isInSubnet(host, "127.0.0.0/8") || isInSubnet(host, "::1/128");
  const isExcluded = (entry: string) => isExcludedBy(entry.trim().toLowerCase(), host, port);
  if (isLoopback || environmentValue(env, "NO_PROXY").split(",").some(isExcluded)) return undefined;
  return checkProxyUrl(proxy.includes("://") ? proxy : `http://${proxy}`, `${name} of the environment`);
}

/** Returns the URL of a proxy; throws an error that begins with `where` if it is not one of an HTTP proxy. */
export function checkProxyUrl(url: string, where: string): string {
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: undefined };
  if (protocol === "http:" || protocol === "https:") return url;
  // The text may hold a password, so it is not quoted.
  const problem = protocol === undefined ? "is no URL" : `has the scheme "${protocol.slice(0, -1)}"`;
  throw new Error(`${where} ${problem}; only proxies at http:// and https:// are supported`);
}

function environmentValue(env: NodeJS.ProcessEnv, name: string): string {
  return env[name] || env[name.toLowerCase()] || "";
}

// `*`, an address, a subnet, a domain with all below it, `.domain` or `*.domain` without itself; a port may follow all but subnets.
function isExcludedBy(entry: string, host: string, port: string): boolean {
  if (entry === "" || entry === "*") return entry === "*";
  if (entry.includes("/")) return isInSubnet(host, entry);
  const [, name = "", wantedPort = port] = isIP(entry) > 0 ? [, entry] : (/^\[?(.*?)\]?(?::(\d+))?$/.exec(entry) ?? []);
  if (wantedPort !== port) return false;
  if (isIP(name) > 0) return isInSubnet(host, `${name}/${isIP(name) === 4 ? 32 : 128}`);
  const domain = name.replace(/^\*\./, ".");
  return domain.startsWith(".") ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
}

function isInSubnet(host: string, subnet: string): boolean {
  const [address = "", bits = ""] = subnet.split("/");
  const version = isIP(address);
  if (isIP(host) === 0 || version === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > (version === 4 ? 32 : 128))
    return false;
  const list = new BlockList();
  list.addSubnet(address, Number(bits), version === 4 ? "ipv4" : "ipv6");
  return list.check(host, isIP(host) === 4 ? "ipv4" : "ipv6");
}
