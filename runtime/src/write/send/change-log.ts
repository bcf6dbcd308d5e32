import { isWritten } from "../../base/logger.js";
import { kindNameOf } from "../../base/resource-definition.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";

/** Tells whether changes are logged: to find the places of a change costs as much as to find that there is one. */
export function isLogged({ logger }: WriteCause): boolean {
  return logger !== undefined && isWritten(logger, "info");
}

/** Writes one line about a change: which object, and where it was not as desired; never a value. */
export function logChange(
  what: string,
  { target, cause, paths = [] }: { target: WriteTarget; cause: WriteCause; paths?: readonly string[] },
): void {
  const fields = {
    ...(cause.dependent === undefined ? {} : { dependent: cause.dependent }),
    resource: kindNameOf(target.definition),
    ...(paths.length === 0 ? {} : { paths }),
  };
  cause.logger?.info(fields, paths.length === 0 ? what : `${what}: ${paths.join(", ")}`);
}
