/** The result of one check of `doctor`. */
export interface Check {
  /** The subject of the check, for example `lock file`. */
  readonly name: string;
  readonly outcome: "ok" | "warning" | "failed" | "skipped";
  readonly message: string;
  /** Details that the message summarizes. */
  readonly details?: readonly string[];
  /** How to fix the problem. */
  readonly advice?: string;
}

/** Returns the result of a successful check. */
export function ok(name: string, message: string): Check {
  return { name, outcome: "ok", message };
}

/** Returns the result of a check that could not be performed. */
export function skipped(name: string, message: string, advice?: string): Check {
  return { name, outcome: "skipped", message, ...(advice === undefined ? {} : { advice }) };
}

/** Returns the result of a failed check. */
export function failed(name: string, message: string, advice?: string): Check {
  return { name, outcome: "failed", message, ...(advice === undefined ? {} : { advice }) };
}
