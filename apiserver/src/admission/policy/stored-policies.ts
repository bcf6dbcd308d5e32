import { type JsonObject, compareText } from "../../json.js";
import type { Registry, ServedResource } from "../../registry/registry.js";
import type { ResourceStore } from "../../storage/store.js";

const GROUP = { group: "admissionregistration.k8s.io", version: "v1" };

/** Parsed policies or bindings of one kind, sorted by name; parsed again after a change of the store. */
export class StoredPolicies<Value> {
  readonly #store: ResourceStore;
  readonly #read: (object: JsonObject) => Value;
  #known: { version: number; values: readonly Value[] } = { version: -1, values: [] };

  constructor(registry: Registry, plural: string, read: (object: JsonObject) => Value) {
    this.#store = (registry.find({ ...GROUP, plural }) as ServedResource).store;
    this.#read = read;
  }

  all(): readonly Value[] {
    const { version } = this.#store;
    if (this.#known.version !== version) {
      const stored = this.#store.list("").sort((a, b) => compareText(a.key, b.key));
      this.#known = { version, values: stored.map(({ object }) => this.#read(object)) };
    }
    return this.#known.values;
  }
}
