import { getEventListeners } from "node:events";

/** Counts what a signal keeps: its listeners, and what AbortSignal.any() has left in it. */
export function keptIn(signal: AbortSignal): number {
  const name = Object.getOwnPropertySymbols(signal).find(({ description }) => description === "kDependantSignals");
  const { [name ?? Symbol()]: dependants } = signal as unknown as { readonly [name: symbol]: ReadonlySet<unknown> };
  return getEventListeners(signal, "abort").length + (dependants?.size ?? 0);
}
