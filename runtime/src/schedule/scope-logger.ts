import type { ObjectMeta } from "../base/kubernetes-object.js";
import { createChildLogger, type Logger } from "../base/logger.js";
import type { ReconcileReason } from "../base/reconcile-reason.js";

/** What the log lines of a reconcile say besides their message. */
export interface ScopeFields {
  readonly controller: string;
  /** The kind of the primary. */
  readonly kind: string;
  readonly primary: ObjectMeta | undefined;
  readonly reasons: readonly ReconcileReason[];
}

/** Creates a logger whose lines say which reconcile they belong to, and why it runs. */
export function createScopeLogger(logger: Logger, { controller, kind, primary, reasons }: ScopeFields): Logger {
  const { namespace, name, uid, resourceVersion, generation } = primary ?? {};
  const why = reasons.map(describeReason);
  return createChildLogger(logger, {
    controller,
    kind,
    namespace,
    name,
    uid,
    resourceVersion,
    generation,
    reasons: why,
  });
}

/** Returns a reason in words, as log lines show it: `primary updated`, `web Deployment home/page changed`, `retry 2`. */
export function describeReason(reason: ReconcileReason): string {
  switch (reason.kind) {
    case "primary":
      return `primary ${reason.change}`;
    case "secondary":
      return [reason.source, reason.type, reason.object, "changed"].filter((each) => each !== undefined).join(" ");
    case "retry":
      return `retry ${reason.attempt}`;
    default:
      return reason.kind;
  }
}
