import { forgetGivenEmpty, withoutEmptyLists } from "../builtin/normal-form.js";
import type { ServedType } from "../builtin/served-type.js";
import type { JsonObject } from "../json.js";
import { apiVersionOf } from "../object/object-key.js";
import type { ResourceStore } from "../storage/resource-store.js";
import type { StoredObject } from "../storage/stored-object.js";
import type { TypeRules } from "./type-rules.js";

/** Between the form in which a resource is stored and the form of one of its versions. */
export interface Conversion {
  toStored(object: JsonObject): JsonObject;
  /** Returns the stored object itself where the forms are the same. */
  fromStored(object: JsonObject): JsonObject;
}

/** One version of a resource as requests reach it: the type, its rules and the objects. */
export class ServedResource {
  readonly type: ServedType;
  readonly store: ResourceStore;
  readonly #rulesOf: () => TypeRules;
  readonly #conversion: Conversion | undefined;
  readonly #views = new WeakMap<StoredObject, StoredObject>();
  readonly #typeMetaLength: number;
  #rules: TypeRules | undefined;

  constructor(options: {
    type: ServedType;
    store: ResourceStore;
    /** Makes the rules on first use: most types of a server are never used. */
    rules: () => TypeRules;
    conversion?: Conversion;
  }) {
    this.type = options.type;
    this.store = options.store;
    this.#rulesOf = options.rules;
    this.#conversion = options.conversion;
    this.#typeMetaLength = JSON.stringify({ kind: this.type.kind, apiVersion: apiVersionOf(this.type) }).length;
  }

  get rules(): TypeRules {
    return (this.#rules ??= this.#rulesOf());
  }

  /** Returns an object in this version; equal forms are shared, so that their JSON is made once. */
  read(stored: StoredObject): StoredObject {
    if (this.#conversion === undefined) return stored;
    let view = this.#views.get(stored);
    if (view === undefined) {
      const before = stored.object;
      const object = this.#conversion.fromStored(before);
      view = object === before ? stored : stored.as(object);
      this.#views.set(stored, view);
    }
    return view;
  }

  /** Returns an object of the stored form in the form of this version. */
  formOf(object: JsonObject): JsonObject {
    return this.#conversion === undefined ? object : this.#conversion.fromStored(object);
  }

  /** Returns the stored form of an object of this version. */
  storedForm(object: JsonObject): JsonObject {
    return this.#conversion === undefined ? object : this.#conversion.toStored(object);
  }

  /** Returns an object of this version as JSON text. */
  jsonOf(stored: StoredObject): string {
    return this.read(stored).json;
  }

  /** Returns an object as it stands in a list, where only custom resources repeat their kind and apiVersion. */
  itemJsonOf(stored: StoredObject): string {
    const json = this.jsonOf(stored);
    // Objects begin with these two members, see `normalForm`.
    return this.type.custom === undefined ? `{${json.slice(this.#typeMetaLength)}` : json;
  }
}

/** Returns an object with its members in the order in which the server keeps them, and the kind and apiVersion of its type. */
export function normalForm(type: ServedType, object: JsonObject): JsonObject {
  if (type.custom === undefined) forgetGivenEmpty(object);
  return {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: object["metadata"] ?? {},
    ...withoutEmptyLists(type.schemaName, withoutHead(object)),
  };
}

function withoutHead(object: JsonObject): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = object;
  return rest;
}
