import type { ServedType } from "../builtin/served-type.js";
import { arrayAt, objectAt, type JsonObject } from "../json.js";
import { finalizersOf } from "./object-meta.js";

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";

/** What happens to the dependents of a deleted object. */
export type PropagationPolicy = "Foreground" | "Background" | "Orphan";

/** Returns everything that holds an object; a namespace is also held by the list in its spec. */
export function holdersOf(type: ServedType, object: JsonObject): string[] {
  const ofNamespace = isNamespace(type) ? (arrayAt(objectAt(object, "spec"), "finalizers") ?? []) : [];
  return [...finalizersOf(object), ...(ofNamespace as string[])];
}

/** True for the type Namespace. */
export function isNamespace(type: ServedType): boolean {
  return type.group === "" && type.plural === "namespaces";
}

/** Returns the finalizers of an object that is deleted with a policy; garbage collection acts on them. */
export function finalizersForDeletion(
  type: ServedType,
  object: JsonObject,
  policy: PropagationPolicy | undefined,
): string[] {
  const { defaultPropagation } = type.strategy;
  const present = finalizersOf(object);
  if (defaultPropagation === undefined) return present;
  const kept = present.find((name) => name === FOREGROUND || name === ORPHAN);
  const wanted = policy === undefined ? (kept ?? finalizerOf(defaultPropagation)) : finalizerOf(policy);
  const others = present.filter((name) => name === wanted || (name !== FOREGROUND && name !== ORPHAN));
  return wanted === undefined || others.includes(wanted) ? others : [...others, wanted];
}

function finalizerOf(policy: PropagationPolicy): string | undefined {
  return { Foreground: FOREGROUND, Orphan: ORPHAN, Background: undefined }[policy];
}
