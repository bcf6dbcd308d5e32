/**
 * The lifecycle of CustomResourceDefinitions.
 *
 * The controllers of kube-apiserver need milliseconds for these steps; here each one runs in the next microtask. The writes are as separate as there,
 * so that watches see the same events: names accepted, established, and for a deletion the custom resources deleted before the CRD.
 */
import { approvalState, approvalTextOf, isProtectedGroup } from "@gen-operator/schema/definitions";
import { servedTypesOf } from "../builtin/served-type.js";
import { serverTime, timestampOf } from "../clock.js";
import { parseDeleteOptions, parseListOptions } from "../decode/options.js";
import { quote } from "../errors/go-format.js";
import { type JsonObject, type JsonValue, arrayAt, clone, deepEqual, isObject, objectAt, stringAt } from "../json.js";
import { CLEANUP_FINALIZER, hasCondition, setCondition, terminating } from "../object/conditions.js";
import { finalizersOf, isTerminating, metadataOf } from "../object/object-meta.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { ResourceStore } from "../storage/store.js";
import { deleteCollection } from "../write/delete.js";
import { ownContext } from "../write/write-context.js";
import { updateObject } from "../write/write-object.js";

const DEFINITIONS = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };

/** Serves the custom resources of the stored CRDs and follows their changes, for the lifetime of the registry. */
export function followDefinitions(registry: Registry): void {
  const controller = new DefinitionController(registry);
  controller.follow();
}

class DefinitionController {
  readonly #registry: Registry;
  readonly #definitions: ServedResource;
  /** The CRDs that are served, in their last relevant state. */
  readonly #served = new Map<string, JsonObject>();
  /** Functions that unsubscribe from the store of custom resources, by CRD that waits for their deletion. */
  readonly #waiting = new Map<string, () => void>();

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#definitions = registry.find(DEFINITIONS) as ServedResource;
  }

  follow(): void {
    this.#definitions.store.follow(({ key, previous, current }) => {
      void Promise.resolve().then(() => this.#settle(key));
      if (freesNames(previous?.object, current?.object)) void Promise.resolve().then(() => this.#settleRefused());
    });
    // CRDs of a previous run: serve the established ones from the start, and resume unfinished steps.
    for (const { key } of this.#definitions.store.list("")) this.#settle(key);
  }

  #settle(name: string): void {
    const crd = this.#definitions.store.get(name)?.object;
    if (crd === undefined) this.#forget(name);
    else if (isTerminating(crd)) this.#terminate(name, crd);
    else this.#establish(name, crd);
  }

  /** Checks again the CRDs with a name conflict, after another CRD has released names. */
  #settleRefused(): void {
    for (const { key, object } of this.#definitions.store.list(""))
      if (!hasCondition(object, "NamesAccepted")) this.#settle(key);
  }

  #establish(name: string, crd: JsonObject): void {
    const others = this.#definitions.store.list("").map(({ object }) => object);
    const status = objectAt(crd, "status") ?? {};
    const named = { ...status, ...acceptNames(crd, others) };
    if (!deepEqual(named, status)) return this.#writeStatus(name, () => named);
    const established = { ...status, conditions: establish(crd) };
    if (!deepEqual(established, status)) return this.#writeStatus(name, () => established);
    if (hasCondition(crd, "Established")) this.#serve(name, crd);
  }

  #serve(name: string, crd: JsonObject): void {
    const served = this.#served.get(name);
    const isTheSame =
      deepEqual(served?.["spec"], crd["spec"]) && deepEqual(acceptedNamesOf(served), acceptedNamesOf(crd));
    // Status updates are frequent. Only the spec, the accepted names, and whether the CRD is terminating affect the served types.
    if (isTheSame && isTerminating(served as JsonObject) === isTerminating(crd)) return;
    this.#served.set(name, crd);
    this.#registry.serveCustomTypes(name, servedTypesOf(crd));
    if (served !== undefined && !isTheSame) this.#registry.store.resource(name).endWatches();
  }

  #terminate(name: string, crd: JsonObject): void {
    // Lets the served types reject creates.
    if (hasCondition(crd, "Established")) this.#serve(name, crd);
    if (!finalizersOf(crd).includes(CLEANUP_FINALIZER)) return;
    const objects = this.#registry.store.resource(name);
    if (objects.size > 0) this.#deleteObjects(name, objects);
    else this.#release(name);
  }

  #deleteObjects(name: string, objects: ResourceStore): void {
    if (this.#waiting.has(name)) return;
    const again = (): void => {
      if (objects.size === 0) void Promise.resolve().then(() => this.#settle(name));
    };
    this.#waiting.set(name, objects.follow(again));
    this.#writeCondition(name, terminating("InstanceDeletionInProgress", "CustomResource deletion is in progress"));
    const resource = [...this.#registry.resources].find(({ store }) => store === objects);
    if (resource === undefined) return;
    const nothing = new URLSearchParams();
    void deleteCollection(ownContext(this.#registry, resource), {
      deletion: parseDeleteOptions(undefined, nothing),
      list: parseListOptions(nothing, { isWatch: false }),
    });
  }

  #release(name: string): void {
    const done = terminating("InstanceDeletionCompleted", "removed all instances");
    this.#writeCondition(name, { ...done, status: "False" });
    void updateObject(ownContext(this.#registry, this.#definitions), {
      name,
      subresource: "",
      isPut: false,
      change(live) {
        const object = clone(live);
        metadataOf(object)["finalizers"] = finalizersOf(object).filter((one) => one !== CLEANUP_FINALIZER);
        return { object, isTracked: false };
      },
    });
  }

  #forget(name: string): void {
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
    this.#served.delete(name);
    this.#registry.serveCustomTypes(name, []);
    this.#registry.store.drop(name);
  }

  #writeCondition(name: string, condition: Parameters<typeof setCondition>[1]): void {
    this.#writeStatus(name, (live) => {
      const object = clone(live);
      setCondition(object, condition);
      return object["status"] as JsonObject;
    });
  }

  #writeStatus(name: string, status: (live: JsonObject) => JsonObject): void {
    void updateObject(ownContext(this.#registry, this.#definitions), {
      name,
      subresource: "status",
      isPut: false,
      change: (live) => ({ object: { ...clone(live), status: status(live) }, isTracked: false }),
    });
  }
}

/** Reports whether a CRD has released accepted names. */
function freesNames(previous: JsonObject | undefined, current: JsonObject | undefined): boolean {
  const names = acceptedNamesOf(previous);
  return names !== undefined && !deepEqual(names, acceptedNamesOf(current));
}

function acceptedNamesOf(crd: JsonObject | undefined): JsonObject | undefined {
  return objectAt(objectAt(crd, "status"), "acceptedNames");
}

// The naming and the establishing controller. They write separately, because clients wait for each change.

/** The status that the naming controller writes. */
interface NamesStatus {
  acceptedNames: JsonObject;
  conditions: JsonObject[];
}

/** Computes the accepted names and the conditions of a CRD, given the accepted names of all CRDs of its group. `now` is an RFC 3339 timestamp. */
export function acceptNames(crd: JsonObject, others: readonly JsonObject[], now = nowText()): NamesStatus {
  const group = stringAt(objectAt(crd, "spec"), "group");
  const name = nameOf(crd);
  const rivals = others.filter(
    (other) => nameOf(other) !== name && stringAt(objectAt(other, "spec"), "group") === group,
  );
  const taken = takenNames(rivals);
  const requested = objectAt(objectAt(crd, "spec"), "names") ?? {};
  const accepted = objectAt(objectAt(crd, "status"), "acceptedNames") ?? {};

  const acceptedNames: JsonObject = { plural: "", kind: "", ...accepted };
  let conflict: { reason: string; message: string } | undefined;
  for (const [member, reason] of NAMES) {
    const values = textsAt(requested, member);
    const own = new Set(textsAt(accepted, member));
    const names = member === "kind" || member === "listKind" ? taken.kinds : taken.resources;
    const clash = values.filter((value) => value !== "" && !own.has(value) && names.has(value));
    if (clash.length > 0) conflict = { reason, message: clashText(clash) };
    else if (requested[member] === undefined) delete acceptedNames[member];
    else acceptedNames[member] = requested[member];
  }
  if (requested["categories"] !== undefined) acceptedNames["categories"] = requested["categories"];

  const conditions = conditionsOf(crd);
  const approval = approvalOf(crd, group ?? "");
  if (approval !== undefined) setNamesCondition(conditions, approval, now);
  setNamesCondition(conditions, { type: "NamesAccepted", ...outcomeOf(conflict) }, now);
  const established = conditions.find((condition) => condition["type"] === "Established");
  if (established?.["status"] !== "True") {
    const state = conflict === undefined ? INSTALLING : NOT_ACCEPTED;
    setNamesCondition(conditions, { type: "Established", status: "False", ...state }, now);
  }
  return { acceptedNames, conditions };
}

/** Returns the conditions of a CRD, with Established set to True if its names are accepted. */
export function establish(crd: JsonObject, now = nowText()): JsonObject[] {
  const conditions = conditionsOf(crd);
  const accepted = conditions.some(
    (condition) => condition["type"] === "NamesAccepted" && condition["status"] === "True",
  );
  if (accepted) setNamesCondition(conditions, { type: "Established", status: "True", ...ESTABLISHED }, now);
  return conditions;
}

const NAMES = [
  ["plural", "PluralConflict"],
  ["singular", "SingularConflict"],
  ["shortNames", "ShortNamesConflict"],
  ["kind", "KindConflict"],
  ["listKind", "ListKindConflict"],
] as const;
const INSTALLING = { reason: "Installing", message: "the initial names have been accepted" };
const NOT_ACCEPTED = { reason: "NotAccepted", message: "not all names are accepted" };
const ESTABLISHED = { reason: "InitialNamesAccepted", message: "the initial names have been accepted" };
const NO_CONFLICTS = { reason: "NoConflicts", message: "no conflicts found" };

function outcomeOf(conflict: { reason: string; message: string } | undefined): JsonObject {
  return conflict === undefined ? { status: "True", ...NO_CONFLICTS } : { status: "False", ...conflict };
}

/** Returns the condition KubernetesAPIApprovalPolicyConformant, which only CRDs in protected groups such as *.k8s.io have. */
function approvalOf(crd: JsonObject, group: string): JsonObject | undefined {
  if (!isProtectedGroup(group)) return undefined;
  const approval = approvalTextOf(crd);
  const type = "KubernetesAPIApprovalPolicyConformant";
  return approvalState(approval) === "bypassed"
    ? { type, status: "False", reason: "UnapprovedAnnotation", message: `not approved: ${quote(approval)}` }
    : { type, status: "True", reason: "ApprovedAnnotation", message: `approved in ${approval}` };
}

function takenNames(rivals: readonly JsonObject[]): { resources: Set<string>; kinds: Set<string> } {
  const names = rivals.map((rival) => objectAt(objectAt(rival, "status"), "acceptedNames") ?? {});
  const all = (members: readonly string[]): Set<string> =>
    new Set(names.flatMap((accepted) => members.flatMap((member) => textsAt(accepted, member))));
  return { resources: all(["plural", "singular", "shortNames"]), kinds: all(["kind", "listKind"]) };
}

function clashText(names: string[]): string {
  const texts = names.map((name) => `${quote(name)} is already in use`);
  return texts.length === 1 ? (texts[0] as string) : `[${texts.join(", ")}]`;
}

function textsAt(object: JsonObject, member: string): string[] {
  const value: JsonValue | undefined = object[member];
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function conditionsOf(crd: JsonObject): JsonObject[] {
  return (arrayAt(objectAt(crd, "status"), "conditions") ?? []).filter(isObject);
}

function setNamesCondition(conditions: JsonObject[], condition: JsonObject, now: string): void {
  const index = conditions.findIndex((other) => other["type"] === condition["type"]);
  const previous = conditions[index];
  const time = previous?.["status"] === condition["status"] ? (previous?.["lastTransitionTime"] ?? now) : now;
  const { type, status, reason, message } = condition;
  const written = { type, status, lastTransitionTime: time, reason, message } as JsonObject;
  if (index < 0) conditions.push(written);
  else conditions[index] = written;
}

function nameOf(crd: JsonObject): string | undefined {
  return stringAt(objectAt(crd, "metadata"), "name");
}

function nowText(): string {
  return timestampOf(serverTime());
}
