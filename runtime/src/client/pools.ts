import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import { createRequire } from "node:module";
import { isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { buildConnector, Pool } from "undici";
import type { Connection, Credentials, PoolLimits } from "./connect/connection.js";

/** The connections to one API server: streams have connections of their own. */
export type Pools = ReturnType<typeof createPools>;

// 8 to 16 connections carry all the requests that one process can make; more only cost the server.
const REQUEST_CONNECTIONS = 16;
const KEEP_ALIVE_TIMEOUT_MS = 55_000;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 60_000;
const TCP_KEEP_ALIVE_DELAY_MS = 30_000;

/** Creates the connection pools of a server, which connect when there is something to send. */
export function createPools(
  UndiciPool: typeof Pool,
  { server, serverName, skipTlsVerify, proxyUrl }: Connection,
  { ca, cert, key, ...limits }: Pick<Connection, "ca"> & Credentials & PoolLimits,
) {
  const { maxConnections: connections = REQUEST_CONNECTIONS, requestTimeoutMs: timeoutMs = HEADERS_TIMEOUT_MS } =
    limits;
  // Without a setting, NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would turn the verification off.
  const tls = { ca, cert, key, servername: serverName, rejectUnauthorized: skipTlsVerify !== true };
  const options: Pool.Options = {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: HEADERS_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    connect:
      proxyUrl === undefined
        ? { keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS, ...tls }
        : createTunnelConnector(proxyUrl, tls),
  };
  return {
    requests: new UndiciPool(server, { ...options, connections, headersTimeout: timeoutMs, bodyTimeout: timeoutMs }),
    streams: new UndiciPool(server, options),
  };
}

let pool: Promise<typeof Pool> | undefined;

/** Loads undici's Pool, without fetch, WebSocket and caches: that saves every operator 55 ms of CPU and 9 MB, and a bundle as much. */
export function loadPool(): Promise<typeof Pool> {
  // @ts-expect-error the file comes without types
  pool ??= (import("undici/lib/dispatcher/pool.js") as Promise<{ default: typeof Pool }>).then(
    ({ default: only }) => only,
    // The folder is no promise of the package: another version may have it elsewhere.
    () => (createRequire(import.meta.url)("undici") as { Pool: typeof Pool }).Pool,
  );
  return pool;
}

/** Creates what connects undici's pools by tunnels (CONNECT) through an HTTP proxy; undici's own needs twice as much of its code. */
function createTunnelConnector(proxyUrl: string, tls: ConnectionOptions): buildConnector.connector {
  const { protocol: scheme, hostname: host, port, username, password } = new URL(proxyUrl);
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers = username === "" ? {} : { "proxy-authorization": `Basic ${Buffer.from(user).toString("base64")}` };
  const request = scheme === "https:" ? requestSecure : requestPlain;
  const address = { host: withoutBrackets(host), ...(port === "" ? {} : { port }) };
  const proxy = { ...address, agent: false, method: "CONNECT", rejectUnauthorized: true };
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
    const late = () => waitedFor.destroy(new Error(`no tunnel within ${CONNECT_TIMEOUT_MS / 1000} s`));
    const timer = setTimeout(late, CONNECT_TIMEOUT_MS);
    asked.once("error", fail);
    asked.once("connect", ({ statusCode }, socket) => {
      waitedFor = socket.on("error", fail);
      (socket as Socket).setKeepAlive(true, TCP_KEEP_ALIVE_DELAY_MS);
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
