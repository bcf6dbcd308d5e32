import { isTooDeep, applyMergePatch as mergeObjects } from "@gen-operator/schema";
import type { ServedType } from "../builtin/served-type.js";
import { NumberRangeError, mediaTypeOf, parseJson, parseYaml } from "../decode/body.js";
import { BodySyntaxError, unregisteredKind } from "../errors/decode-errors.js";
import { invalidError } from "../errors/field-error.js";
import { goFormat, goTypeOf, quote } from "../errors/go-format.js";
import {
  StatusError,
  badRequest,
  internalError,
  invalid,
  notFound,
  uidOfMissingObject,
  unappliablePatch,
  unsupportedMediaType,
  unsupportedMediaTypeBuiltin,
} from "../errors/status-error.js";
import type { LongIntegers, Steps } from "../exact-numbers.js";
import {
  type JsonObject,
  type JsonValue,
  canonicalJson,
  clone,
  compareText,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../json.js";
import { apiVersionOf, checkPathName, keyOf, parseApiVersion, resourceRefOf } from "../object/object-meta.js";
import { applyJsonPatch, unknownPatchMembers } from "../patch/json-patch.js";
import { applyStrategicMergePatch } from "../patch/strategic-merge-patch.js";
import { unknownConversionText } from "./decode-object.js";
import { trackApply } from "./managed-fields.js";
import {
  type WriteContext,
  type WriteResult,
  checkNameOfUrl,
  checkNamespace,
  checkPlace,
  nameUndeterminable,
  renewable,
  tellProblems,
} from "./write-context.js";
import { updateObject } from "./write-object.js";

/** Patch types other than apply. */
type PatchType = "json" | "merge" | "strategic";

const PATCH_TYPES: ReadonlyMap<string, PatchType | "apply"> = new Map([
  ["application/json-patch+json", "json"],
  ["application/merge-patch+json", "merge"],
  ["application/strategic-merge-patch+json", "strategic"],
  ["application/apply-patch+yaml", "apply"],
]);
const CUSTOM_MEDIA_TYPES = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/apply-patch+yaml",
];

/** Returns the patch type of a content type; throws if the type does not support it. */
export function patchTypeOf(type: { custom?: unknown }, contentType: string | undefined): PatchType | "apply" {
  const patchType = PATCH_TYPES.get(mediaTypeOf(contentType));
  if (type.custom !== undefined && (patchType === undefined || patchType === "strategic")) {
    throw unsupportedMediaType(CUSTOM_MEDIA_TYPES);
  }
  if (patchType === undefined) throw unsupportedMediaTypeBuiltin();
  return patchType;
}

/** A patch that is not an apply. */
interface PatchRequest {
  name: string;
  subresource: string;
  patchType: PatchType;
  body: Buffer;
}

export async function patchObject(context: WriteContext, request: PatchRequest): Promise<WriteResult> {
  const { resource, namespace } = context;
  const { name, subresource } = request;
  checkPathName(name);
  if (resource.store.get(keyOf({ namespace, name })) === undefined) throw notFound(resourceRefOf(resource.type, name));
  const parsed = renewable(parsePatch(request), () => parsePatch(request));
  return updateObject(context, {
    name,
    subresource,
    isPut: false,
    change(live) {
      const { value, integers, problems } = parsed();
      if (integers !== undefined) context.integers.push(integers);
      const patched = applyPatch(live, { ...request, value, schemaName: resource.type.schemaName ?? "" });
      return { object: decodePatched(context, { ...request, patched, problems }), isTracked: false };
    },
  });
}

/** Parses the body of a patch; `problems` are the errors of strict decoding. */
export function parsePatch({ patchType, body }: { patchType: PatchType; body: Buffer }): {
  value: JsonValue;
  /** 64-bit integers in the values of the patch, by their path in the object. */
  integers: LongIntegers | undefined;
  problems: string[];
} {
  try {
    const { value, integers, duplicates } = parseJson(body);
    if (patchType !== "json") return { value, integers, problems: duplicates() };
    const unknown = unknownPatchMembers(value).map((path) => `unknown field ${quote(path)}`);
    return {
      value,
      integers: integers?.placed((steps) => placeOf(value, steps)),
      problems: [...duplicates(), ...unknown].map((problem) => `json patch ${problem}`),
    };
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw badRequest(patchType === "strategic" ? error.message : `error decoding patch: ${error.message}`);
  }
}

/** Returns the path in the object of a part of a JSON patch. */
function placeOf(patch: JsonValue, [index, member, ...rest]: Steps): Steps | undefined {
  const operation = Array.isArray(patch) ? patch[Number(index)] : undefined;
  const pointer = isObject(operation) ? operation["path"] : undefined;
  if (member !== "value" || typeof pointer !== "string") return undefined;
  const steps = pointer.split("/").slice(1);
  return [...steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")), ...rest];
}

/** Applies a parsed patch to a copy of an object. */
export function applyPatch(
  live: JsonObject,
  patch: { patchType: PatchType; value: JsonValue; schemaName: string },
): JsonValue {
  // The patch functions share unchanged subtrees, but decoding and defaulting modify the object in place.
  const object = clone(live);
  if (patch.patchType === "json") return applyJsonPatch(object, patch.value);
  if (patch.patchType === "merge") return applyMergePatch(object, patch.value);
  return applyStrategicMergePatch(patch.schemaName, object, patch.value as JsonObject);
}

/** Applies a merge patch (RFC 7386) to a copy of `object`; throws a 400 if the patch is not an object. */
export function applyMergePatch(object: JsonObject, patch: unknown): JsonObject {
  if (patch === null) throw badRequest("Invalid JSON Patch");
  if (!isObject(patch)) {
    const target = "value of type map[string]interface {}";
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goTypeOf(patch)} into Go ${target}`);
  }
  return mergeObjects(object, patch);
}

function decodePatched(
  context: WriteContext,
  result: { name: string; subresource: string; patchType: PatchType; patched: JsonValue; problems: string[] },
): JsonObject {
  const { resource } = context;
  const { name, subresource, patchType, patched, problems } = result;
  if (!isObject(patched)) throw unfitPatch(patched, "json: cannot unmarshal into Go value");
  if (isTooDeep(patched)) throw unappliablePatch();
  // A strategic merge patch is applied to a Go value of a known type.
  const isTyped = patchType === "strategic" && resource.type.custom === undefined;
  // The kind is not checked in writes to the status of a custom resource.
  const isUntyped = resource.type.custom !== undefined && subresource === "status" && textOf(patched["kind"]) !== "";
  const isOfVersion = patched["apiVersion"] === apiVersionOf(resource.type);
  if (isTyped || (isUntyped && isOfVersion)) setTypeMeta(resource.type, patched);
  else checkTypeMeta(context, name, patched);
  const isStrict = context.fieldValidation === "Strict";
  // Decoding drops unknown fields, but the error message contains them.
  const given = isStrict ? (patchType === "strategic" ? goFormat(patched) : canonicalJson(patched)) : "";
  checkMetadata(context, patched);
  const unknown = decodeOrUnfit(context, patched).map((path) => `unknown field ${quote(path)}`);
  const errors = tellProblems(context, { asWarnings: () => [...problems, ...unknown] });
  if (errors.length > 0) throw unfitPatch(given, `strict decoding error: ${errors.join(", ")}`);
  checkPlace(context, name, patched);
  return patched;
}

// Custom resources are decoded without their metadata.
function checkMetadata({ resource }: WriteContext, patched: JsonObject): void {
  const metadata = patched["metadata"] ?? {};
  if (resource.type.custom === undefined || isObject(metadata)) return;
  const detail = `json: cannot unmarshal ${goTypeOf(metadata)} into Go value of type v1.ObjectMeta`;
  throw unfitPatch(canonicalJson(patched), detail);
}

function decodeOrUnfit({ resource }: WriteContext, patched: JsonObject): string[] {
  const result = decodingOf(resource, patched);
  if ("unknown" in result)
    return resource.type.custom === undefined ? result.unknown.sort(comparePaths) : result.unknown;
  // Kubernetes decodes the patched object from JSON with sorted keys, and reports the first invalid field in that order.
  const given = canonicalJson(patched);
  const sorted = decodingOf(resource, JSON.parse(given) as JsonObject);
  throw unfitPatch(given, "detail" in sorted ? sorted.detail : result.detail);
}

/** Compares paths in the order of JSON with sorted keys. */
export function comparePaths(one: string, other: string): number {
  const [steps, otherSteps] = [one, other].map((path) => path.split(/[.[]/)) as [string[], string[]];
  const index = steps.findIndex((step, at) => step !== otherSteps[at]);
  const [step = "", otherStep = ""] = [steps[index], otherSteps[index]];
  return step.endsWith("]") ? parseInt(step) - parseInt(otherStep) : compareText(step, otherStep);
}

function decodingOf(
  { rules }: WriteContext["resource"],
  object: JsonObject,
): { unknown: string[] } | { detail: string } {
  try {
    return { unknown: rules.decode(object) };
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 400) throw error;
    return { detail: /cannot be handled as a [^:]*: (.*)$/s.exec(error.message)?.[1] ?? error.message };
  }
}

function reportUnknown(context: WriteContext, patched: JsonObject, unknown: string[]): void {
  const errors = tellProblems(context, { asWarnings: () => unknown.map((key) => `unknown field ${quote(key)}`) });
  if (errors.length > 0) throw unfitPatch(canonicalJson(patched), `strict decoding error: ${errors.join(", ")}`);
}

function setTypeMeta(type: ServedType, patched: JsonObject): void {
  patched["kind"] = type.kind;
  patched["apiVersion"] = apiVersionOf(type);
}

function checkTypeMeta(context: WriteContext, name: string, patched: JsonObject): void {
  const { registry, resource } = context;
  const { type } = resource;
  const expected = apiVersionOf(type);
  const kind = memberOf(patched, "kind") ?? "";
  const apiVersion = memberOf(patched, "apiVersion") ?? "";
  if (kind === type.kind && apiVersion === expected) return;
  const misfit = Object.entries({ apiVersion, kind }).find(([, value]) => typeof value !== "string");
  if (misfit !== undefined) {
    const [field, value] = misfit;
    const problem = `json: cannot unmarshal ${goTypeOf(value)} into Go struct field .${field} of type string`;
    throw unfitPatch(canonicalJson(patched), `couldn't get version/kind; json parse error: ${problem}`);
  }
  if (type.custom !== undefined) {
    if (kind === type.kind) reportUnknown(context, patched, unknownInVersion(context, patched, textOf(apiVersion)));
    if (kind === "")
      throw unfitPatch(canonicalJson(patched), `Object 'Kind' is missing in '${canonicalJson(patched)}'`);
    if (textOf(apiVersion).split("/").length > 2)
      throw unfitPatch(canonicalJson(patched), `unexpected GroupVersion string: ${textOf(apiVersion)}`);
    checkPlace(context, name, patched);
    if (apiVersion === "") throw internalError("Object 'apiVersion' is missing in 'object has no apiVersion field'");
    const { group } = parseApiVersion(textOf(apiVersion));
    throw invalid({ name, kind: textOf(kind), group }, [
      ...(apiVersion === expected ? [] : [invalidError("apiVersion", apiVersion, `must be ${expected}`)]),
      ...(kind === type.kind ? [] : [invalidError("kind", kind, `must be ${type.kind}`)]),
    ]);
  }
  // Without an apiVersion, the object is decoded into an empty one, which has no name. An absent kind is taken from the type.
  if (apiVersion === "") {
    reportUnknown(context, patched, unknownOf(patched, ["kind", "apiVersion"]));
    throw nameUndeterminable(name);
  }
  if (kind === "" && apiVersion === expected) return setTypeMeta(type, patched);
  const given = { kind: textOf(kind), apiVersion: textOf(apiVersion) };
  const isKnown = registry.types.some((one) => one.kind === given.kind && apiVersionOf(one) === given.apiVersion);
  const text = isKnown ? unknownConversionText(type, given) : unregisteredKind(given.kind, given.apiVersion);
  throw unfitPatch(canonicalJson(patched), text);
}

function unknownOf(patched: JsonObject, known: readonly string[]): string[] {
  return Object.keys(patched)
    .filter((key) => !known.includes(key))
    .sort();
}

// Returns the fields that another version of the CRD does not have; if the version is not served, only the metadata is known.
function unknownInVersion({ registry, resource }: WriteContext, patched: JsonObject, apiVersion: string): string[] {
  const { group, plural } = resource.type;
  if (!apiVersion.startsWith(`${group}/`)) return [];
  const other = registry.find({ group, version: apiVersion.slice(group.length + 1), plural });
  return other?.rules.decode(clone(patched)) ?? unknownOf(patched, ["kind", "apiVersion", "metadata"]);
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Builds the error for a patch with an invalid result. */
export function unfitPatch(given: JsonValue, detail: string): Error {
  return invalid({ kind: "", group: "", name: "" }, [invalidError("patch", given, detail)]);
}

interface ApplyRequest {
  name: string;
  subresource: string;
  body: Buffer;
  force: boolean;
}

/** Applies a configuration; creates the object if it does not exist. */
export async function applyObject(context: WriteContext, request: ApplyRequest): Promise<WriteResult> {
  const { name, subresource, force } = request;
  const { config, integers, checkDuplicates } = parseConfig(request.body);
  if (integers !== undefined) context.integers.push(integers);
  checkConfig(context, config);
  const track = (live: JsonObject | undefined, applied = config): { object: JsonObject; isTracked: boolean } => {
    const object = trackApply(context, { live, config: applied, subresource, force });
    // Conflicts are reported before duplicate fields.
    checkDuplicates(context);
    const given = stringAt(objectAt(object, "metadata"), "name") ?? "";
    checkNameOfUrl(given, name);
    return { object, isTracked: true };
  };
  return updateObject(context, {
    name,
    subresource,
    isPut: false,
    change: (live) => track(live),
    create() {
      const ref = resourceRefOf(context.resource.type, name);
      if (subresource !== "") throw notFound(ref);
      const uid = stringAt(objectAt(config, "metadata"), "uid") ?? "";
      if (uid !== "") throw uidOfMissingObject(ref, uid);
      // A create modifies its object, and may be retried.
      return track(undefined, clone(config));
    },
  });
}

/** Parses the body of an apply. `checkDuplicates` reports duplicate fields as warnings or errors. */
export function parseConfig(body: Buffer): {
  config: JsonObject;
  integers: LongIntegers | undefined;
  checkDuplicates: (context: WriteContext) => void;
} {
  const { value, integers, duplicates, duplicateErrors } = parsedOrThrow(body);
  const config = value ?? {};
  if (!isObject(config)) {
    const goType = Array.isArray(config) ? "array" : typeof config;
    throw badRequest(
      "error decoding YAML: error unmarshaling JSON: while decoding JSON: " +
        `json: cannot unmarshal ${goType} into Go value of type map[string]interface {}`,
    );
  }
  return {
    config,
    integers,
    checkDuplicates(context) {
      const [error] = tellProblems(context, { asWarnings: duplicates, asErrors: duplicateErrors });
      if (error !== undefined) throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${error}`);
    },
  };
}

function parsedOrThrow(body: Buffer): ReturnType<typeof parseYaml> {
  try {
    return parseYaml(body);
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw badRequest(`error decoding YAML: error converting YAML to JSON: ${error.message}`);
  }
}

function checkConfig({ resource, namespace }: WriteContext, config: JsonObject): void {
  const apiVersion = stringAt(config, "apiVersion") ?? "";
  const kind = stringAt(config, "kind") ?? "";
  if (apiVersion !== apiVersionOf(resource.type) || kind !== resource.type.kind) {
    const version = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
    throw badRequest(`invalid object type: ${version}, Kind=${kind}`);
  }
  checkNamespace(objectAt(config, "metadata"), namespace);
}
