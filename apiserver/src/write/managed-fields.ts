import { zeroObjectOf } from "../builtin/schema-node.js";
import type { ServedType } from "../builtin/served-type.js";
import { StatusError, plainError } from "../errors/status-error.js";
import { type JsonObject, arrayAt, objectAt } from "../json.js";
import { apiVersionOf, metadataOf, now, parseApiVersion } from "../object/object-meta.js";
import { scalePathsOf } from "../object/scale.js";
import { hasRaw, restoreProblem } from "../patch/restore.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import {
  type ManagedWrite,
  applyManaged,
  restoreUnchangedTimes,
  throughScale,
  updateManaged,
} from "../ssa/field-manager.js";
import { FieldSet } from "../ssa/field-set.js";
import { UnfitVersion } from "../ssa/updater.js";
import type { StoredObject } from "../storage/store.js";
import { type WriteContext, ownContext } from "./write-context.js";

const NOTHING: readonly string[] = [];
const resetSets = new WeakMap<readonly string[], FieldSet>();

/** Returns `object` with its managedFields after an update that is not an apply. */
export function trackUpdate(
  context: WriteContext,
  write: { live: JsonObject | undefined; object: JsonObject; subresource: string },
): JsonObject {
  const tracked = updateManaged({ ...managedWrite(context, write), object: write.object });
  return write.subresource === "scale" ? withScaleManagers(context, tracked) : tracked;
}

/** Stores a new status on behalf of the API server, as field manager of its own. */
export function putOwnStatus(registry: Registry, resource: ServedResource, { stored, next }: OwnStatus): void {
  const context = ownContext(registry, resource);
  const tracked = trackUpdate(context, { live: stored.object, object: next, subresource: "status" });
  resource.store.put(stored.key, resource.storedForm(tracked));
}

/** An object and its next state. */
export interface OwnStatus {
  readonly stored: StoredObject;
  readonly next: JsonObject;
}

/** Merges an applied configuration into `live`; returns the result with its managedFields. */
export function trackApply(
  context: WriteContext,
  write: { live: JsonObject | undefined; config: JsonObject; subresource: string; force: boolean },
): JsonObject {
  const { config, force } = write;
  return applyManaged({
    ...managedWrite(context, write),
    config,
    force,
    finish: (merged) => finished(context, { merged, config, live: write.live }),
  });
}

/** Returns `object` with the managedFields times of `live` if nothing else has changed. */
export function restoreTimes(live: JsonObject, object: JsonObject): JsonObject {
  return restoreUnchangedTimes(live, object);
}

/** Returns `object` with its managedFields after a write to its scale subresource. */
export function withScaleManagers({ resource }: WriteContext, object: JsonObject): JsonObject {
  const metadata = metadataOf(object);
  const entries = arrayAt(metadata, "managedFields");
  if (entries === undefined) return object;
  const managedFields = throughScale(entries, scalePathsOf(resource.type).specReplicas);
  return { ...object, metadata: { ...metadata, managedFields } };
}

function finished(
  { resource }: WriteContext,
  { merged, config, live }: { merged: JsonObject; config: JsonObject; live: JsonObject | undefined },
): JsonObject {
  decodeOrUnconvertible(resource, merged, config);
  resource.rules.fillDefaults(merged, live);
  return merged;
}

function decodeOrUnconvertible({ type, rules }: ServedResource, merged: JsonObject, config: JsonObject): void {
  if (type.schemaName !== undefined && hasRaw(type.schemaName)) restoreProblem(type.schemaName, merged);
  try {
    rules.decode(merged, { keepsNulls: true });
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 400) throw error;
    const problem = type.schemaName === undefined ? undefined : restoreProblem(type.schemaName, merged);
    if (type.schemaName !== undefined && problem === undefined && isDecoded(rules, merged)) return;
    const decoded = /cannot be handled as a [^:]*: (.*)$/s.exec(error.message)?.[1] ?? error.message;
    const reason = problem ?? decoded;
    const kind = `${apiVersionOf(type).includes("/") ? "" : "/"}${apiVersionOf(type)}, Kind=${type.kind}`;
    // kube-apiserver prints the namespace of the applied configuration, which may be absent.
    const { namespace = "", name = "" } = (objectAt(config, "metadata") ?? {}) as { namespace?: string; name?: string };
    throw plainError(
      `failed to convert new object (${namespace}/${name}; ${kind}) to proper version: ` +
        `unable to convert unstructured object to ${kind}: ${reason}`,
    );
  }
}

// restoreProblem may have restored the object into a form that can be decoded.
function isDecoded(rules: ServedResource["rules"], merged: JsonObject): boolean {
  try {
    rules.decode(merged, { keepsNulls: true });
    return true;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return false;
  }
}

function managedWrite(
  context: WriteContext,
  write: { live: JsonObject | undefined; subresource: string },
): ManagedWrite {
  const { registry, resource, manager } = context;
  const { type, rules } = resource;
  return {
    live: write.live,
    zero: type.schemaName === undefined ? undefined : zeroObjectOf(type.schemaName),
    manager,
    apiVersion: apiVersionOf(type),
    subresource: write.subresource,
    mergeType: rules.mergeType,
    resetFields: resetFieldsOf(type, write.subresource),
    resetsAllVersions: type.custom === undefined,
    now: now(),
    mergeTypeOf: (apiVersion) =>
      registry.find({ ...parseApiVersion(apiVersion), plural: type.plural })?.rules.mergeType,
    convert:
      resource.asksWebhook || type.custom === undefined
        ? (value, apiVersion) => convert(context, value, apiVersion)
        : undefined,
  };
}

function convert({ registry, resource }: WriteContext, value: JsonObject, apiVersion: string): JsonObject {
  const { plural } = resource.type;
  const [from, to] = [String(value["apiVersion"]), apiVersion].map((version) =>
    registry.find({ ...parseApiVersion(version), plural }),
  );
  if (from === undefined || to === undefined) return value;
  try {
    return from.formIn(to, value);
  } catch (error) {
    throw error instanceof StatusError ? new UnfitVersion(error.message) : error;
  }
}

function resetFieldsOf({ plural, strategy }: ServedType, subresource: string): FieldSet {
  const paths = resetPathsOf({ plural, strategy }, subresource);
  let set = resetSets.get(paths);
  if (set === undefined) resetSets.set(paths, (set = FieldSet.of(...paths)));
  return set;
}

// Subresources whose reset fields do not match the fields that they write.
const OTHER_RESETS: { readonly [endpoint: string]: readonly string[] } = {
  "certificatesigningrequests/approval": [".spec", ".status.certificate"],
  "certificatesigningrequests/status": [".spec", ".status.conditions"],
  "pods/ephemeralcontainers": NOTHING,
  "pods/resize": NOTHING,
};

function resetPathsOf(
  { plural, strategy }: Pick<ServedType, "plural" | "strategy">,
  subresource: string,
): readonly string[] {
  const others = OTHER_RESETS[`${plural}/${subresource}`];
  if (others !== undefined) return others;
  if (subresource === "status") return strategy.resetOnStatus;
  // scale writes spec.replicas, and finalize writes spec.finalizers, so neither resets the spec.
  return subresource === "scale" ? NOTHING : strategy.resetOnMain;
}
