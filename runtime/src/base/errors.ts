// Errors are recognized by name, not with instanceof, because two copies of this package may be loaded.

/** A cause in the `details` of a Status: why the API server rejected a request. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The `Status` in the API server's response to a failed request. */
export interface ApiStatus {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
}

/** An error response of the API server. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status code. */
  readonly code: number;
  /** The machine-readable reason of the Status, such as `NotFound`. Empty if the response has none. */
  readonly reason: string;
  readonly causes: readonly StatusCause[];
  /** How long the server asks the client to wait (`Retry-After`); undefined if it does not. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, status: ApiStatus, retryAfterMs?: number) {
    const stated = status.details?.causes ?? [];
    const causes = stated.map(withoutObject);
    let text = status.message ?? "no message";
    for (const [index, { message }] of stated.entries())
      if (message) text = text.replace(message, () => causes[index]!.message!);
    super(`${code} ${status.reason ?? ""}: ${text}`.replace(" :", ":"));
    this.code = code;
    this.reason = status.reason ?? "";
    this.causes = causes;
    this.retryAfterMs = retryAfterMs;
  }
}

// The value that the API server quotes between the type of a field error and its detail: an object as JSON or as a Go struct, or a scalar.
const OBJECT_VALUE = /^((?:Invalid|Duplicate|Unsupported|Too many)[^:]*): (?:&|[\w.*[\]]*)?[{[].*[}\]](?=:|$)/s;
const SCALAR_VALUE = /^(Invalid value): (?:"(?:[^"\\]|\\.)*"|[\w.+-]+): /;
// For Pods, the message contains a line-by-line diff of the old and new spec.
const COMPARISON = /\n@@ -\d[^]*$/;

// Quoted objects can contain secrets, such as values of environment variables, and are too long to read.
function withoutObject(cause: StatusCause): StatusCause {
  if (cause.message === undefined) return cause;
  const message = cause.message.replace(COMPARISON, "").replace(OBJECT_VALUE, "$1");
  return { ...cause, message: IMMUTABLE.test(detailOf(message)) ? message.replace(SCALAR_VALUE, "$1: ") : message };
}

function detailOf(message: string): string {
  return message.replace(SCALAR_VALUE, "");
}

// Covers the messages of kube-apiserver 1.36 and those that most validation rules of custom resources use.
const IMMUTABLE =
  /\bimmutable\b|\b(?:may|can|must|should)(?: ?not|n't) (?:be )?(?:change|modif|update|alter)|\bupdates to .+ (?:is|are) forbidden/i;

/** Returns whether the API server rejected a value because its field is immutable. */
export function isAboutImmutable({ message = "" }: StatusCause): boolean {
  return IMMUTABLE.test(detailOf(message));
}

/** Returns whether the API server rejected a write because a field of the object is immutable. */
export function isImmutableError(error: unknown): error is ApiError {
  return isApiError(error, 422) && error.causes.some(isAboutImmutable);
}

/** A request without a response: the server cannot be reached, or the connection was lost. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  /** Whether the request may have reached the API server, which may have executed it. */
  readonly wasSent: boolean;
  /** Whether the request must not be retried, because a response arrived that exceeds a limit of the client. */
  readonly isFinal: boolean;

  constructor(
    message: string,
    { wasSent = true, isFinal = false, ...options }: ErrorOptions & { wasSent?: boolean; isFinal?: boolean } = {},
  ) {
    super(message, options);
    this.wasSent = wasSent;
    this.isFinal = isFinal;
  }
}

/** A write that was not sent because this operator is not the leader: the leader may be writing. */
export class LeadershipError extends Error {
  override readonly name = "LeadershipError";
}

/** Throw it in a reconciler or dependent if a retry cannot succeed until something changes. The reconcile is not retried. */
export class TerminalError extends Error {
  override readonly name = "TerminalError";
}

/** Throw it in a reconciler or dependent to set the time of the next attempt. Does not count as a failed attempt. */
export class RetryAfterError extends Error {
  override readonly name = "RetryAfterError";
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Thrown if a write is blocked by something that another client or a user has to remove; see isMendedElsewhere(). */
export class BlockedError extends Error {
  override readonly name = "BlockedError";
}

/**
 * Returns whether an error can only be resolved by another client or a user, and no watched event reports that: a blocked write, a namespace that
 * does not exist, or one that is terminating. Such errors are retried at least once a minute.
 */
export function isMendedElsewhere(error: unknown): boolean {
  if (findError(error, "BlockedError") !== undefined || isNamespaceTerminating(error)) return true;
  const answer = findError<ApiError>(error, "ApiError");
  return answer !== undefined && isAbsent(answer) && /\bnamespaces "[^"]*" not found/.test(answer.message);
}

/**
 * Returns whether the API server rejected an object because its namespace is terminating. This is final: a terminating namespace cannot be restored.
 */
export function isNamespaceTerminating(error: unknown): boolean {
  const answer = findError<ApiError>(error, "ApiError");
  return answer?.code === 403 && answer.causes.some(({ reason }) => reason === "NamespaceTerminating");
}

/**
 * Returns whether the API server responded that the object does not exist. A 404 for a kind that is not served does not count: objects of it may
 * exist.
 */
export function isAbsent(error: unknown): error is ApiError {
  return isApiError(error, 404) && error.reason === "NotFound";
}

/** Returns whether an error is an error response of the API server, with this HTTP status code if one is given. */
export function isApiError(error: unknown, code?: number): error is ApiError {
  if (!(error instanceof Error) || error.name !== "ApiError") return false;
  return code === undefined || (error as ApiError).code === code;
}

/** Returns the first error with this name among an error, its causes and, for an AggregateError, its parts. */
export function findError<Found extends Error>(error: unknown, name: Found["name"]): Found | undefined {
  return firstIn(error, (each) => (each.name === name ? (each as Found) : undefined));
}

/** Returns the individual errors of an AggregateError, at any depth. Any other error is returned as the only element. */
export function flattenErrors(error: unknown): readonly unknown[] {
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  const parts = all.flatMap((part) => (part === error ? [] : flattenErrors(part)));
  return parts.length === 0 ? [error] : parts;
}

// The stack traces of these errors point into the runtime and do not help the user.
const EXPECTED = /^(Api|Blocked|Connection|Leadership|RetryAfter|Terminal|Timeout|Abort)Error$/;

/** Returns the stack trace of the first unexpected error, usually from user code: not an API error, and not one that controls retries. */
export function stackOf(error: unknown): string | undefined {
  return firstIn(error, (each) => (partsOf(each).length === 0 ? each.stack : undefined), EXPECTED);
}

/**
 * Returns the first result of `read` for an error, its parts and its causes, depth first. Errors with skipped names are left out together with their
 * parts and causes.
 */
function firstIn<Result>(
  error: unknown,
  read: (error: Error) => Result | undefined,
  skipped?: RegExp,
): Result | undefined {
  // User code may throw an error that is its own cause.
  const seen = new Set<unknown>();
  const find = (each: unknown): Result | undefined => {
    if (!(each instanceof Error) || seen.has(each) || skipped?.test(each.name) === true) return undefined;
    seen.add(each);
    let found = read(each);
    for (const part of partsOf(each)) found ??= find(part);
    return found;
  };
  try {
    return find(error);
  } catch {
    // Its properties may throw, too.
    return undefined;
  }
}

function partsOf(error: Error): unknown[] {
  const parts = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return [...parts, error.cause].filter((part) => part !== undefined);
}
