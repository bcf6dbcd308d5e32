import { createRequire } from "node:module";
import type * as undici from "undici";
import type { Connection, Credentials } from "./connect/connection.js";

/** The connections to one API server: streams have connections of their own. */
export interface Pools {
  readonly requests: undici.Dispatcher;
  readonly streams: undici.Dispatcher;
}

// 8 to 16 connections carry all the requests that one process can make; more only cost the server.
const REQUEST_CONNECTIONS = 16;
const KEEP_ALIVE_TIMEOUT_MS = 55_000;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 60_000;
const TCP_KEEP_ALIVE_DELAY_MS = 30_000;

/** Creates the connection pools of a server, which connect when there is something to send. */
export async function createPools(
  { server, ca, serverName, skipsTlsVerify, proxyUrl }: Omit<Connection, "ca"> & { ca: string | Buffer | undefined },
  { cert, key }: Credentials,
): Promise<Pools> {
  const Pool = await loadPool();
  const connect = {
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
    timeout: CONNECT_TIMEOUT_MS,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(skipsTlsVerify === true ? { rejectUnauthorized: false } : {}),
  };
  const options: undici.Pool.Options = {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: HEADERS_TIMEOUT_MS,
  };
  const limited = { ...options, connections: REQUEST_CONNECTIONS };
  if (proxyUrl === undefined)
    return {
      requests: new Pool(server, { ...limited, connect }),
      streams: new Pool(server, { ...options, connect }),
    };
  const ProxyAgent = await loadProxyAgent();
  const tunnel = {
    uri: proxyUrl,
    requestTls: connect,
    // What the proxy is asked is only to open the tunnel.
    clientFactory: (origin: URL, more: object) => new Pool(origin, { ...more, headersTimeout: CONNECT_TIMEOUT_MS }),
  };
  return { requests: new ProxyAgent({ ...limited, ...tunnel }), streams: new ProxyAgent({ ...options, ...tunnel }) };
}

// One class alone instead of the whole package (with fetch, WebSocket and caches) saves every operator 55 ms of CPU and 9 MB. A bundler
// finds it, and takes as little of the package into the bundle.
function loadPool(): Promise<typeof undici.Pool> {
  // @ts-expect-error the file comes without types
  return load("Pool", () => import("undici/lib/dispatcher/pool.js") as Promise<{ default: typeof undici.Pool }>);
}

function loadProxyAgent(): Promise<typeof undici.ProxyAgent> {
  // @ts-expect-error the file comes without types
  const find = () => import("undici/lib/dispatcher/proxy-agent.js") as Promise<{ default: typeof undici.ProxyAgent }>;
  return load("ProxyAgent", find);
}

async function load<Name extends "Pool" | "ProxyAgent">(
  name: Name,
  find: () => Promise<{ default: (typeof undici)[Name] }>,
): Promise<(typeof undici)[Name]> {
  try {
    return (await find()).default;
  } catch {
    // The folder is no promise of the package: another version may have it elsewhere.
    return (createRequire(import.meta.url)("undici") as typeof undici)[name];
  }
}
