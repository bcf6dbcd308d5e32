// Which HTTP proxy a server is reached through, by the rules of Go's http.ProxyFromEnvironment.
import { BlockList, isIP } from "node:net";

/** Returns the URL of the proxy that `HTTPS_PROXY` or `HTTP_PROXY` names, unless `NO_PROXY` or a loopback address excludes the server. */
export function proxyFromEnvironment(server: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const url = new URL(server);
  const isSecure = url.protocol === "https:";
  const name = isSecure ? "HTTPS_PROXY" : "HTTP_PROXY";
  const proxy = valueOf(env, name);
  if (proxy === "") return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const port = url.port || (isSecure ? "443" : "80");
  const isLoopback = host === "localhost" || isInSubnet(host, "127.0.0.0/8") || isInSubnet(host, "::1/128");
  const isExcluded = (entry: string) => excludes(entry.trim().toLowerCase(), host, port);
  if (isLoopback || valueOf(env, "NO_PROXY").split(",").some(isExcluded)) return undefined;
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

function valueOf(env: NodeJS.ProcessEnv, name: string): string {
  return env[name] || env[name.toLowerCase()] || "";
}

// `*`, an address, a subnet, a domain with all below it, `.domain` or `*.domain` without itself; a port may follow all but subnets.
function excludes(entry: string, host: string, port: string): boolean {
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
