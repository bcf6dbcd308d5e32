// What tools may follow without a word in the operator's code, by node:diagnostics_channel. Nobody subscribes in production unless a tool does.
import { channel } from "node:diagnostics_channel";

/** Told when an operator has started, with the names of its `controllers`. */
export const startedChannel = channel("gen-operator.started");

/** Told at the end of every reconcile. Its messages are `ReconcileEvent`s. */
export const reconcileChannel = channel("gen-operator.reconcile");

/** Told when a primary is gone: the `controller`, and the key of the `primary`. */
export const primaryDeletedChannel = channel("gen-operator.primary-deleted");
