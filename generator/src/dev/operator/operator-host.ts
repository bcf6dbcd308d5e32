/**
 * The process in which `gen-operator dev` runs an operator. It loads the runtime in advance and waits for the run message, so that a restart is fast.
 * It reports the operator's events to the session, and exits with it.
 */
import { subscribe } from "node:diagnostics_channel";
import { pathToFileURL } from "node:url";
import type { ReconcileEvent } from "@gen-operator/runtime";
import { type PrimaryReport, reportOf } from "./reports.js";

/** Message from the session to the process. */
export interface RunOrder {
  readonly entry: string;
}

/** Messages from the process to the session. */
export type HostMessage =
  | { readonly kind: "started" }
  | { readonly kind: "reconciled"; readonly report: PrimaryReport }
  | { readonly kind: "deleted"; readonly primary: string };

const [host = "", , runtime = "", ...args] = process.argv;

function send(message: HostMessage): void {
  // The session may have exited.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

subscribe("gen-operator.started", () => send({ kind: "started" }));
subscribe("gen-operator.reconcile", (event) => send({ kind: "reconciled", report: reportOf(event as ReconcileEvent) }));
subscribe("gen-operator.primary-deleted", (event) => {
  const { primary } = event as { primary: string };
  send({ kind: "deleted", primary: primary.replace(/^\//, "") });
});
// With a subscriber, the runtime logs reads of metadata whose changes would not trigger a reconcile.
subscribe("gen-operator.unlisted-read", () => {});
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
process.once("message", ({ entry }: RunOrder) => {
  process.argv = [host, entry, ...args];
  // From here on, the channel must not keep the process alive after the operator has ended.
  process.channel?.unref();
  void import(pathToFileURL(entry).href);
});
await import(pathToFileURL(runtime).href);
