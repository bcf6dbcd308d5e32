import { decodeBuiltin } from "../../builtin/decode.js";
import { builtinSchemas } from "../../builtin/schemas.js";
import type { ServedType } from "../../builtin/served-type.js";
import { parseObjectBody } from "../../decode/body.js";
import { parseWriteOptions } from "../../decode/options.js";
import { unregisteredKind, unregisteredType } from "../../errors/decode-errors.js";
import { invalidError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { StatusError, applyConflict, badRequest, invalid, plainError } from "../../errors/status-error.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  canonicalJson,
  clone,
  isObject,
  objectAt,
  stringAt,
} from "../../json.js";
import { setAtPath, valueAtPath } from "../../object/field-path.js";
import { apiVersionOf, metadataOf } from "../../object/object-meta.js";
import { scaleOf, scalePathsOf, withScale } from "../../object/scale.js";
import { restoreProblem } from "../../patch/restore.js";
import { checkApplied } from "../../ssa/field-manager.js";
import { mergeTypeOfBuiltin } from "../../ssa/merge-type.js";
import type { StoredObject } from "../../storage/store.js";
import { isKnownKind, unknownConversion } from "../../write/decode-object.js";
import { trackApply, trackUpdate, withScaleManagers } from "../../write/managed-fields.js";
import { applyPatch, comparePaths, parseConfig, parsePatch, patchTypeOf, unfitPatch } from "../../write/patch.js";
import {
  type StrictProblems,
  type WriteContext,
  type WriteResult,
  checkPlace,
  renewable,
  tellProblems,
} from "../../write/write-context.js";
import { updateObject } from "../../write/write-object.js";
import { type ResourceRequest, readObject, renderContextOf, writeContextOf } from "../handlers.js";
import { type RenderContext, renderScale } from "../representation.js";
import type { Answer } from "../request-info.js";

/** Handles a GET, PUT, or PATCH of the Scale of an object. */
export async function answerScale(on: ResourceRequest): Promise<Answer> {
  if (on.request.method === "GET") return readObject(on, renderScaleOf);
  const render = renderContextOf(on);
  const written = await (on.request.method === "PUT" ? putScale(on) : patchScale(on));
  return renderScale(render, 200, scaleOf(on.resource.type, written.object, { needsReplicas: false }));
}

function renderScaleOf(context: RenderContext, object: StoredObject): Answer {
  return renderScale(context, 200, scaleOf(context.resource.type, object));
}

async function putScale(on: ResourceRequest): Promise<WriteResult> {
  const { request, name } = on;
  const context = writeContextOf(on, parseWriteOptions(request.query, "UpdateOptions"));
  const { value, duplicates } = parseObjectBody(request.body, request.headers["content-type"]);
  if (!isObject(value)) throw badRequest("the object provided is unrecognized (must be of type Scale)");
  checkScaleType(context, { value, problems: duplicates() });
  checkPlace(context, name, value);
  return writeScale(context, { name, isPut: true, change: () => value });
}

async function patchScale(on: ResourceRequest): Promise<WriteResult> {
  const { request, resource, name } = on;
  const patchType = patchTypeOf(resource.type, request.headers["content-type"]);
  const options = parseWriteOptions(request.query, "PatchOptions", { isApply: patchType === "apply" });
  const context: WriteContext = writeContextOf(on, options);
  if (patchType === "apply") {
    const { config, checkDuplicates } = parseConfig(request.body);
    checkDuplicates(context);
    return applyScale(context, { name, config, force: options.force });
  }
  const parse = (): ReturnType<typeof parsePatch> => parsePatch({ patchType, body: request.body });
  const patch = renewable(parse(), parse);
  return writeScale(context, {
    name,
    isPut: false,
    change(scale) {
      const { value, problems } = patch();
      const patched = applyPatch(scale, { patchType, value, schemaName: SCALE_SCHEMA });
      return decodePatchedScale(context, { name, patched, problems });
    },
  });
}

const SCALE_SCHEMA = "io.k8s.api.autoscaling.v1.Scale";

const SCALE_VERSION = "autoscaling/v1";
const UNREGISTERED = unregisteredType("v1.Scale");
const SUBRESOURCE = "scale";

/** Writes the replicas of a Scale to the object. */
function writeScale(
  context: WriteContext,
  write: { name: string; isPut: boolean; change: (scale: JsonObject) => JsonObject },
): Promise<WriteResult> {
  const { resource } = context;
  const { type } = resource;
  return updateObject(context, {
    name: write.name,
    subresource: SUBRESOURCE,
    isPut: write.isPut,
    change(live) {
      const present = resource.store.get(keyOfLive(live)) as StoredObject;
      const scale = write.change(scaleOf(type, resource.read(present), { needsReplicas: false }));
      checkScale(type, write.name, scale);
      const object = withScale(type, live, scale);
      const given = objectAt(scale, "metadata");
      for (const field of ["resourceVersion", "uid"]) {
        const value = stringAt(given, field) ?? "";
        if (value !== "") metadataOf(object)[field] = value;
      }
      // If a custom resource had no replicas, Kubernetes fails to track the manager of the new value and continues.
      const hadReplicas = valueAtPath(live, scalePathsOf(type).specReplicas) !== undefined;
      if (type.custom !== undefined && !hadReplicas) return { object, isTracked: true };
      return withZero(context, live, object) ?? { object, isTracked: false };
    },
  });
}

// A Scale omits zero replicas. Scaling to zero therefore removes the field from the managedFields of its owner, and a later scale-up leaves it
// without an owner. A zero that was set through the main resource keeps its owner.
function withZero(context: WriteContext, live: JsonObject, object: JsonObject) {
  const path = scalePathsOf(context.resource.type).specReplicas;
  // Replicas without an owner stay without one.
  if (!isOwned(live, path) || (valueAtPath(live, path) === 0 && valueAtPath(object, path) === 0))
    return { object: withScaleManagers(context, object), isTracked: true };
  if (valueAtPath(object, path) !== 0) return undefined;
  const without = clone(object);
  setAtPath(without, path, undefined);
  const tracked = trackUpdate(context, { live, object: without, subresource: SUBRESOURCE });
  const { managedFields: _, ...metadata } = metadataOf(object);
  const { managedFields } = metadataOf(tracked);
  const changed = { ...object, metadata: { ...metadata, ...(managedFields === undefined ? {} : { managedFields }) } };
  return { object: changed, isTracked: true };
}

/** Decodes a patched Scale. Throws if it is no longer a Scale. */
function decodePatchedScale(
  context: WriteContext,
  { name, patched, problems }: { name: string; patched: JsonValue; problems: string[] },
): JsonObject {
  if (!isObject(patched)) throw badRequest("the object provided is unrecognized (must be of type Scale)");
  const kind = stringAt(patched, "kind") ?? "";
  const apiVersion = stringAt(patched, "apiVersion") ?? "";
  if (kind !== "" && (kind !== "Scale" || apiVersion !== SCALE_VERSION))
    throw unfitPatch(canonicalJson(patched), unregisteredKind(kind, apiVersion));
  const given = canonicalJson(patched);
  const { error, unknownFields } = decodeBuiltin({ schemaName: SCALE_SCHEMA }, patched);
  if (error !== undefined) throw unfitPatch(given, error);
  const errors = tellProblems(context, strictProblems(problems, unknownFields.sort(comparePaths)));
  if (errors.length > 0) throw unfitPatch(given, `strict decoding error: ${errors.join(", ")}`);
  checkPlace(context, name, patched);
  return patched;
}

/** Throws 400 if a value cannot be decoded as a Scale. */
function checkScaleType(context: WriteContext, { value, problems }: { value: JsonObject; problems: string[] }): void {
  const { type } = context.resource;
  const { kind, apiVersion } = typeOf(value);
  if (kind !== "Scale" || apiVersion !== SCALE_VERSION) {
    if (type.custom === undefined && isKnownKind(kind, apiVersion))
      throw unknownConversion({ group: "autoscaling", version: "v1", kind: "Scale" }, { kind, apiVersion });
    const unregistered = unregisteredKind(kind, apiVersion);
    throw badRequest(
      type.custom === undefined
        ? `${kind} in version ${quote(apiVersion.replace(/^.*\//, ""))} cannot be handled as a Scale: ${unregistered}`
        : UNREGISTERED,
    );
  }
  const { error, unknownFields } = decodeBuiltin({ schemaName: SCALE_SCHEMA }, value);
  const misfit = (text: string) => badRequest(`Scale in version "v1" cannot be handled as a Scale: ${text}`);
  if (error !== undefined) throw misfit(error);
  const errors = tellProblems(context, strictProblems(problems, unknownFields));
  if (errors.length > 0 && type.custom !== undefined) throw badRequest(UNREGISTERED);
  if (errors.length > 0) throw misfit(`strict decoding error: ${errors.join(", ")}`);
}

function strictProblems(problems: string[], unknown: string[]): StrictProblems {
  return { asWarnings: () => [...problems, ...unknown.map((path) => `unknown field ${quote(path)}`)] };
}

/** Applies a Scale to an object (server-side apply). */
async function applyScale(
  context: WriteContext,
  write: { name: string; config: JsonObject; force: boolean },
): Promise<WriteResult> {
  const { type } = context.resource;
  const path = scalePathsOf(type).specReplicas;
  const config: JsonObject = { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { name: write.name } };
  const problem = restoreProblem(SCALE_SCHEMA, write.config);
  const replicas = objectAt(write.config, "spec")?.["replicas"];
  // Null counts as 0. An invalid value is rejected only after conflicts, which -1 provokes like any other new value.
  if (replicas !== undefined) setAtPath(config, path, problem === undefined ? (replicas ?? 0) : -1);
  return updateObject(context, {
    name: write.name,
    subresource: SUBRESOURCE,
    isPut: false,
    change(live) {
      if (type.custom !== undefined && !isOwned(live, path))
        throw unreadableScale("failed to create manager for existing fields: failed to convert live object (/; SCALE)");
      if (problem === undefined) checkApplied(mergeTypeOfBuiltin(builtinSchemas(), SCALE_SCHEMA), write.config);
      const apply = { live, config, subresource: SUBRESOURCE, force: write.force };
      const object = asScaleConflict(type, () => trackApply(context, apply));
      if (problem !== undefined) throw unfitScale(write.config, problem);
      checkScale(type, write.name, write.config);
      if (type.custom !== undefined && valueAtPath(object, path) !== valueAtPath(live, path))
        throw unreadableScale(`failed to convert new object (${placeOf(write.config)}; SCALE)`);
      return { object: withScaleManagers(context, object), isTracked: true };
    },
  });
}

function isOwned(live: JsonObject, path: string): boolean {
  const entries = (arrayAt(metadataOf(live), "managedFields") ?? []).filter(isObject);
  const number = path
    .split(".")
    .slice(1)
    .map((name) => `f:${name}`);
  return entries.some(
    ({ fieldsV1 }) => number.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), fieldsV1) !== undefined,
  );
}

function unfitScale(config: JsonObject, problem: string): Error {
  const kind = "autoscaling/v1, Kind=Scale";
  const step = `failed to convert new object (${placeOf(config)}; ${kind}) to proper version`;
  return plainError(`${step}: unable to convert unstructured object to ${kind}: ${problem}`);
}

function placeOf(config: JsonObject): string {
  const metadata = objectAt(config, "metadata");
  return `${stringAt(metadata, "namespace") ?? ""}/${stringAt(metadata, "name") ?? ""}`;
}

// Kubernetes cannot convert a Scale to a custom resource. An apply of a Scale only succeeds if replicas have an owner and the value does not change.
function unreadableScale(problem: string): Error {
  const text = problem.replace("SCALE", "autoscaling/v1, Kind=Scale");
  return plainError(`${text} to proper version: request to convert CR to an invalid group/version: autoscaling/v1`);
}

// Translates a conflict: the managers of the object appear as managers of the Scale.
function asScaleConflict(type: ServedType, apply: () => JsonObject): JsonObject {
  try {
    return apply();
  } catch (error) {
    const causes = error instanceof StatusError && error.status.code === 409 ? error.status.details?.causes : undefined;
    if (causes === undefined) throw error;
    const { specReplicas } = scalePathsOf(type);
    const translated = (text = ""): string =>
      text.replaceAll(`using ${apiVersionOf(type)}`, "using autoscaling/v1").replaceAll(specReplicas, ".spec.replicas");
    throw applyConflict(
      translated((error as StatusError).message),
      causes.map((cause) => ({ ...cause, message: translated(cause.message), field: translated(cause.field) })),
    );
  }
}

function keyOfLive(live: JsonObject): string {
  const { name, namespace } = metadataOf(live);
  return typeof namespace === "string" ? `${namespace}/${String(name)}` : String(name);
}

/** Returns the kind and apiVersion of a Scale, with their defaults. */
function typeOf(scale: JsonObject): { kind: string; apiVersion: string } {
  return {
    kind: stringAt(scale, "kind") || "Scale",
    apiVersion: stringAt(scale, "apiVersion") || SCALE_VERSION,
  };
}

function checkScale(type: ServedType, name: string, scale: JsonObject): void {
  const replicas = objectAt(scale, "spec")?.["replicas"] ?? 0;
  // The replicas of custom resources are validated with the rest of the object.
  if (type.custom === undefined && (typeof replicas !== "number" || replicas < 0)) {
    const error = invalidError("spec.replicas", replicas, "must be greater than or equal to 0");
    throw invalid({ kind: "Scale", group: "autoscaling", name }, [error]);
  }
}
