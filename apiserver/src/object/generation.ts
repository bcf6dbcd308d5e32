import type { ServedType } from "../builtin/served-type.js";
import { hasGivenEmpty } from "../builtin/normal-form.js";
import { deepEqual, objectAt, type JsonObject, type JsonValue } from "../json.js";
import { metadataOf } from "./object-meta.js";

/** Sets the generation of a new object; types without one keep what the client sent. */
export function setFirstGeneration(type: ServedType, object: JsonObject): void {
  const { generation } = type.strategy;
  if (generation !== "never" && generation !== "spec-from-zero") metadataOf(object)["generation"] = 1;
}

/** Raises the generation of an object that is about to replace `live` through the main endpoint, if its type says so. */
export function raiseGeneration(type: ServedType, object: JsonObject, live: JsonObject): void {
  const isFromZero = type.strategy.generation === "spec-from-zero";
  const generation = metadataOf(live)["generation"] ?? (isFromZero ? 0 : undefined);
  if (generation !== undefined && isRaised(type, object, live))
    metadataOf(object)["generation"] = Number(generation) + 1;
}

function isRaised(type: ServedType, object: JsonObject, live: JsonObject): boolean {
  switch (type.strategy.generation) {
    case "never":
    case "first":
      return false;
    case "spec":
    case "spec-from-zero":
      return !deepEqual(object["spec"], live["spec"]);
    case "spec-as-given":
      return hasGivenEmpty(object["spec"]) || !deepEqual(object["spec"], live["spec"]);
    case "spec-and-annotations":
      return !deepEqual(object["spec"], live["spec"]) || !deepEqual(annotationsOf(object), annotationsOf(live));
    case "outside-metadata-as-given":
      return (
        hasGivenEmpty(outsideMetadata(type, object)) ||
        !deepEqual(outsideMetadata(type, object), outsideMetadata(type, live))
      );
    case "outside-metadata-and-labels":
      return (
        !deepEqual(withoutEmpty(outsideMetadata(type, object)), withoutEmpty(outsideMetadata(type, live))) ||
        !deepEqual(objectAt(metadataOf(object), "labels") ?? {}, objectAt(metadataOf(live), "labels") ?? {})
      );
    case "outside-metadata":
      return !deepEqual(outsideMetadata(type, object), outsideMetadata(type, live));
  }
}

// What is shown as null when it is empty may be there as an empty list.
function withoutEmpty(object: JsonObject): JsonObject {
  const isEmpty = (value: JsonValue) => value === null || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(object).filter(([, value]) => !isEmpty(value)));
}

function annotationsOf(object: JsonObject): JsonObject {
  return objectAt(metadataOf(object), "annotations") ?? {};
}

function outsideMetadata(type: ServedType, object: JsonObject): JsonObject {
  const rest = { ...object };
  for (const key of ["apiVersion", "kind", "metadata"]) delete rest[key];
  if (type.subresources.some(({ name }) => name === "status")) delete rest["status"];
  return rest;
}
