import type { ObjectKey } from "./kubernetes-object.js";

/** Why a primary is reconciled, for logs and observers; the reconcile itself sees state, never an event. */
export type ReconcileReason =
  /** The primary changed; `isInitial` if a list brought it (at the start, or after a watch was lost), and not an edit. */
  | { readonly kind: "primary"; readonly change: "added" | "updated" | "deleted"; readonly isInitial: boolean }
  /** Something that belongs to the primary changed, as this event source reports; `type` is the kind of an object of Kubernetes. */
  | {
      readonly kind: "secondary";
      readonly source: string;
      readonly type?: string;
      readonly object?: ObjectKey;
      readonly isInitial: boolean;
      /** Whether nothing changed: a time that the runtime itself keeps is over, such as the pause of a write. */
      readonly isTimer?: boolean;
    }
  /** A reconcile before failed; `attempt` counts from 1. */
  | { readonly kind: "retry"; readonly attempt: number }
  /** The reconcile before asked for it. */
  | { readonly kind: "reschedule" }
  /** Nothing happened for the longest interval. */
  | { readonly kind: "resync" };

/** How urgent a reconcile is: edits are reconciled before relists, resyncs and timers. */
export type ReconcilePriority = "edit" | "background";

/** Returns how urgent a reason is. */
export function priorityOf(reason: ReconcileReason): ReconcilePriority {
  if (reason.kind === "resync") return "background";
  return "isInitial" in reason && reason.isInitial ? "background" : "edit";
}

/** Returns a reason in words, as log lines show it: `primary updated`, `web home/page changed`, `retry 2`. */
export function describeReason(reason: ReconcileReason): string {
  switch (reason.kind) {
    case "primary":
      return `primary ${reason.change}`;
    case "secondary":
      return reason.object === undefined ? `${reason.source} changed` : `${reason.source} ${reason.object} changed`;
    case "retry":
      return `retry ${reason.attempt}`;
    default:
      return reason.kind;
  }
}

/** The facts of a change that an event source reports, besides the primaries. */
export interface SecondaryCause {
  /** The dependent that the object is of. Default: the name of the event source. */
  readonly source?: string;
  /** The kind of the object. */
  readonly type?: string;
  readonly object?: ObjectKey;
  /** Whether a list brought it, and not an edit. */
  readonly isInitial?: boolean;
  /** Whether nothing changed, and a time that the runtime keeps is over. */
  readonly isTimer?: boolean;
}

/** Puts a primary into the queue of its controller. */
export type Requeue = (primary: ObjectKey, cause: SecondaryCause & { readonly source: string }) => void;
