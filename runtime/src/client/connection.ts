import { BlockList, isIP } from "node:net";
import { TerminalError } from "../base/errors.js";

/** The address of an API server and the identity of the client (rest.Config in client-go). */
export interface Connection {
  /** `https://host:port`, without a path. */
  readonly server: string;
  /** Prefix of all paths, for a proxy that serves several clusters at one address: `/k8s/clusters/c-1`. */
  readonly basePath?: string | undefined;
  /** The source of the connection, for messages: a file and context, or the service account. */
  readonly origin: string;
  /** Whether this is the service account of the pod in which the process runs. */
  readonly isInCluster?: boolean | undefined;
  /** The default namespace. */
  readonly namespace?: string | undefined;
  /** PEM-encoded certificate authorities to trust. Default: those of Node.js */
  readonly ca?: string | Buffer | undefined;
  /** The file with `ca`. Reread when the certificate of the server cannot be verified. */
  readonly caFile?: string | undefined;
  readonly serverName?: string | undefined;
  readonly skipTlsVerify?: boolean | undefined;
  /** URL of the HTTP proxy through which the server is reached (CONNECT). */
  readonly proxyUrl?: string | undefined;
  /** The identity to impersonate. The credentials need the permission to impersonate it. */
  readonly impersonation?: Impersonation | undefined;
  /** Returns the credentials. Called before every request, so an implementation should cache them. */
  credentials(options: {
    /** Whether the server responded with 401 to the credentials that were returned last. */
    isRejected: boolean;
  }): Promise<Credentials> | Credentials;
}

/** Credentials of a client: an Authorization header, a client certificate, or both. */
export interface Credentials {
  /** Value of the Authorization header. */
  readonly authorization?: string | undefined;
  /** PEM-encoded client certificate. */
  readonly cert?: string | Buffer | undefined;
  /** PEM-encoded private key of the client certificate. */
  readonly key?: string | Buffer | undefined;
}

/** The identity that is impersonated (`kubectl --as`). */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: { readonly [key: string]: readonly string[] } | undefined;
}

/** Options of a connection with fixed values, for tests and embedded servers. */
export interface ConnectionOptions
  extends
    Omit<Credentials, "authorization">,
    Pick<Connection, "namespace" | "ca" | "serverName" | "skipTlsVerify" | "proxyUrl" | "impersonation"> {
  readonly server?: string;
  /** Alias of `server`. */
  readonly url?: string;
  readonly token?: string;
}

// The header values that Node.js accepts. A line feed or a NUL would make every request fail like a lost connection.
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Throws an error that names the field if its value cannot be sent in a header. The message does not contain the value, which may be a secret. */
export function checkHeaderValue(text: string, field: string): void {
  if (HEADER_VALUE.test(text.trim())) return;
  throw new TerminalError(
    `${field} has a line break, a NUL or another character that no HTTP header may have; remove it, for example a second line of the file that it was copied from`,
  );
}

/** Checks all values of an identity. Throws an error that names the invalid field. */
export function checkImpersonation(impersonation: Impersonation | undefined, nameOf: (field: string) => string): void {
  const { user = "", uid = "", groups = [], extra = {} } = impersonation ?? {};
  checkHeaderValue(user, nameOf("user"));
  checkHeaderValue(uid, nameOf("uid"));
  for (const group of groups) checkHeaderValue(group, nameOf("groups"));
  for (const value of Object.values(extra).flat()) checkHeaderValue(value, nameOf("extra"));
}

/** Splits the URL of an API server into its origin and base path. */
export function serverOf(url: string): Pick<Connection, "server" | "basePath"> {
  const { origin, pathname } = new URL(url);
  return { server: origin, basePath: pathname.replace(/\/+$/, "") };
}

/** Creates a connection with fixed credentials. Without `proxyUrl`, the proxy environment variables apply. */
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

/** Returns the namespace of a connection, which `owner` watches. Throws if it has none. */
export function namespaceOf({ namespace, origin }: Pick<Connection, "namespace" | "origin">, owner: string): string {
  if (namespace !== undefined) return namespace;
  const problem = `${owner} watches the namespace of its connection, and ${origin} has none`;
  throw new Error(`${problem}; set one there, or list the namespaces`);
}

/** Returns the impersonation headers. */
export function impersonationHeaders(impersonation: Impersonation | undefined): Record<string, string | string[]> {
  if (impersonation === undefined) return {};
  const { user, uid, groups = [], extra = {} } = impersonation;
  const headers: Record<string, string | string[]> = { "impersonate-user": user };
  if (uid !== undefined) headers["impersonate-uid"] = uid;
  if (groups.length > 0) headers["impersonate-group"] = [...groups];
  for (const [key, values] of Object.entries(extra)) {
    // The server decodes percent-encoding; characters that are invalid in a header name must be escaped.
    const name = encodeURIComponent(key).replaceAll("(", "%28").replaceAll(")", "%29");
    headers[`impersonate-extra-${name}`] = [...values];
  }
  return headers;
}

// Selects the HTTP proxy of a server, by the rules of Go's http.ProxyFromEnvironment.

/** Returns the URL of the proxy in `HTTPS_PROXY` or `HTTP_PROXY`, unless the server is excluded by `NO_PROXY` or has a loopback address. */
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

/** Returns the URL of a proxy. Throws an error that starts with `where` if it is not the URL of an HTTP proxy. */
export function checkProxyUrl(url: string, where: string): string {
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: undefined };
  if (protocol === "http:" || protocol === "https:") return url;
  // The URL may contain a password, so the message does not quote it.
  const problem = protocol === undefined ? "is no URL" : `has the scheme "${protocol.slice(0, -1)}"`;
  throw new Error(`${where} ${problem}; only proxies at http:// and https:// are supported`);
}

function environmentValue(env: NodeJS.ProcessEnv, name: string): string {
  return env[name] || env[name.toLowerCase()] || "";
}

// An entry is `*`, an address, a subnet, a domain including its subdomains, or `.domain` or `*.domain` for the subdomains only. All but subnets may
// end with a port.
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
