import { describeObject, type ObjectRef } from "../../base/kubernetes-object.js";
import { kindNameOf } from "../../base/resource-definition.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";

const MOST_PATHS = 5;

/** A change that was made, as a log line tells it. */
export interface MadeChange {
  readonly kind: "created" | "updated" | "deleted";
  readonly target: WriteTarget;
  readonly ref: ObjectRef;
  readonly isStatus?: boolean;
  readonly cause: WriteCause;
  /** Returns where the object was not as desired. */
  paths?(limit: number): readonly string[];
}

/** Writes one line about a write that changed something: which object, and where it was not as desired; never a value. */
export function logChange({ kind, target, ref, isStatus = false, cause, paths }: MadeChange): void {
  const { logger, dependent } = cause;
  if (logger === undefined) return;
  const changed = kind === "updated" ? (paths?.(MOST_PATHS) ?? []) : [];
  const what = `${isStatus ? "the status of " : ""}${describeObject(target.definition, ref)}`;
  const fields = {
    ...(dependent === undefined ? {} : { dependent }),
    resource: kindNameOf(target.definition),
    ...(changed.length === 0 ? {} : { paths: changed }),
  };
  logger.info(fields, `${kind} ${what}${changed.length === 0 ? "" : `: ${changed.join(", ")}`}`);
}
