import { createRequire } from "node:module";
import type { Pool } from "undici";
import type { Connection, Credentials } from "./connect/connection.js";
import { createTunnelConnector } from "./tunnel.js";

/** The connections to one API server: streams have connections of their own. */
export interface Pools {
  readonly requests: Pool;
  readonly streams: Pool;
}

// 8 to 16 connections carry all the requests that one process can make; more only cost the server.
const REQUEST_CONNECTIONS = 16;
const KEEP_ALIVE_TIMEOUT_MS = 55_000;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 60_000;
const TCP_KEEP_ALIVE_DELAY_MS = 30_000;

/** Creates the connection pools of a server, which connect when there is something to send. */
export async function createPools(
  { server, serverName, skipsTlsVerify, proxyUrl }: Connection,
  { ca, cert, key }: Credentials & { readonly ca: string | Buffer | undefined },
): Promise<Pools> {
  const UndiciPool = await loadPool();
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(skipsTlsVerify === true ? { rejectUnauthorized: false } : {}),
  };
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
        : createTunnelConnector({
            proxyUrl,
            timeoutMs: CONNECT_TIMEOUT_MS,
            keepAliveDelayMs: TCP_KEEP_ALIVE_DELAY_MS,
            tls,
          }),
  };
  return {
    requests: new UndiciPool(server, { ...options, connections: REQUEST_CONNECTIONS }),
    streams: new UndiciPool(server, options),
  };
}

let pool: Promise<typeof Pool> | undefined;

// Pool alone instead of the whole package (with fetch, WebSocket and caches) saves every operator 55 ms of CPU and 9 MB. A bundler finds
// it, and takes as little of the package into the bundle.
function loadPool(): Promise<typeof Pool> {
  return (pool ??= load());
}

async function load(): Promise<typeof Pool> {
  try {
    // @ts-expect-error the file comes without types
    const { default: only } = (await import("undici/lib/dispatcher/pool.js")) as { default: typeof Pool };
    return only;
  } catch {
    // The folder is no promise of the package: another version may have it elsewhere.
    return (createRequire(import.meta.url)("undici") as { Pool: typeof Pool }).Pool;
  }
}
