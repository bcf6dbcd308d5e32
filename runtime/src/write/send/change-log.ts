import { isWritten } from "../../base/logger.js";
import { kindNameOf } from "../../base/resource-definition.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";

/** Writes one line about a change: which object, and where it was not as desired; never a value. */
export function logChange(
  what: string,
  { target, cause, pathsOf }: { target: WriteTarget; cause: WriteCause; pathsOf?: () => readonly string[] },
): void {
  const { logger, dependent } = cause;
  // To find the places of a change costs as much as to find that there is one.
  if (logger === undefined || !isWritten(logger, "info")) return;
  const paths = pathsOf?.() ?? [];
  const fields = { dependent, resource: kindNameOf(target.definition), ...(paths.length > 0 && { paths }) };
  logger.info(fields, paths.length === 0 ? what : `${what}: ${paths.join(", ")}`);
}
