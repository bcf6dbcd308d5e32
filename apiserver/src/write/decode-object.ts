import { schemaNameOf } from "../builtin/schemas.js";
import { type DiscoveredType, discoveredTypes } from "../builtin/served-type.js";
import { isDecoded } from "../builtin/versions.js";
import { NumberRangeError, type ParsedBody, bodyStart } from "../decode/body.js";
import { BodySyntaxError, unregisteredKind } from "../errors/decode-errors.js";
import { goTypeOf, quote } from "../errors/go-format.js";
import { badRequest } from "../errors/status-error.js";
import { type JsonObject, isObject, stringAt } from "../json.js";
import { apiVersionOf } from "../object/object-meta.js";
import type { ServedResource } from "../registry/registry.js";
import { type WriteContext, tellProblems } from "./write-context.js";

const OF_EVERY_VERSION = [
  "Status",
  "DeleteOptions",
  "CreateOptions",
  "UpdateOptions",
  "PatchOptions",
  "GetOptions",
  "ListOptions",
];

/** Decodes the body of a request into an object of the requested type. */
export function decodeObject(context: WriteContext, raw: Buffer, parse: () => ParsedBody): JsonObject {
  const { resource } = context;
  const { value, integers, duplicates, duplicateErrors } = parsedOrThrow(resource, raw, parse);
  if (integers !== undefined) context.integers.push(integers);
  // Go decodes null into an empty object.
  const given = value === null && resource.type.custom === undefined ? {} : value;
  const object = checkedObject(resource, raw, given);
  const unknown = resource.rules.decode(object).map((path) => `unknown field ${quote(path)}`);
  const told = { asWarnings: () => [...duplicates(), ...unknown], asErrors: () => [...duplicateErrors(), ...unknown] };
  const errors = tellProblems(context, told);
  if (errors.length > 0) throw strictFailure(resource, errors);
  return object;
}

function parsedOrThrow({ type }: ServedResource, raw: Buffer, parse: () => ParsedBody): ParsedBody {
  try {
    return parse();
  } catch (error) {
    if (error instanceof NumberRangeError)
      throw badRequest(
        `${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${error.message}`,
      );
    if (!(error instanceof BodySyntaxError)) throw error;
    const step = error.format === "json" ? "couldn't get version/kind; json parse error: " : "";
    throw unrecognized(type.kind, raw, `${step}${error.message}`);
  }
}

function checkedObject(resource: ServedResource, raw: Buffer, value: unknown): JsonObject {
  const { type } = resource;
  if (value === null) checkPresence(type.kind, raw, { kind: "" });
  if (!isObject(value)) {
    throw unrecognized(type.kind, raw, `couldn't get version/kind; json parse error: ${typeMetaMisfit(value)}`);
  }
  checkTypeMeta(resource, raw, value);
  const metadata = value["metadata"] ?? {};
  if (!isObject(metadata)) {
    const place = type.custom === undefined ? `struct field ${type.kind}.metadata` : "value";
    const error = `json: cannot unmarshal ${goTypeOf(metadata)} into Go ${place} of type v1.ObjectMeta`;
    throw badRequest(`${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${error}`);
  }
  value["metadata"] = metadata;
  return value;
}

/** Returns the decoding error of a body that is not an object, and hence has no apiVersion and kind. */
export function typeMetaMisfit(value: unknown): string {
  const members = 'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\""';
  return `json: cannot unmarshal ${goTypeOf(value)} into Go value of type struct { ${members} }`;
}

function unrecognized(kind: string, raw: Buffer, detail: string): Error {
  return badRequest(`the object provided is unrecognized (must be of type ${kind}): ${detail} (${bodyStart(raw)})`);
}

function checkTypeMeta({ type }: ServedResource, raw: Buffer, object: JsonObject): void {
  const kind = stringAt(object, "kind") ?? "";
  const apiVersion = stringAt(object, "apiVersion") ?? "";
  checkTypeMetaTypes(type, raw, object);
  if (type.custom !== undefined) checkPresence(type.kind, raw, { kind });
  else if (apiVersion.split("/").length > 2)
    throw unrecognized(type.kind, raw, `unexpected GroupVersion string: ${apiVersion}`);
  const expected = apiVersionOf(type);
  if (type.custom === undefined && kind !== "" && kind !== type.kind) {
    const given = apiVersion === "" ? expected : apiVersion;
    throw isKnownKind(kind, given) ? unknownConversion(type, { kind, apiVersion }) : unhandled(type, kind, given);
  }
  if (apiVersion === expected || (apiVersion === "" && type.custom === undefined)) return;
  if (type.custom !== undefined || isKnownKind(type.kind, apiVersion))
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  throw unhandled(type, type.kind, apiVersion);
}

function unhandled(type: { kind: string }, kind: string, apiVersion: string): Error {
  const detail = unregisteredKind(kind, apiVersion);
  return badRequest(
    `${kind} in version ${quote(shortVersion(apiVersion))} cannot be handled as a ${type.kind}: ${detail}`,
  );
}

function checkTypeMetaTypes(type: { kind: string }, raw: Buffer, object: JsonObject): void {
  const [field, value] = ["kind", "apiVersion"]
    .map((name) => [name, object[name]] as const)
    .find(([, each]) => each !== undefined && each !== null && typeof each !== "string") ?? [undefined];
  if (field === undefined) return;
  const problem = `json: cannot unmarshal ${goTypeOf(value)} into Go struct field .${field} of type string`;
  throw unrecognized(type.kind, raw, `couldn't get version/kind; json parse error: ${problem}`);
}

function checkPresence(kind: string, raw: Buffer, given: { kind: string }): void {
  if (given.kind !== "") return;
  throw unrecognized(kind, raw, `Object 'Kind' is missing in '${raw.toString()}'`);
}

/** Reports whether objects of a kind can be decoded, even if the kind is not stored. */
export function isKnownKind(kind: string, apiVersion: string): boolean {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const isOfVersion = (one: DiscoveredType) => apiVersionOf(one) === apiVersion || isDecoded(one, { group, version });
  return OF_EVERY_VERSION.includes(kind) || discoveredTypes().some((one) => one.kind === kind && isOfVersion(one));
}

/** Builds the error for an object of another kind than the requested one. */
export function unknownConversion(
  type: { group: string; version: string; kind: string },
  given: { kind: string; apiVersion: string },
): Error {
  const version = given.apiVersion === "" ? type.version : given.apiVersion;
  const text = isRegistered(given.kind, version)
    ? unknownConversionText(type, { ...given, apiVersion: version })
    : unregisteredKind(given.kind, version);
  return badRequest(
    `${given.kind} in version ${quote(shortVersion(version))} cannot be handled as a ${type.kind}: ${text}`,
  );
}

// Lists, options, and other kinds that are not stored are in the schemas.
function isRegistered(kind: string, apiVersion: string): boolean {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const isOfKind = schemaNameOf({ group, version, kind }) !== undefined;
  return isOfKind || kind === "List" || isKnownKind(kind.replace(/List$/, ""), apiVersion);
}

function shortVersion(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf("/") + 1);
}

/** Formats the error of kube-apiserver for an object of another kind. */
export function unknownConversionText(
  type: { group: string; kind: string },
  given: { kind: string; apiVersion: string },
): string {
  const short = OF_EVERY_VERSION.includes(given.kind) ? "v1" : shortVersion(given.apiVersion);
  const internal = type.group === "" ? "core" : (type.group.split(".")[0] as string);
  return `converting (${short}.${given.kind}) to (${internal}.${type.kind}): unknown conversion`;
}

function strictFailure({ type }: ServedResource, problems: readonly string[]): Error {
  const text = `strict decoding error: ${problems.join(", ")}`;
  return badRequest(`${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${text}`);
}
