import { describeObject, type ObjectRef } from "../../base/kubernetes-object.js";
import { kindNameOf } from "../../base/resource-definition.js";
import type { Difference } from "../../match/match.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";

const MOST_PATHS = 5;

/** A change that was made, as a log line tells it. */
export interface MadeChange {
  readonly target: WriteTarget;
  readonly plan: { readonly ref: ObjectRef; readonly isStatus?: boolean };
  readonly cause?: WriteCause | undefined;
  differences?(limit: number): readonly Difference[];
}

/** Writes one line about a write that changed something: which object, and where it was not as desired; never a value. */
export function logChange(
  kind: "created" | "updated" | "deleted",
  { target, plan, cause, differences }: MadeChange,
): void {
  const { logger, dependent } = cause ?? {};
  if (logger === undefined) return;
  const paths = kind === "updated" ? (differences?.(MOST_PATHS) ?? []).flatMap(({ path }) => path || []) : [];
  const what = `${plan.isStatus === true ? "the status of " : ""}${describeObject(target.definition, plan.ref)}`;
  const fields = {
    ...(dependent === undefined ? {} : { dependent }),
    resource: kindNameOf(target.definition),
    ...(paths.length === 0 ? {} : { paths }),
  };
  logger.info(fields, `${kind} ${what}${paths.length === 0 ? "" : `: ${paths.join(", ")}`}`);
}
