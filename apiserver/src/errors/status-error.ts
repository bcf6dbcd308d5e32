// Every failure that a resource endpoint answers. The texts are those of Kubernetes 1.36: clients and people match on them.
import { type FieldError, fieldErrorPath, fieldErrorText } from "./field-error.js";
import { quote } from "./go-format.js";

/** One of several reasons for a failure. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** What a failure is about; `kind` holds the plural resource, except in Invalid, where it holds the kind. */
export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** The answer to a request that does not answer an object. */
export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: object;
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code: number;
}

/** A failure to be answered as its Status; thrown anywhere in the core, written by the HTTP edge. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor(status: Status) {
    super(status.message ?? status.reason ?? `status ${status.code}`);
    this.status = status;
  }
}

/** An object by the plural of its type; `group` is "" for the core group. */
export interface ResourceRef {
  resource: string;
  group: string;
  name: string;
}

/** An object by its kind; `group` is "" for the core group. */
export interface KindRef {
  kind: string;
  group: string;
  name: string;
}

/** What a failure is made of besides its fixed members. */
export interface Failure {
  code: number;
  reason?: string;
  message: string;
  details?: StatusDetails;
}

/** Builds a failure that has no constructor of its own. */
export function statusError({ code, reason, message, details }: Failure): StatusError {
  return new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  });
}

/** 404: the object does not exist. */
export function notFound(ref: ResourceRef): StatusError {
  return failureOn(ref, { code: 404, reason: "NotFound", message: `${named(ref)} not found` });
}

/** 404: the path names no resource of a served group. */
export function unknownResource(): StatusError {
  const message = "the server could not find the requested resource";
  return statusError({ code: 404, reason: "NotFound", message, details: {} });
}

/** 409: an object of this name exists, or is still being deleted. */
export function alreadyExists(ref: ResourceRef, options: { isTerminating?: boolean } = {}): StatusError {
  const prefix = options.isTerminating === true ? "object is being deleted: " : "";
  return failureOn(ref, { code: 409, reason: "AlreadyExists", message: `${prefix}${named(ref)} already exists` });
}

/** 409: no free name was found for a generateName. */
export function generatedNamesTaken(ref: ResourceRef): StatusError {
  const message = `${named(ref)} already exists, the server was not able to generate a unique name for the object`;
  return failureOn(ref, { code: 409, reason: "AlreadyExists", message }, { retryAfterSeconds: 1 });
}

/** 409: the write cannot be done on the object as it is now; `detail` says why. */
export function conflict(ref: ResourceRef, detail: string): StatusError {
  const message = `Operation cannot be fulfilled on ${named(ref)}: ${detail}`;
  return failureOn(ref, { code: 409, reason: "Conflict", message });
}

/** 409: the request's resourceVersion is not the object's. */
export function staleResourceVersion(ref: ResourceRef): StatusError {
  const detail = "the object has been modified; please apply your changes to the latest version and try again";
  return conflict(ref, detail);
}

/** What a write demands and what the object has. */
export interface PreconditionMismatch {
  field: "UID" | "ResourceVersion";
  given: string;
  live: string;
}

/** 409: a PUT or a Binding means another object; the key is that below /registry, e.g. `/registry/configmaps/default/a`. */
export function storagePreconditionFailed(
  ref: ResourceRef,
  { key, field, given, live }: PreconditionMismatch & { key: string },
): StatusError {
  const storage = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0`;
  return conflict(ref, `${storage}, AdditionalErrorMsg: ${mismatchText({ field, given, live })}`);
}

/** Says of which mismatch the store, or who asks before it, tells. */
export function mismatchText({ field, given, live }: PreconditionMismatch): string {
  return `Precondition failed: ${field} in precondition: ${given}, ${field} in object meta: ${live}`;
}

/** 409: an apply that would create the object names a uid. */
export function uidOfMissingObject(ref: ResourceRef, uid: string): StatusError {
  const detail = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
  return conflict(ref, detail);
}

/** 409: a delete's precondition does not hold; text and details name the kind, not the resource. */
export function preconditionFailed({ kind, group, name }: KindRef, mismatch: PreconditionMismatch): StatusError {
  const { field, given, live } = mismatch;
  const since = field === "UID" ? "deleted and then recreated" : "modified";
  const detail = `the ${field} in the precondition (${given}) does not match the ${field} in record (${live})`;
  return conflict({ resource: kind, group, name }, `${detail}. The object might have been ${since}`);
}

/** 409: an apply conflicts with the fields of other managers. */
export function applyConflict(message: string, causes: StatusCause[]): StatusError {
  return statusError({ code: 409, reason: "Conflict", message, details: { causes } });
}

/** 422: fields are wrong. Equal texts are printed once, all are listed as causes. */
export function invalid({ kind, group, name }: KindRef, errors: readonly FieldError[]): StatusError {
  const texts = [...new Set(errors.map(fieldErrorText))];
  const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const causes = errors.map((error) => ({
    reason: error.reason,
    message: error.message,
    field: fieldErrorPath(error),
  }));
  const message = `${qualified(kind, group)} ${quote(name)} is invalid: ${text}`;
  return failureOn({ resource: kind, group, name }, { code: 422, reason: "Invalid", message }, { causes });
}

/** 422: a JSON patch that does not apply. */
export function unappliablePatch(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return statusError({ code: 422, reason: "Invalid", message, details: {} });
}

/** 400: the request makes no sense. */
export function badRequest(message: string): StatusError {
  return statusError({ code: 400, reason: "BadRequest", message });
}

/** 401: no or unknown credentials. */
export function unauthorized(): StatusError {
  return statusError({ code: 401, reason: "Unauthorized", message: "Unauthorized" });
}

/** 403: the request is refused; `name` "" on requests for a collection. */
export function forbidden(ref: ResourceRef, detail: string, causes?: StatusCause[]): StatusError {
  const message = `${ref.name === "" ? qualified(ref.resource, ref.group) : named(ref)} is forbidden: ${detail}`;
  return failureOn(ref, { code: 403, reason: "Forbidden", message }, causes === undefined ? {} : { causes });
}

/** 403: nothing new may be created in a namespace that is being deleted. */
export function namespaceTerminating(ref: ResourceRef, namespace: string): StatusError {
  const detail = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  return forbidden(ref, detail, [{ reason: "NamespaceTerminating", message, field: "metadata.namespace" }]);
}

/** 405: the type does not offer the verb; without a resource the text of built-in types. */
export function methodNotAllowed(on?: { verb: string; resource: string; group: string }): StatusError {
  const reason = "MethodNotAllowed";
  if (on === undefined) {
    const message = "the server does not allow this method on the requested resource";
    return statusError({ code: 405, reason, message, details: {} });
  }
  const { verb, resource, group } = on;
  const message = `${verb} is not supported on resources of kind ${quote(qualified(resource, group))}`;
  return failureOn({ resource, group, name: "" }, { code: 405, reason, message });
}

/** 406: no representation that the client accepts; `accepted` lists what there is. */
export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(", ")}`;
  return statusError({ code: 406, reason: "NotAcceptable", message });
}

/** 406 in the words of the router that serves built-in types. */
export function notAcceptableBuiltin(accepted: readonly string[]): StatusError {
  const message = `406: Not Acceptable\n\nAvailable representations: ${accepted.join(", ")}`;
  return statusError({ code: 406, reason: "NotAcceptable", message, details: {} });
}

/** 410: the requested resourceVersion or continue token is too old. */
export function expired(message: string): StatusError {
  return statusError({ code: 410, reason: "Expired", message });
}

/** 413: the body is larger than `limit` bytes. */
export function tooLarge(limit: number): StatusError {
  const message = `Request entity too large: limit is ${limit}`;
  return statusError({ code: 413, reason: "RequestEntityTooLarge", message });
}

/** 415: the body is in none of the accepted formats. */
export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const list = accepted.join(", ");
  const message = `the body of the request was in an unknown format - accepted media types include: ${list}`;
  return statusError({ code: 415, reason: "UnsupportedMediaType", message });
}

/** 415 of a PATCH, in the words of the router that serves built-in types. */
export function unsupportedMediaTypeBuiltin(): StatusError {
  const message = "415: Unsupported Media Type";
  return statusError({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

/** 500: an unexpected failure that Kubernetes reports with a reason. */
export function internalError(message: string): StatusError {
  return statusError({
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
}

/** 500 without a reason: what Kubernetes makes of an error that is no Status. */
export function plainError(message: string): StatusError {
  return statusError({ code: 500, message });
}

/** 504: the request asks for a resourceVersion that the server has not reached. */
export function tooLargeResourceVersion(requested: string, current: string): StatusError {
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  return statusError({
    code: 504,
    reason: "Timeout",
    message: `Timeout: Too large resource version: ${requested}, current: ${current}`,
    details: { causes, retryAfterSeconds: 1 },
  });
}

// The codes of the reasons that a policy may give.
const CODES: Readonly<Record<string, number>> = { Unauthorized: 401, Forbidden: 403, RequestEntityTooLarge: 413 };

/** A policy refuses a write, for a reason of its own. */
export function denied(ref: ResourceRef, { reason, message }: { reason: string; message: string }): StatusError {
  const failure = { code: CODES[reason] ?? 422, reason, message: `${named(ref)} is forbidden: ${message}` };
  return failureOn(ref, failure, { causes: [{ message }] });
}

/** A failure on an object, which it names in its details. */
export function failureOn(ref: ResourceRef, failure: Omit<Failure, "details">, more: StatusDetails = {}): StatusError {
  const details: StatusDetails = {
    ...(ref.name === "" ? {} : { name: ref.name }),
    ...(ref.group === "" ? {} : { group: ref.group }),
    ...(ref.resource === "" ? {} : { kind: ref.resource }),
    ...more,
  };
  return statusError({ ...failure, details });
}

function named({ resource, group, name }: ResourceRef): string {
  return `${qualified(resource, group)} ${quote(name)}`;
}

function qualified(name: string, group: string): string {
  return group === "" ? name : `${name}.${group}`;
}

/** What objects are written in, in the order in which a real server lists them. */
export const MEDIA_TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
