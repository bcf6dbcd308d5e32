// A PUT removes from the content of an object what it does not state, but it is only sent if something differs, and a field that is no longer
// desired looks like one that the API server or another client set. So an object that is written by PUT says what it was made from.
import { hash } from "node:crypto";
import { isJsonObject, type JsonObject, type JsonValue } from "@gen-operator/schema";
import type { KubernetesObject, ObjectMeta } from "../base/kubernetes-object.js";
import { isOwnedByFormer, type DecodedResource } from "../base/decoded-resource.js";
import { fieldsAt, type FieldPath, type FieldsV1 } from "../match/field-set.js";
import { CONTROLLER_LABEL } from "../base/primary-link.js";
import { plainOf } from "../match/json-value.js";
import { BEFORE_FIRST_APPLY, type WholeState } from "./managed-entries.js";
import type { Stated } from "./send/plan.js";
import type { ManagedEntry } from "./send/rivals.js";
import type { Sender } from "./send/send.js";

/** Annotation with which fields the last PUT stated. */
export const LAST_STATED = "gen-operator.dev/last-stated";

/** The parts of the metadata that several clients share, and how an entry of each is told apart. */
export interface StatedKeys {
  readonly labels?: readonly string[];
  readonly annotations?: readonly string[];
  readonly finalizers?: readonly string[];
  /** The uids of owners. */
  readonly owners?: readonly string[];
}

/** Returns an object with the annotation that says which fields it states. */
export function withStatement(desired: Stated): Stated {
  const { metadata } = desired;
  const { [LAST_STATED]: _, ...annotations } = metadata.annotations ?? {};
  const value = JSON.stringify({ digest: digestOf(desired), ...keysOf({ ...metadata, annotations }) });
  return { ...desired, metadata: { ...metadata, annotations: { ...annotations, [LAST_STATED]: value } } };
}

/** Tells whether the last PUT of an object stated more than metadata. */
export function statesContent({ metadata }: Pick<KubernetesObject, "metadata">): boolean {
  const { digest } = parse(metadata.annotations?.[LAST_STATED]);
  return digest !== undefined && digest !== digestOf({ metadata });
}

/**
 * Returns what of the metadata was stated before, by PUT or by an apply, and is not desired any more. Whoever may write the object can write the
 * annotation, too, so what another field manager owns is never taken off: that takes one more read.
 */
export async function findUnstated(
  desired: Stated["metadata"],
  live: DecodedResource,
  { sender, readWhole }: { sender: Sender; readWhole: () => Promise<WholeState | undefined> },
): Promise<StatedKeys> {
  const { formerFieldManagers: formers } = sender;
  const applied = sender.matcher.ownedFields(live, "object");
  const before = [parseKeys(live.object.metadata.annotations?.[LAST_STATED]), applied && keysIn(applied.fieldsV1)];
  const wanted = keysOf(desired);
  const unstated = (...keys: readonly (StatedKeys | undefined)[]) =>
    without(mergeKeys([...before, ...keys].flatMap((each) => each ?? [])), wanted, keysOf(live.object.metadata));
  // Of a PUT, the entry of a former field manager stays with the labels and annotations that are the same: it counts in the first PUT alone.
  const isTaken = live.object.metadata.annotations?.[LAST_STATED] === undefined && isOwnedByFormer(live, formers);
  if (!isTaken && Object.keys(unstated()).length === 0) return {};
  const state = await readWhole();
  if (state === undefined) return {};
  const ofFormer = ({ manager = "", subresource }: ManagedEntry) =>
    subresource === undefined && formers.includes(manager);
  const taken = isTaken ? state.entries.filter(ofFormer).map(({ fieldsV1 = {} }) => keysOfFields(fieldsV1)) : [];
  const found = unstated(...taken);
  // The label has the former name of the controller until it is written under the new one.
  const label = live.object.metadata.labels?.[CONTROLLER_LABEL];
  const own = [sender.fieldManager, ...formers, BEFORE_FIRST_APPLY, label];
  const others = state.entries.filter(({ manager }) => !own.includes(manager));
  const isFree = (path: FieldPath) => others.every(({ fieldsV1 = {} }) => fieldsAt(fieldsV1, path) === undefined);
  return keep(found, (name, key) => isFree(fieldOf(name, key)));
}

/** Returns the fields of the metadata that the last PUT of an object stated, and the annotation that says so. */
export function fieldsOfStatement({ metadata }: Pick<KubernetesObject, "metadata">): FieldPath[] {
  const text = metadata.annotations?.[LAST_STATED];
  if (text === undefined) return [];
  const keys = parseKeys(text);
  const fields = NAMES.flatMap((name) => (keys[name] ?? []).map((key) => fieldOf(name, key)));
  return [fieldOf("annotations", LAST_STATED), ...fields];
}

const PATHS = {
  labels: { root: "f:labels", element: (key: string) => `f:${key}` },
  annotations: { root: "f:annotations", element: (key: string) => `f:${key}` },
  finalizers: { root: "f:finalizers", element: (key: string) => `v:${JSON.stringify(key)}` },
  owners: { root: "f:ownerReferences", element: (uid: string) => `k:${JSON.stringify({ uid })}` },
} as const;
const NAMES = Object.keys(PATHS) as (keyof StatedKeys)[];

function fieldOf(name: keyof StatedKeys, key: string): FieldPath {
  return ["f:metadata", PATHS[name].root, PATHS[name].element(key)];
}

function keysOf({ labels, annotations, finalizers, ownerReferences }: Partial<ObjectMeta>): StatedKeys {
  const { [LAST_STATED]: _, ...others } = annotations ?? {};
  const keys = {
    labels: Object.keys(labels ?? {}),
    annotations: Object.keys(others),
    finalizers: finalizers ?? [],
    owners: (ownerReferences ?? []).map(({ uid }) => uid),
  };
  return keep(keys, () => true);
}

// Returns the keys for which something holds, sorted; no list that would be empty.
function keep(keys: StatedKeys, holds: (name: keyof StatedKeys, key: string) => boolean): StatedKeys {
  const kept = NAMES.flatMap((name) => {
    const list = [...(keys[name] ?? [])].filter((key) => holds(name, key)).sort();
    return list.length === 0 ? [] : [[name, list]];
  });
  return Object.fromEntries(kept) as StatedKeys;
}

function without(before: StatedKeys, desired: StatedKeys, live: StatedKeys): StatedKeys {
  return keep(before, (name, key) => desired[name]?.includes(key) !== true && live[name]?.includes(key) === true);
}

function mergeKeys(all: readonly StatedKeys[]): StatedKeys {
  return Object.fromEntries(NAMES.map((name) => [name, [...new Set(all.flatMap((keys) => keys[name] ?? []))]]));
}

// Anybody may have written it.
function parse(text = "{}"): JsonObject {
  try {
    const parsed = JSON.parse(text) as JsonValue;
    return isJsonObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

function parseKeys(text: string | undefined): StatedKeys {
  const parsed = parse(text);
  const lists = NAMES.flatMap((name) => {
    const list = parsed[name];
    return Array.isArray(list) ? [[name, list.filter((key) => typeof key === "string")]] : [];
  });
  return Object.fromEntries(lists) as StatedKeys;
}

function keysIn(fieldsV1: string): StatedKeys {
  return keysOfFields(JSON.parse(fieldsV1) as FieldsV1);
}

function keysOfFields(fields: FieldsV1): StatedKeys {
  const metadata = fieldsAt(fields, ["f:metadata"]) ?? {};
  const elements = (name: keyof StatedKeys) =>
    Object.keys(metadata[PATHS[name].root] ?? {}).filter((each) => each !== ".");
  return {
    labels: elements("labels").map((each) => each.slice(2)),
    annotations: elements("annotations").map((each) => each.slice(2)),
    finalizers: elements("finalizers").map((each) => JSON.parse(each.slice(2)) as string),
    owners: elements("owners").map((each) => (JSON.parse(each.slice(2)) as { uid: string }).uid),
  };
}

// Values outside of lists are compared with the live object anyway, and may be secret: they are left out, so the digest says nothing of them.
function digestOf(desired: Stated): string {
  const { metadata: _1, status: _2, apiVersion: _3, kind: _4, ...content } = plainOf(desired) as JsonObject;
  return hash("sha256", JSON.stringify(shapeOf(content, false)), "base64url").slice(0, 22);
}

function shapeOf(value: JsonValue, isInList: boolean): JsonValue {
  if (Array.isArray(value)) return value.map((item) => shapeOf(item, true));
  if (!isJsonObject(value)) return isInList ? value : 0;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  const shapes = members.map(([name, member]) => [name, shapeOf(member, isInList)] as const);
  return Object.fromEntries(shapes.sort(([a], [b]) => (a < b ? -1 : 1)));
}
