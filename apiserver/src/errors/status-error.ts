// The errors of all endpoints. Their messages are those of Kubernetes 1.36, because clients and people match on them.
import { type FieldError, fieldErrorPath, fieldErrorText } from "./field-error.js";
import { quote } from "./go-format.js";

/** A cause of an error. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** Identifies the object of an error. `kind` is the plural resource, except for the reason Invalid, where it is the kind. */
export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** A metav1.Status, the response of a request that does not return an object. */
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

/** An error with the Status to respond with. It may be thrown anywhere; the HTTP layer renders it. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor(status: Status) {
    super(status.message ?? status.reason ?? `status ${status.code}`);
    this.status = status;
  }
}

/** An object, identified by its resource; `group` is "" for the core group. */
export interface ResourceRef {
  resource: string;
  group: string;
  name: string;
}

/** An object, identified by its kind; `group` is "" for the core group. */
export interface KindRef {
  kind: string;
  group: string;
  name: string;
}

/** The variable fields of a failure Status. */
export interface Failure {
  code: number;
  reason?: string;
  message: string;
  details?: StatusDetails;
}

/** Builds an error that has no constructor of its own. */
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

/** 404: the resource of the path does not exist in a served group. */
export function unknownResource(): StatusError {
  const message = "the server could not find the requested resource";
  return statusError({ code: 404, reason: "NotFound", message, details: {} });
}

/** 409: an object with this name already exists or is still terminating. */
export function alreadyExists(ref: ResourceRef, options: { isTerminating?: boolean } = {}): StatusError {
  const prefix = options.isTerminating === true ? "object is being deleted: " : "";
  return failureOn(ref, { code: 409, reason: "AlreadyExists", message: `${prefix}${named(ref)} already exists` });
}

/** 409: no unused name was found for a generateName. */
export function generatedNamesTaken(ref: ResourceRef): StatusError {
  const message = `${named(ref)} already exists, the server was not able to generate a unique name for the object`;
  return failureOn(ref, { code: 409, reason: "AlreadyExists", message }, { retryAfterSeconds: 1 });
}

/** 409: the write conflicts with the current state of the object; `detail` is the reason. */
export function conflict(ref: ResourceRef, detail: string): StatusError {
  const message = `Operation cannot be fulfilled on ${named(ref)}: ${detail}`;
  return failureOn(ref, { code: 409, reason: "Conflict", message });
}

/** 409: the resourceVersion of the request is not that of the object. */
export function staleResourceVersion(ref: ResourceRef): StatusError {
  const detail = "the object has been modified; please apply your changes to the latest version and try again";
  return conflict(ref, detail);
}

/** A precondition of a write that does not match the object. */
export interface PreconditionMismatch {
  field: "UID" | "ResourceVersion";
  given: string;
  live: string;
}

/** 409: the uid or resourceVersion of a PUT or Binding does not match the object. `key` is the storage key, e.g. `/registry/configmaps/default/a`. */
export function storagePreconditionFailed(
  ref: ResourceRef,
  { key, field, given, live }: PreconditionMismatch & { key: string },
): StatusError {
  const storage = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0`;
  return conflict(ref, `${storage}, AdditionalErrorMsg: ${mismatchText({ field, given, live })}`);
}

/** Formats a failed precondition as the storage of kube-apiserver does. */
export function mismatchText({ field, given, live }: PreconditionMismatch): string {
  return `Precondition failed: ${field} in precondition: ${given}, ${field} in object meta: ${live}`;
}

/** 409: an apply that would create the object specifies a uid. */
export function uidOfMissingObject(ref: ResourceRef, uid: string): StatusError {
  const detail = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
  return conflict(ref, detail);
}

/** 409: a precondition of a delete does not match. The message and details contain the kind, not the resource. */
export function preconditionFailed({ kind, group, name }: KindRef, mismatch: PreconditionMismatch): StatusError {
  const { field, given, live } = mismatch;
  const since = field === "UID" ? "deleted and then recreated" : "modified";
  const detail = `the ${field} in the precondition (${given}) does not match the ${field} in record (${live})`;
  return conflict({ resource: kind, group, name }, `${detail}. The object might have been ${since}`);
}

/** 409: an apply conflicts with fields of other field managers. */
export function applyConflict(message: string, causes: StatusCause[]): StatusError {
  return statusError({ code: 409, reason: "Conflict", message, details: { causes } });
}

/** 422: fields are invalid. The message contains equal errors once, the causes contain all. */
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

/** 422: a JSON Patch cannot be applied. */
export function unappliablePatch(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return statusError({ code: 422, reason: "Invalid", message, details: {} });
}

/** 400: the request is malformed. */
export function badRequest(message: string): StatusError {
  return statusError({ code: 400, reason: "BadRequest", message });
}

/** 401: credentials are missing or invalid. */
export function unauthorized(): StatusError {
  return statusError({ code: 401, reason: "Unauthorized", message: "Unauthorized" });
}

/** 403: the request is forbidden. `name` is "" for a request on a collection. */
export function forbidden(ref: ResourceRef, detail: string, causes?: StatusCause[]): StatusError {
  const message = `${ref.name === "" ? qualified(ref.resource, ref.group) : named(ref)} is forbidden: ${detail}`;
  return failureOn(ref, { code: 403, reason: "Forbidden", message }, causes === undefined ? {} : { causes });
}

/** 403: no object can be created in a namespace that is terminating. */
export function namespaceTerminating(ref: ResourceRef, namespace: string): StatusError {
  const detail = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  return forbidden(ref, detail, [{ reason: "NamespaceTerminating", message, field: "metadata.namespace" }]);
}

/** 405: the type does not support the verb. Without a resource, the message is that for built-in types. */
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

/** 406: the client accepts none of the representations; `accepted` lists the available media types. */
export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(", ")}`;
  return statusError({ code: 406, reason: "NotAcceptable", message });
}

/** 406, with the message of the router for built-in types. */
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

/** 415: the body has none of the accepted media types. */
export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const list = accepted.join(", ");
  const message = `the body of the request was in an unknown format - accepted media types include: ${list}`;
  return statusError({ code: 415, reason: "UnsupportedMediaType", message });
}

/** 415 of a PATCH, with the message of the router for built-in types. */
export function unsupportedMediaTypeBuiltin(): StatusError {
  const message = "415: Unsupported Media Type";
  return statusError({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

/** 500: an unexpected error, with the reason InternalError. */
export function internalError(message: string): StatusError {
  return statusError({
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
}

/** 500 without a reason, as Kubernetes responds with for an error that is not a Status. */
export function plainError(message: string): StatusError {
  return statusError({ code: 500, message });
}

/** 504: the requested resourceVersion is newer than the current one. */
export function tooLargeResourceVersion(requested: string, current: string): StatusError {
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  return statusError({
    code: 504,
    reason: "Timeout",
    message: `Timeout: Too large resource version: ${requested}, current: ${current}`,
    details: { causes, retryAfterSeconds: 1 },
  });
}

// HTTP codes of the reasons that a validation of a policy may set.
const CODES: Readonly<Record<string, number>> = { Unauthorized: 401, Forbidden: 403, RequestEntityTooLarge: 413 };

/** An admission policy denies a write, with the reason of its validation. */
export function denied(ref: ResourceRef, { reason, message }: { reason: string; message: string }): StatusError {
  const failure = { code: CODES[reason] ?? 422, reason, message: `${named(ref)} is forbidden: ${message}` };
  return failureOn(ref, failure, { causes: [{ message }] });
}

/** An error whose details identify an object. */
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

/** The media types of objects, in the order in which kube-apiserver lists them. */
export const MEDIA_TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
