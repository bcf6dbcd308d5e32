import type { Tracing } from "../base/activity.js";
import type { PrimaryReconciler } from "../reconcile/primary-reconciler.js";
import { describeReason, type PrimaryRunner } from "../schedule/reconcile-scope.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";

/** Returns a runner that makes a span of every reconcile. */
export function tracedRunner(
  runner: PrimaryReconciler,
  { controller, tracing }: { readonly controller: string; readonly tracing: Tracing },
): PrimaryRunner<WorkflowResult> {
  return {
    run(scope) {
      const { key, queuedMs, retry, reasons } = scope;
      const facts = {
        controller,
        primary: key,
        attempt: retry.attempt,
        queuedMs,
        reasons: reasons.map(describeReason),
      };
      return tracing.reconcile(facts, () => runner.run(scope));
    },
    lacksFinalizer: (primary) => runner.lacksFinalizer(primary),
    release: (key) => runner.release(key),
  };
}
