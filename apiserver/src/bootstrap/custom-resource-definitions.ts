/**
 * The life of CustomResourceDefinitions.
 *
 * What the controllers of a real server do in milliseconds happens here in the next microtask, in the same separate writes, so
 * that whoever watches sees the same steps: names accepted, established, and on deletion its objects gone before itself.
 */
import { servedTypesOf } from "../builtin/served-type.js";
import { parseDeleteOptions } from "../decode/options/delete-options.js";
import { parseListOptions } from "../decode/options/list-options.js";
import { acceptNames, establish } from "../definitions/registration.js";
import { clone, deepEqual, objectAt, type JsonObject } from "../json.js";
import { hasCondition, setCondition } from "../object/conditions.js";
import { CLEANUP_FINALIZER, terminating } from "../object/definition-cleanup.js";
import { finalizersOf, isTerminating, metadataOf } from "../object/object-meta.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import type { ResourceStore } from "../storage/resource-store.js";
import { deleteCollection } from "../write/delete-collection.js";
import { updateObject } from "../write/update.js";
import { ownContext } from "../write/write-context.js";

const DEFINITIONS = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };

/** Keeps the served types in step with the definitions in the store, as long as the registry lives. */
export function followDefinitions(registry: Registry): void {
  const controller = new DefinitionController(registry);
  controller.follow();
}

class DefinitionController {
  readonly #registry: Registry;
  readonly #definitions: ServedResource;
  /** The definitions as they are served. */
  readonly #served = new Map<string, JsonObject>();
  /** Ends the subscriptions to the objects of definitions that wait for them to go. */
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
    // Of an earlier run: established ones are served from the start, and what was going on goes on.
    for (const { key } of this.#definitions.store.list("")) this.#settle(key);
  }

  #settle(name: string): void {
    const crd = this.#definitions.store.get(name)?.object;
    if (crd === undefined) this.#forget(name);
    else if (isTerminating(crd)) this.#terminate(name, crd);
    else this.#establish(name, crd);
  }

  /** Looks again at the definitions whose names others had. */
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
    // Statuses change often; only what is read from here on matters: the declaration, and that nothing new is taken.
    if (isTheSame && isTerminating(served as JsonObject) === isTerminating(crd)) return;
    this.#served.set(name, crd);
    this.#registry.serveCustomTypes(name, servedTypesOf(crd));
    if (served !== undefined && !isTheSame) this.#registry.store.resource(name).endWatches();
  }

  #terminate(name: string, crd: JsonObject): void {
    // The types learn that nothing new may be created.
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

/** Whether a definition had names that it has no longer. */
function freesNames(previous: JsonObject | undefined, current: JsonObject | undefined): boolean {
  const names = acceptedNamesOf(previous);
  return names !== undefined && !deepEqual(names, acceptedNamesOf(current));
}

function acceptedNamesOf(crd: JsonObject | undefined): JsonObject | undefined {
  return objectAt(objectAt(crd, "status"), "acceptedNames");
}
