// Errors are recognised by name, never by instanceof: two copies of this package may be loaded.

/** One cause that the API server gives for rejecting a request. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The `Status` that the API server answers a failed request with. */
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

/** A request that the API server answered with an error. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status code. */
  readonly code: number;
  /** Kubernetes' machine-readable reason, such as `NotFound`; empty if the answer had none. */
  readonly reason: string;
  readonly causes: readonly StatusCause[];
  /** How long the server asks to wait, if it does. */
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

// The value that the API server quotes between the kind of a problem and its text: an object as JSON or as a Go struct, or a scalar.
const OBJECT_VALUE = /^((?:Invalid|Duplicate|Unsupported|Too many)[^:]*): (?:&|[\w.*[\]]*)?[{[].*[}\]](?=:|$)/s;
const SCALAR_VALUE = /^(Invalid value): (?:"(?:[^"\\]|\\.)*"|[\w.+-]+): /;
// A Pod is compared with what it was, line by line.
const COMPARISON = /\n@@ -\d[^]*$/;

// Objects of a message hold the values of environment variables, for example, and are too long to read.
function withoutObject(cause: StatusCause): StatusCause {
  if (cause.message === undefined) return cause;
  const message = cause.message.replace(COMPARISON, "").replace(OBJECT_VALUE, "$1");
  return { ...cause, message: IMMUTABLE.test(detailOf(message)) ? message.replace(SCALAR_VALUE, "$1: ") : message };
}

function detailOf(message: string): string {
  return message.replace(SCALAR_VALUE, "");
}

// The texts of kube-apiserver 1.36, and those that most rules of custom resources use.
const IMMUTABLE =
  /\bimmutable\b|\b(?:may|can|must|should)(?: ?not|n't) (?:be )?(?:change|modif|update|alter)|\bupdates to .+ (?:is|are) forbidden/i;

/** Tells whether the API server rejects a value because its field is immutable. */
export function isAboutImmutable({ message = "" }: StatusCause): boolean {
  return IMMUTABLE.test(detailOf(message));
}

/** Tells whether the API server rejected a write because a field of the object is immutable. */
export function isImmutableError(error: unknown): error is ApiError {
  return isApiError(error, 422) && error.causes.some(isAboutImmutable);
}

/** A request that got no answer: the server cannot be reached, or the connection broke. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  /** Whether the request may have reached the API server, which may then have executed it. */
  readonly wasSent: boolean;
  /** Whether the request is not repeated, as there was an answer, of which the client does not accept more. */
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

/** A write that was not sent, because this operator is not the leader: the leader may be writing. */
export class LeadershipError extends Error {
  override readonly name = "LeadershipError";
}

/** Thrown by a reconciler or a dependent to say that trying again is useless until something changes. */
export class TerminalError extends Error {
  override readonly name = "TerminalError";
}

/** Thrown by a reconciler or a dependent to say when to try again; it uses up no attempt. */
export class RetryAfterError extends Error {
  override readonly name = "RetryAfterError";
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Thrown when something is in the way of a write that another client or a person has to remove: `isMendedElsewhere` holds. */
export class BlockedError extends Error {
  override readonly name = "BlockedError";
}

/**
 * Tells whether an error goes away when another client, or a person, acts, of which no event tells: what is in the way of a write, a namespace
 * that does not exist, or one that is being deleted. Such errors are retried every minute at least.
 */
export function isMendedElsewhere(error: unknown): boolean {
  if (findError(error, "BlockedError") !== undefined || isNamespaceTerminating(error)) return true;
  const answer = findError<ApiError>(error, "ApiError");
  return answer !== undefined && isAbsent(answer) && /\bnamespaces "[^"]*" not found/.test(answer.message);
}

/** Tells whether the API server rejected an object because its namespace is being deleted. That is final: the namespace only goes. */
export function isNamespaceTerminating(error: unknown): boolean {
  const answer = findError<ApiError>(error, "ApiError");
  return answer?.code === 403 && answer.causes.some(({ reason }) => reason === "NamespaceTerminating");
}

/** Tells whether the API server answered that there is no such object. A kind that it does not serve may have objects all the same. */
export function isAbsent(error: unknown): error is ApiError {
  return isApiError(error, 404) && error.reason === "NotFound";
}

/** Tells whether the API server answered with this HTTP status code. */
export function isApiError(error: unknown, code?: number): error is ApiError {
  if (!(error instanceof Error) || error.name !== "ApiError") return false;
  return code === undefined || (error as ApiError).code === code;
}

/** Finds the first error of this name in an error, its causes and, for an aggregate, its parts. */
export function findError<Found extends Error>(error: unknown, name: Found["name"]): Found | undefined {
  return firstIn(error, (each) => (each.name === name ? (each as Found) : undefined));
}

/** Returns the errors that an aggregate consists of, at any depth; any other error is the only one. */
export function flattenErrors(error: unknown): readonly unknown[] {
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  const parts = all.flatMap((part) => (part === error ? [] : flattenErrors(part)));
  return parts.length === 0 ? [error] : parts;
}

// The stack of these errors leads into the runtime and tells nothing.
const EXPECTED = /^(Api|Blocked|Connection|Leadership|RetryAfter|Terminal|Timeout|Abort)Error$/;

/** Returns the stack of the first error that none of the API server's caused, nor one that says how to go on: mostly of the user's code. */
export function stackOf(error: unknown): string | undefined {
  return firstIn(error, (each) => (partsOf(each).length === 0 ? each.stack : undefined), EXPECTED);
}

/** Returns the first result for an error, and then for its parts and causes; errors of the names to skip are passed over with theirs. */
function firstIn<Result>(
  error: unknown,
  read: (error: Error) => Result | undefined,
  skipped?: RegExp,
): Result | undefined {
  // What the user throws may be its own cause.
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
    // Nor need its members be readable.
    return undefined;
  }
}

function partsOf(error: Error): unknown[] {
  const parts = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return [...parts, error.cause].filter((part) => part !== undefined);
}
