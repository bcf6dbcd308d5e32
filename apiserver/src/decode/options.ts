import { textTypeOf } from "../builtin/schema-node.js";
import { connectSchemas } from "../builtin/schemas.js";
import { unregisteredKind } from "../errors/decode-errors.js";
import {
  type FieldError,
  WHOLE,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  textNotSupportedError,
} from "../errors/field-error.js";
import { goTypeOf, quote } from "../errors/go-format.js";
import { badRequest, invalid, plainError } from "../errors/status-error.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../json.js";
import type { PropagationPolicy } from "../object/object-meta.js";
import { MAX_MANAGER_BYTES, UNPRINTABLE, checkManager } from "../validation/fields.js";

/** The options of a create, update, or patch. */
export interface WriteOptions {
  isDryRun: boolean;
  /** The given field manager; "" if there is none. */
  fieldManager: string;
  fieldValidation: "Ignore" | "Warn" | "Strict";
  force: boolean;
  /** The given options as an object, for admission; without `force`, which only an apply has. */
  given: JsonObject;
}

type OptionsKind = "CreateOptions" | "UpdateOptions" | "PatchOptions" | "DeleteOptions";

const FIELD_VALIDATIONS = ["Ignore", "Warn", "Strict"] as const;

/** Parses the query parameters of a write. `isApply` distinguishes a server-side apply from other patches. Throws 422 if they are invalid. */
export function parseWriteOptions(query: URLSearchParams, kind: OptionsKind, { isApply = false } = {}): WriteOptions {
  const fieldManager = query.get("fieldManager") ?? "";
  const fieldValidation = query.get("fieldValidation") ?? "";
  const force = query.get("force");
  const errors = [
    ...(isApply || force === null || kind !== "PatchOptions"
      ? []
      : [forbiddenError("force", "may not be specified for non-apply patch")]),
    ...(isApply && fieldManager === "" ? [requiredError("fieldManager", "is required for apply patch")] : []),
    ...checkManager("fieldManager", fieldManager),
    ...checkDryRun(query.getAll("dryRun")),
    ...checkFieldValidation(fieldValidation),
  ];
  if (errors.length > 0) throw invalidOptions(kind, errors);
  return {
    isDryRun: query.has("dryRun"),
    fieldManager,
    fieldValidation: FIELD_VALIDATIONS.find((known) => known === fieldValidation) ?? "Warn",
    force: isTrue(force),
    given: {
      ...(query.has("dryRun") ? { dryRun: query.getAll("dryRun") } : {}),
      ...(fieldManager === "" ? {} : { fieldManager }),
      ...(fieldValidation === "" ? {} : { fieldValidation }),
    },
  };
}

/** Validates `dryRun`: only `All` is supported. */
function checkDryRun(values: readonly string[]): FieldError[] {
  return values.every((value) => value === "All") ? [] : [notSupportedError("dryRun", [...values], ["All"])];
}

/** Builds the 422 error for invalid options. */
function invalidOptions(kind: string, errors: FieldError[]): Error {
  return invalid({ kind, group: "meta.k8s.io", name: "" }, errors);
}

function checkFieldValidation(value: string): FieldError[] {
  const isKnown = value === "" || (FIELD_VALIDATIONS as readonly string[]).includes(value);
  return isKnown ? [] : [textNotSupportedError("fieldValidation", value, ["", "Ignore", "Strict", "Warn"])];
}

/** Returns the field manager of a write other than an apply: the given one, or the program name in the User-Agent. */
export function fieldManagerOf(options: WriteOptions, userAgent: string | undefined): string {
  if (options.fieldManager !== "") return options.fieldManager;
  const program = (userAgent ?? "").split("/")[0] as string;
  const printable = program.replace(UNPRINTABLE, "");
  return Buffer.from(printable).subarray(0, MAX_MANAGER_BYTES).toString() || "unknown";
}

/** The options of a delete. */
export interface DeleteOptions {
  isDryRun: boolean;
  gracePeriodSeconds: number | undefined;
  propagation: PropagationPolicy | undefined;
  uid: string | undefined;
  resourceVersion: string | undefined;
  /** The given options as an object, for admission. */
  given: JsonObject;
}

const POLICIES = ["Foreground", "Background", "Orphan"] as const;

/** Parses the options of a delete from its body, or from the query parameters if it has none. */
export function parseDeleteOptions(body: JsonObject | undefined, query: URLSearchParams): DeleteOptions {
  const given = body === undefined ? optionsOfQuery(query) : checkedBody(body);
  if (body !== undefined) checkTypes(body);
  const dryRun = (arrayAt(given, "dryRun") ?? []).map(String);
  const policy = stringAt(given, "propagationPolicy");
  const orphans = memberOf(given, "orphanDependents");
  const errors = [...checkPolicy(policy, typeof orphans === "boolean"), ...checkDryRun(dryRun)];
  if (errors.length > 0) throw invalidOptions("DeleteOptions", errors);
  const preconditions = objectAt(given, "preconditions");
  const grace = memberOf(given, "gracePeriodSeconds");
  return {
    isDryRun: dryRun.length > 0,
    gracePeriodSeconds: typeof grace === "number" ? (grace < 0 ? 1 : grace) : undefined,
    propagation:
      typeof orphans === "boolean" ? (orphans ? "Orphan" : "Background") : POLICIES.find((known) => known === policy),
    uid: stringAt(preconditions, "uid"),
    resourceVersion: stringAt(preconditions, "resourceVersion"),
    given,
  };
}

function optionsOfQuery(query: URLSearchParams): JsonObject {
  const options: JsonObject = {};
  const grace = query.get("gracePeriodSeconds");
  if (grace !== null) options["gracePeriodSeconds"] = parseInteger(grace);
  const policy = query.get("propagationPolicy");
  if (policy !== null) options["propagationPolicy"] = policy;
  const orphans = query.get("orphanDependents");
  if (orphans !== null) options["orphanDependents"] = isTrue(orphans);
  if (query.has("dryRun")) options["dryRun"] = query.getAll("dryRun");
  const preconditions = ["uid", "resourceVersion"].flatMap((name) => [[name, query.get(name) ?? ""] as const]);
  const asked = preconditions.filter(([, value]) => value !== "");
  if (asked.length > 0) options["preconditions"] = Object.fromEntries(asked);
  return options;
}

function checkedBody(body: JsonObject): JsonObject {
  const kind = stringAt(body, "kind") ?? "DeleteOptions";
  if (kind === "DeleteOptions") return body;
  const version = stringAt(body, "apiVersion") ?? "meta.k8s.io/v1";
  throw badRequest(unregisteredKind(kind, version));
}

// Go types of the scalar fields, for decoding errors.
const GO_TYPES: Record<string, [json: "boolean" | "number" | "string", go: string]> = {
  gracePeriodSeconds: ["number", "int64"],
  orphanDependents: ["boolean", "bool"],
  propagationPolicy: ["string", "v1.DeletionPropagation"],
};

function checkTypes(body: JsonObject): void {
  for (const [field, value] of Object.entries(body)) {
    const [json, go] = (Object.hasOwn(GO_TYPES, field) ? GO_TYPES[field] : undefined) ?? [];
    if (json === undefined || value === null || typeof value === json) continue;
    throw badRequest(
      `json: cannot unmarshal ${goTypeOf(value)} into Go struct field DeleteOptions.${field} of type ${go}`,
    );
  }
}

function checkPolicy(policy: string | undefined, hasOrphans: boolean): FieldError[] {
  if (policy === undefined) return [];
  const isKnown = (POLICIES as readonly string[]).includes(policy);
  const detail = "orphanDependents and deletionPropagation cannot be both set";
  return [
    ...(hasOrphans ? [invalidError("propagationPolicy", policy, detail)] : []),
    ...(isKnown ? [] : [notSupportedError("propagationPolicy", policy, [...POLICIES, "nil"])]),
  ];
}

/** Parses a decimal int64 of a query parameter. Throws 400 if it is invalid. */
function parseInteger(text: string): number {
  const isInteger = /^[+-]?\d+$/.test(text);
  if (isInteger && BigInt.asIntN(64, BigInt(text)) === BigInt(text)) return Number(text);
  const problem = isInteger ? "value out of range" : "invalid syntax";
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${problem}`);
}

/** The selectors of a list or watch, not parsed yet. */
export interface Selectors {
  labelSelector: string;
  fieldSelector: string;
}

/** The options of a list or watch. */
export interface ListOptions extends Selectors {
  limit: number;
  continueToken: string;
  /** "" if it is not given. */
  resourceVersion: string;
  resourceVersionMatch: string;
  isWatch: boolean;
  allowsBookmarks: boolean;
  sendInitialEvents: boolean | undefined;
  timeoutSeconds: number | undefined;
}

/**
 * Parses and validates the query parameters of a list or watch.
 *
 * `checkSyntax` is called with the selectors before the other options are validated. The caller validates the resourceVersion, after the fields of
 * the selector and the continue token.
 */
export function parseListOptions(
  query: URLSearchParams,
  { isWatch, checkSyntax }: { isWatch: boolean; checkSyntax?: (selectors: Selectors) => void },
): ListOptions {
  const timeout = query.get("timeoutSeconds");
  const initial = query.get("sendInitialEvents");
  const options: ListOptions = {
    labelSelector: query.get("labelSelector") ?? "",
    fieldSelector: query.get("fieldSelector") ?? "",
    limit: parseInteger(query.get("limit") ?? "0"),
    continueToken: query.get("continue") ?? "",
    resourceVersion: query.get("resourceVersion") ?? "",
    resourceVersionMatch: query.get("resourceVersionMatch") ?? "",
    isWatch,
    allowsBookmarks: isTrue(query.get("allowWatchBookmarks")),
    sendInitialEvents: initial === null ? undefined : isTrue(initial),
    // 0 means that the server chooses the timeout.
    timeoutSeconds: parseInteger(timeout ?? "0") || undefined,
  };
  checkSyntax?.(options);
  const errors = isWatch ? checkWatch(options) : checkList(options);
  if (errors.length > 0) throw invalidOptions("ListOptions", errors);
  return options;
}

function checkWatch(options: ListOptions): FieldError[] {
  const { resourceVersion, sendInitialEvents: initial, resourceVersionMatch: match, continueToken } = options;
  const path = "resourceVersionMatch";
  // A watch without a resourceVersion gets initial events by default, so their rules apply.
  const isDefaulted = initial === undefined && match === "" && (resourceVersion === "" || resourceVersion === "0");
  const forContinue =
    continueToken !== "" && (match !== "" || isDefaulted)
      ? [forbiddenError(path, "resourceVersionMatch is forbidden when continue is provided")]
      : [];
  if (initial === undefined && match === "") return forContinue;
  if (initial !== undefined && match === "NotOlderThan") return forContinue;
  const detail =
    initial === undefined
      ? "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
      : "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
  const isUnknown = match !== "" && match !== "NotOlderThan";
  const unsupported = isUnknown ? [notSupportedError(path, match, ["NotOlderThan"])] : [];
  return [forbiddenError(path, detail), ...unsupported, ...forContinue];
}

function checkList(options: ListOptions): FieldError[] {
  const { resourceVersion, resourceVersionMatch: match, continueToken, sendInitialEvents } = options;
  const path = "resourceVersionMatch";
  const initial =
    sendInitialEvents === undefined
      ? []
      : [forbiddenError("sendInitialEvents", "sendInitialEvents is forbidden for list")];
  if (match === "") return initial;
  const errors = [...initial];
  if (continueToken !== "")
    errors.push(forbiddenError(path, "resourceVersionMatch is forbidden when continue is provided"));
  if (resourceVersion === "") {
    errors.push(forbiddenError(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
  }
  if (match !== "Exact" && match !== "NotOlderThan") {
    errors.push(notSupportedError(path, match, ["Exact", "NotOlderThan", ""]));
  } else if (match === "Exact" && resourceVersion === "0") {
    errors.push(forbiddenError(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return errors;
}

/** Throws if the resourceVersion is not an unsigned 64-bit integer. */
export function checkResourceVersion({ resourceVersion, isWatch }: ListOptions): void {
  if (resourceVersion === "" || isUint64(resourceVersion)) return;
  const text = invalidResourceVersionText(resourceVersion);
  // As in kube-apiserver, a watch fails with the bare message and without a reason.
  throw isWatch ? plainError(text) : badRequest(`invalid resource version: ${text}`);
}

/** Reports whether a string is an unsigned 64-bit integer. */
export function isUint64(text: string): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
}

/** Returns the message of Kubernetes for a resourceVersion that is not an unsigned 64-bit integer. */
export function invalidResourceVersionText(given: string): string {
  const quoted = JSON.stringify(given);
  const problem = /^\d+$/.test(given) ? "value out of range" : "invalid syntax";
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ${problem}`;
}

const NUMBERS = {
  sinceSeconds: { least: 1, rule: "must be greater than 0" },
  tailLines: { least: 0, rule: "must be greater than or equal to 0" },
  limitBytes: { least: 1, rule: "must be greater than 0" },
};

/** Throws 422 if the log options for the Pod `name` are invalid or conflict with each other. */
export function checkLogOptions(name: string, query: URLSearchParams): void {
  const [since, ...others] = Object.keys(NUMBERS).map((key) => {
    const text = query.get(key);
    return [key, text === null ? undefined : parseInteger(text)] as const;
  });
  checkTime(query.get("sinceTime") ?? "");
  const isTwice = since?.[1] !== undefined && query.has("sinceTime");
  const both = "at most one of `sinceTime` or `sinceSeconds` may be specified";
  const errors = [
    ...[...others, ...(isTwice || since === undefined ? [] : [since])].flatMap(checkNumber),
    ...(isTwice ? [forbiddenError(WHOLE, both)] : []),
    ...(query.has("stream") ? [forbiddenError("stream", "may not be specified")] : []),
  ];
  if (errors.length > 0) throw invalid({ kind: "PodLogOptions", group: "", name }, errors);
}

function checkTime(text: string): void {
  if (text === "" || text === "null") return;
  const time = textTypeOf("io.k8s.apimachinery.pkg.apis.meta.v1.Time")?.canonical(text);
  if (time !== undefined && "problem" in time) throw badRequest(time.problem);
}

function checkNumber([key, value]: readonly [string, number | undefined]): FieldError[] {
  const { least, rule } = NUMBERS[key as keyof typeof NUMBERS];
  return value === undefined || value >= least ? [] : [invalidError(key, value, rule)];
}

const LARGEST_PORT = 65_535;

/** Parses the options of exec, attach, or portforward, such as PodExecOptions, from query parameters. Options that are not given are omitted. */
export function parseConnectOptions(type: { kind: string; schemaName?: string }, query: URLSearchParams): JsonObject {
  const options: JsonObject = { kind: type.kind, apiVersion: "v1" };
  const {
    apiVersion: _version,
    kind: _kind,
    ...members
  } = objectAt(connectSchemas[type.schemaName ?? ""], "properties") ?? {};
  for (const [name, schema] of Object.entries(members)) {
    const texts = query.getAll(name);
    const value = texts.length === 0 || !isObject(schema) ? undefined : valueOf(schema, texts);
    if (value !== undefined && value !== false && value !== "") options[name] = value;
  }
  return options;
}

function valueOf(schema: JsonObject, texts: readonly string[]): JsonValue {
  const [first = ""] = texts;
  if (schema["type"] === "boolean") return isTrue(first);
  if (schema["type"] === "string") return first;
  const isNumeric = stringAt(objectAt(schema, "items"), "type") === "integer";
  return isNumeric ? texts.flatMap((text) => text.split(",").map(portOf)) : [...texts];
}

function portOf(text: string): number {
  const problem = !/^[0-9]+$/.test(text)
    ? "invalid syntax"
    : Number(text) > LARGEST_PORT
      ? "value out of range"
      : undefined;
  if (problem === undefined) return Number(text);
  throw badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${quote(text)}: ${problem}`);
}

/** Parses a boolean query parameter: any value is true except `0` and, ignoring case, `false` (apimachinery, Convert_Slice_string_To_bool). */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}
