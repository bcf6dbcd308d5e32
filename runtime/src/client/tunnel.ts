import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import { isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { buildConnector } from "undici";

/** How the connections behind a proxy are made. */
export interface TunnelOptions {
  /** The URL of the proxy, with its user and password if it asks for them. */
  readonly proxyUrl: string;
  /** How long it may take until a tunnel, and TLS in it, is there. */
  readonly timeoutMs: number;
  readonly keepAliveDelayMs: number;
  readonly tls: ConnectionOptions;
}

/** Creates what connects undici's pools by tunnels (CONNECT) through an HTTP proxy; undici's own needs twice as much of its code. */
export function createTunnelConnector(options: TunnelOptions): buildConnector.connector {
  const { proxyUrl, timeoutMs, keepAliveDelayMs, tls } = options;
  const { protocol: scheme, hostname: host, port, username, password } = new URL(proxyUrl);
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers = username === "" ? {} : { "proxy-authorization": `Basic ${Buffer.from(user).toString("base64")}` };
  const request = scheme === "https:" ? requestSecure : requestPlain;
  const proxy = { host: withoutBrackets(host), ...(port === "" ? {} : { port }), agent: false, method: "CONNECT" };
  return ({ hostname, port, protocol }, callback) => {
    const isSecure = protocol === "https:";
    const target = `${hostname}:${port || (isSecure ? 443 : 80)}`;
    let isSettled = false;
    const settle: typeof callback = (...result) => {
      clearTimeout(timer);
      if (!isSettled) callback(...result);
      isSettled = true;
    };
    const fail = (error: Error) => settle(error, null);
    const asked = request({ ...proxy, path: target, headers: { host: target, ...headers } });
    let waitedFor: { destroy(error?: Error): unknown } = asked;
    const late = () => waitedFor.destroy(new Error(`no tunnel within ${timeoutMs / 1000} s`));
    const timer = setTimeout(late, timeoutMs);
    asked.once("error", fail);
    asked.once("connect", ({ statusCode }, socket) => {
      waitedFor = socket.on("error", fail);
      (socket as Socket).setKeepAlive(true, keepAliveDelayMs);
      if (statusCode !== 200) {
        socket.destroy();
        return fail(new Error(`the proxy answered ${statusCode}`));
      }
      if (!isSecure) return settle(null, socket as Socket);
      const name = withoutBrackets(hostname);
      const servername = tls.servername ?? (isIP(name) === 0 ? name : undefined);
      const secure = connectTls({ host: name, ...tls, servername, socket });
      waitedFor = secure.on("error", fail);
      secure.once("secureConnect", () => settle(null, secure));
    });
    asked.end();
  };
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}
