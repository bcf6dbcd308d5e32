/**
 * The process in which `gen-operator dev` runs an operator. It loads the runtime, then waits for the order to run, so that a restart does
 * not wait for either. It reports what the operator does, and ends when the session does.
 */
import { subscribe } from "node:diagnostics_channel";
import { pathToFileURL } from "node:url";
import type { ReconcileEvent } from "@gen-operator/runtime";
import { type PrimaryReport, reportOf } from "./reports.js";

/** What the session tells the process. */
export interface RunOrder {
  readonly entry: string;
}

/** What the process tells the session. */
export type HostMessage =
  | { readonly kind: "started" }
  | { readonly kind: "reconciled"; readonly report: PrimaryReport }
  | { readonly kind: "deleted"; readonly primary: string };

const [host = "", , runtime = "", ...args] = process.argv;

function send(message: HostMessage): void {
  // The session may be gone.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

subscribe("gen-operator.started", () => send({ kind: "started" }));
subscribe("gen-operator.reconcile", (event) => send({ kind: "reconciled", report: reportOf(event as ReconcileEvent) }));
subscribe("gen-operator.primary-deleted", (event) => {
  const { primary } = event as { primary: string };
  send({ kind: "deleted", primary: primary.replace(/^\//, "") });
});
// While somebody listens, the runtime logs reads of metadata of which no change would be reconciled.
subscribe("gen-operator.unlisted-read", () => {});
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
process.once("message", ({ entry }: RunOrder) => {
  process.argv = [host, entry, ...args];
  // From here on the operator decides how long the process lives.
  process.channel?.unref();
  void import(pathToFileURL(entry).href);
});
await import(pathToFileURL(runtime).href);
