import { getEventListeners } from "node:events";

/** Counts the references that a signal holds: its listeners, and the dependent signals of AbortSignal.any(). */
export function keptIn(signal: AbortSignal): number {
  const name = Object.getOwnPropertySymbols(signal).find(({ description }) => description === "kDependantSignals");
  const { [name ?? Symbol()]: dependants } = signal as unknown as { readonly [name: symbol]: ReadonlySet<unknown> };
  return getEventListeners(signal, "abort").length + (dependants?.size ?? 0);
}
