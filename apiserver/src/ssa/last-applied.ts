// kubectl used to apply on the client and keep what it applied in an annotation. When its server-side apply meets such an object,
// what the annotation covers counts as kubectl's own, and the annotation is kept in step.
import { canonicalJson, clone, isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";
import { fieldSetOf } from "./applied-set.js";
import type { FieldSet } from "./fields/field-set.js";
import { compareValuesOf } from "./merge/compare.js";
import { checkValue } from "./types/check-value.js";
import type { MergeType } from "./types/type-model.js";
import type { OwnerConflict } from "./updater.js";

/** The only manager for which any of this counts. */
export const KUBECTL = "kubectl";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** Takes the fields that last-applied covers out of conflicts; those are kubectl's to change. */
export function withoutLastApplied(
  conflicts: readonly OwnerConflict[],
  { live, apiVersion, type }: { live: JsonObject; apiVersion: string; type: MergeType },
): OwnerConflict[] {
  const covered = coveredFields(live, apiVersion, type);
  if (covered === undefined) return [...conflicts];
  return conflicts
    .map(({ manager, fields }) => ({ manager, fields: fields.difference(covered) }))
    .filter(({ fields }) => !fields.isEmpty);
}

/** Writes the applied configuration into the annotation, if the object has it; removes it if it gets too large. */
export function syncLastApplied(object: JsonObject, config: JsonObject): void {
  const annotations = objectAt(objectAt(object, "metadata"), "annotations");
  if (annotations === undefined || !stringAt(annotations, ANNOTATION)) return;
  annotations[ANNOTATION] = lastAppliedOf(config);
  const size = Object.entries(annotations).reduce((sum, [key, value]) => sum + bytesOf(key) + bytesOf(value), 0);
  if (size > MAX_ANNOTATIONS_BYTES) delete annotations[ANNOTATION];
}

function coveredFields(live: JsonObject, apiVersion: string, type: MergeType): FieldSet | undefined {
  const text = stringAt(objectAt(objectAt(live, "metadata"), "annotations"), ANNOTATION);
  const applied = text === undefined ? undefined : parseObject(text);
  if (applied?.["apiVersion"] !== apiVersion) return undefined;
  if (checkValue(type, applied, { allowsDuplicates: false }).length > 0) return undefined;
  const { modified, added, removed } = compareValuesOf(type, applied, live);
  return fieldSetOf(type, applied).difference(modified).difference(added).difference(removed);
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    // People edit annotations; one that is no JSON covers nothing.
    return undefined;
  }
}

function lastAppliedOf(config: JsonObject): string {
  const applied = clone(config);
  const metadata = objectAt(applied, "metadata");
  const annotations = objectAt(metadata, "annotations");
  if (annotations !== undefined && metadata !== undefined) {
    delete annotations[ANNOTATION];
    if (Object.keys(annotations).length === 0) delete metadata["annotations"];
  }
  return `${canonicalJson(applied)}\n`;
}

function bytesOf(value: JsonValue): number {
  return typeof value === "string" ? Buffer.byteLength(value) : 0;
}
