// Apart from the pools, whose types bring Node's own: what is generated is checked without these.

/** How much a server is asked for. */
export interface PoolLimits {
  /** How many requests are under way at once, besides streams. Default: 16 */
  readonly maxConnections?: number | undefined;
  /** How long the server may take until its answer begins, and in the middle of it; streams have deadlines of their own. Default: 1 minute */
  readonly requestTimeoutMs?: number | undefined;
}
