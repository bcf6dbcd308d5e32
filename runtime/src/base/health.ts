/** How an event source is doing; `reason` says what is wrong, in words for the log and the health endpoint. */
export interface SourceHealth {
  readonly status: "healthy" | "unhealthy" | "unknown";
  readonly reason?: string;
}
