/** How to reach an API server and who to be there. */
export interface Connection {
  /** `https://host:port`, without a path. */
  readonly server: string;
  /** What stands before every path, where a proxy serves several clusters at one address: `/k8s/clusters/c-1`. */
  readonly basePath?: string;
  /** Where this came from, for messages: a file and context, or the service account. */
  readonly origin: string;
  /** The namespace to work in where one is needed and none is stated. */
  readonly namespace?: string;
  /** PEM of the certificate authorities to trust; those of Node unless given. */
  readonly ca?: string | Buffer;
  readonly serverName?: string;
  readonly skipsTlsVerify?: boolean;
  /** Returns what identifies the client; called before every request, so it caches what is costly to get. */
  credentials(options: {
    /** Whether the server answered 401 to what was returned last. */
    isRejected: boolean;
  }): Promise<Credentials> | Credentials;
}

/** What identifies a client: a header, a client certificate, or both. */
export interface Credentials {
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** PEM of the client certificate. */
  readonly cert?: string | Buffer;
  /** PEM of the private key of the client certificate. */
  readonly key?: string | Buffer;
}

/** A connection stated in full, as tests and embedded servers do. */
export interface ConnectionOptions {
  readonly server?: string;
  /** The same as `server`. */
  readonly url?: string;
  readonly token?: string;
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly namespace?: string;
  readonly serverName?: string;
  readonly skipsTlsVerify?: boolean;
}

/** Returns the address and the base path of an API server. */
export function serverOf(url: string): Pick<Connection, "server" | "basePath"> {
  const { origin, pathname } = new URL(url);
  const basePath = pathname.replace(/\/+$/, "");
  return { server: origin, ...(basePath === "" ? {} : { basePath }) };
}

/** Creates a connection whose credentials never change. */
export function createConnection(options: ConnectionOptions): Connection {
  const { server = options.url, token, cert, key, ca, namespace, serverName, skipsTlsVerify } = options;
  if (server === undefined) throw new TypeError("a connection needs the URL of its server");
  const credentials: Credentials = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token.trim()}` }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
  return {
    ...serverOf(server),
    origin: "connection options",
    ...(ca === undefined ? {} : { ca }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(serverName === undefined ? {} : { serverName }),
    ...(skipsTlsVerify === undefined ? {} : { skipsTlsVerify }),
    credentials: () => credentials,
  };
}
