/** What one check of `doctor` has found. */
export interface Check {
  /** What was looked at: `lock file`. */
  readonly name: string;
  readonly outcome: "ok" | "warning" | "failed" | "skipped";
  readonly message: string;
  /** Lines that the message sums up. */
  readonly details?: readonly string[];
  /** What to do about it. */
  readonly advice?: string;
}

/** Creates a check that found nothing wrong. */
export function ok(name: string, message: string): Check {
  return { name, outcome: "ok", message };
}

/** Creates a check that could not be made. */
export function skipped(name: string, message: string, advice?: string): Check {
  return { name, outcome: "skipped", message, ...(advice === undefined ? {} : { advice }) };
}

/** Creates a check that found something wrong. */
export function failed(name: string, message: string, advice?: string): Check {
  return { name, outcome: "failed", message, ...(advice === undefined ? {} : { advice }) };
}
