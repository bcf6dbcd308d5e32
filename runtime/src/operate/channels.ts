// What tools may follow without a word in the operator's code, by node:diagnostics_channel. Nobody subscribes in production unless a tool does.
import { channel } from "node:diagnostics_channel";
import type { ObjectKey } from "../base/kubernetes-object.js";

/** The message of `gen-operator.started`. */
export interface StartedMessage {
  readonly controllers: readonly string[];
}

/** The message of `gen-operator.primary-deleted`. */
export interface PrimaryDeletedMessage {
  readonly controller: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
}

/** Told when an operator has started. Its messages are `StartedMessage`s. */
export const startedChannel = channel("gen-operator.started");

/** Told at the end of every reconcile. Its messages are `ReconcileEvent`s. */
export const reconcileChannel = channel("gen-operator.reconcile");

/** Told when a primary is gone. Its messages are `PrimaryDeletedMessage`s. */
export const primaryDeletedChannel = channel("gen-operator.primary-deleted");
