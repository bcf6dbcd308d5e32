// Requests that update an object of a built-in kind, or a part of it through a subresource.
import { arrayAt, clone, isObject, objectAt, type JsonObject, type JsonValue } from "#apiserver/json.js";
import type { Step } from "../../conformance/conformance-scenario.js";
import { builtinSubresources } from "../../kinds/kind-definitions.js";
import type { MinimalObject } from "../../kinds/minimal-objects.js";
import { mutate, schemaOf } from "./mutated-objects.js";
import { resolve, type Choices, type Schema } from "./mutations.js";

/** The path of an object; `$ns` stands for the namespace. */
export interface Place {
  readonly path: string;
  readonly name: string;
}

/** An update to send to both servers. */
export interface Update {
  /** The method or patch type, and the endpoint. */
  readonly way: string;
  readonly changes: readonly string[];
  readonly step: Step;
}

/** An object that both servers store. */
export interface Stored {
  readonly chosen: MinimalObject;
  readonly place: Place;
  /** The object as stored by one of the servers. */
  readonly object: JsonObject;
  readonly choose: Choices;
}

/** The body to send, and descriptions of its changes. */
interface Changed {
  readonly body: JsonObject;
  readonly changes: string[];
}

type Form = "PUT" | "merge" | "strategic" | "apply";

// Each form is chosen as often as it is listed.
const FORMS: readonly Form[] = ["PUT", "PUT", "PUT", "merge", "strategic", "apply"];
/** Kinds whose status the API server itself updates over time, which changes the responses. */
const WATCHED_BY_SERVER = ["FlowSchema", "PriorityLevelConfiguration"];
/** Subresources with a kind of their own, and the objects to mutate and send to them. */
const CREATIONS: Record<string, JsonObject> = {
  binding: { apiVersion: "v1", kind: "Binding", target: { kind: "Node", name: "a" } },
  eviction: { apiVersion: "policy/v1", kind: "Eviction", deleteOptions: {} },
};
const SCALE = { apiVersion: "autoscaling/v1", kind: "Scale" };
/** The parts of an object that its subresources write. */
const WRITTEN_PARTS: Record<string, readonly string[][]> = {
  status: [["status"]],
  approval: [["status", "conditions"]],
  ephemeralcontainers: [["spec", "ephemeralContainers"]],
  finalize: [["spec"]],
  resize: [
    ["spec", "containers", "0", "resources"],
    ["spec", "containers", "0"],
    ["spec", "initContainers"],
  ],
};

/** Returns an update of any form, to any endpoint of the kind, with dryRun. */
export function updateOf(stored: Stored): Update {
  const { chosen, choose } = stored;
  const parts = builtinSubresources(chosen).filter(
    (name) => name === "scale" || name in WRITTEN_PARTS || name in CREATIONS,
  );
  const endpoint = choose.from(["", ...(parts.length === 0 ? [] : [choose.from(parts)])]);
  if (endpoint in CREATIONS) return creationOf(stored, endpoint);
  const form = choose.from(FORMS);
  if (endpoint === "scale") return stepOf(stored, { endpoint, form, before: scaleOf(stored), schema: schemaOf(SCALE) });
  return stepOf(stored, { endpoint, form, before: asSent(stored), schema: schemaOf(chosen) });
}

function creationOf({ place, choose }: Stored, endpoint: string): Update {
  const given = CREATIONS[endpoint] as JsonObject & { apiVersion: string; kind: string };
  const body: JsonObject = { ...clone(given), metadata: { name: place.name } };
  const changes = mutate(body, schemaOf(given), choose);
  const target = `${place.path}/${place.name}/${endpoint}?dryRun=All`;
  return { way: `POST /${endpoint}`, changes, step: { method: "POST", target, body } };
}

interface Write {
  readonly endpoint: string;
  readonly form: Form;
  readonly before: JsonObject;
  readonly schema: Schema;
}

function stepOf(stored: Stored, { endpoint, form, before, schema }: Write): Update {
  const { place, choose } = stored;
  const { body: after, changes } = changed(before, { paths: WRITTEN_PARTS[endpoint], schema, choose });
  const query = [
    "dryRun=All",
    "fieldManager=other",
    ...(form === "apply" && choose.often(50) ? ["force=true"] : []),
  ].join("&");
  const below = endpoint === "" ? "" : `/${endpoint}`;
  const target = `${place.path}/${place.name}${below}?${query}`;
  const way = endpoint === "" ? form : `${form} ${below}`;
  if (form === "PUT") return { way, changes, step: { method: "PUT", target, body: after } };
  const patch = mergePatchTo(before, after) as JsonObject;
  const body = form === "apply" ? appliedOf(stored, { before, after, patch }) : patch;
  return { way, changes, step: { method: "PATCH", target, as: form, body } };
}

/** Changes a part that the endpoint writes, and in some cases another part. */
function changed(
  before: JsonObject,
  { paths, schema, choose }: { paths: readonly string[][] | undefined; schema: Schema; choose: Choices },
): Changed {
  const body = clone(before);
  if (paths === undefined || choose.often(15)) return { body, changes: mutate(body, schema, choose) };
  const path = choose.from(paths);
  // Mutations require an object as the root.
  const holder = { part: valueAt(body, path) ?? (isList(schemaAt(schema, path)) ? [] : {}) };
  const changes = mutate(holder, { properties: { part: schemaAt(schema, path) } }, choose);
  setAt(body, path, holder.part);
  return { body, changes: changes.map((text) => text.replace(".part", `.${path.join(".")}`)) };
}

/** The apply configuration of another field manager: only the changed fields, or the whole object. */
function appliedOf(
  { choose }: Stored,
  { before, after, patch }: { before: JsonObject; after: JsonObject; patch: JsonObject },
): JsonObject {
  const { apiVersion, kind } = before as { apiVersion: string; kind: string };
  const name = objectAt(before, "metadata")?.["name"] as string;
  const { metadata: _, ...whole } = after;
  return { ...(choose.often(50) ? patch : whole), apiVersion, kind, metadata: { name } };
}

/** Returns the object as a client would send it after reading it. Values that each server chooses are replaced by variables or removed. */
function asSent({ chosen, place, object }: Stored): JsonObject {
  const { uid = "" } = (objectAt(object, "metadata") ?? {}) as { uid?: string };
  const sent = JSON.parse(JSON.stringify(object).replaceAll(uid, "${a.metadata.uid}")) as JsonObject;
  const { labels, annotations, finalizers } = objectAt(sent, "metadata") ?? {};
  sent["metadata"] = {
    name: place.name,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(finalizers === undefined ? {} : { finalizers }),
    ...(WATCHED_BY_SERVER.includes(chosen.kind) ? {} : { resourceVersion: "${a.metadata.resourceVersion}" }),
  };
  if (chosen.kind === "Service") setChosenParts(objectAt(sent, "spec") ?? {});
  return sent;
}

function setChosenParts(spec: JsonObject): void {
  if (/^\d/.test(String(spec["clusterIP"]))) {
    spec["clusterIP"] = "${a.spec.clusterIP}";
    spec["clusterIPs"] = ["${a.spec.clusterIP}"];
  }
  delete spec["healthCheckNodePort"];
  for (const port of arrayAt(spec, "ports") ?? []) if (isObject(port)) delete port["nodePort"];
}

function scaleOf({ place, object }: Stored): JsonObject {
  const replicas = objectAt(object, "spec")?.["replicas"] ?? 1;
  return { ...SCALE, metadata: { name: place.name }, spec: { replicas } };
}

/** Returns the schema at a path below that of a kind. */
export function schemaBelow(kind: { apiVersion: string; kind: string }, path: readonly string[]): Schema {
  return schemaAt(schemaOf(kind), path);
}

function schemaAt(schema: Schema, path: readonly string[]): Schema {
  return path.reduce((parent, key) => {
    const { items = {}, properties = {} } = parent;
    return resolve(/^\d+$/.test(key) ? items : (properties[key] ?? {}));
  }, resolve(schema));
}

function isList({ type }: Schema): boolean {
  return type === "array";
}

function valueAt(value: JsonValue, path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>((at, key) => (at as JsonObject | undefined)?.[key], value);
}

function setAt(object: JsonObject, path: readonly string[], value: JsonValue | undefined): void {
  const [key = "", ...rest] = path;
  if (rest.length > 0) return setAt((object[key] ??= {}) as JsonObject, rest, value);
  if (value === undefined) delete object[key];
  else object[key] = value;
}

/** Returns the merge patch between two values. */
function mergePatchTo(before: JsonValue | undefined, after: JsonValue): JsonValue {
  if (!isObject(before) || !isObject(after)) return after;
  const removed = Object.keys(before).filter((key) => after[key] === undefined);
  const kept = Object.entries(after).filter(([key, value]) => JSON.stringify(before[key]) !== JSON.stringify(value));
  return Object.fromEntries([
    ...removed.map((key) => [key, null] as const),
    ...kept.map(([key, value]) => [key, mergePatchTo(before[key], value)] as const),
  ]);
}
