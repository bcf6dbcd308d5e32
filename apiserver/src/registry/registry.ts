import { resourceNameOf } from "../builtin/resource-name.js";
import type { ServedType } from "../builtin/served-type.js";
import type { FieldError } from "../errors/field-error.js";
import { type LongIntegers, integersOfDefaults } from "../exact-numbers.js";
import type { JsonObject } from "../json.js";
import { isDefinition } from "../object/conditions.js";
import { apiVersionOf } from "../object/object-meta.js";
import { PendingConversion, knownFormOrThrow } from "../pending-conversion.js";
import type { MergeType } from "../ssa/typed-value.js";
import { type ResourceStore, Store, type StoredObject } from "../storage/store.js";
import { builtinTypes } from "../strategies/table.js";
import { type Allocator, createAllocator } from "./allocator.js";
import { builtinConversion, scalerRules, storageNameOf } from "./builtin-conversion.js";
import { builtinRules } from "./builtin-rules.js";
import { type AskWebhook, customConversion } from "./custom-conversion.js";
import { customRules } from "./custom-rules.js";
import { definitionRules } from "./definition-rules.js";

/** Everything that is served: the types, by the paths under which they are found, and their objects. */
export class Registry {
  readonly store: Store;
  readonly #resources = new Map<string, ServedResource>();
  readonly #customPaths = new Map<string, string[]>();
  readonly #builtinGroups: ReadonlySet<string>;
  readonly #ask: AskWebhook | undefined;
  #types: ServedType[] | undefined;

  /** `ask` calls the webhooks of definitions; without it all versions have the same form. */
  constructor(options: { historyLimit?: number | undefined; ask?: AskWebhook } = {}) {
    this.store = new Store(options);
    this.#ask = options.ask;
    let made: Allocator | undefined;
    // Made when the first Service needs it, so that it sees those of an earlier run.
    const allocator = (): Allocator => (made ??= createAllocator(this.store.resource("services")));
    const types = builtinTypes();
    this.#builtinGroups = new Set(types.map(({ group }) => group));
    for (const type of types) this.#add(this.#builtinResource(type, allocator));
  }

  /** The objects of the type Namespace, on which the life of all others depends. */
  get namespaces(): ResourceStore {
    return this.store.resource("namespaces");
  }

  /** Every served type, built-in ones first. */
  get types(): ServedType[] {
    return (this.#types ??= [...this.#resources.values()].map(({ type }) => type));
  }

  /** Every served resource. */
  get resources(): Iterable<ServedResource> {
    return this.#resources.values();
  }

  /** Finds what a path names. */
  find(path: { group: string; version: string; plural: string }): ServedResource | undefined {
    return this.#resources.get(pathOf(path));
  }

  /** True for groups that Kubernetes itself brings; they answer unknown resources differently. */
  isBuiltinGroup(group: string): boolean {
    return this.#builtinGroups.has(group);
  }

  /** Serves exactly these types for a CustomResourceDefinition; an empty list stops serving it. */
  serveCustomTypes(crdName: string, types: ServedType[]): void {
    for (const path of this.#customPaths.get(crdName) ?? []) this.#resources.delete(path);
    this.#customPaths.set(crdName, types.map(pathOf));
    for (const type of types) this.#add(this.#customResource(type));
    this.#types = undefined;
  }

  #add(resource: ServedResource): void {
    this.#resources.set(pathOf(resource.type), resource);
  }

  #builtinResource(type: ServedType, allocator: () => Allocator): ServedResource {
    const conversion = builtinConversion(type);
    return new ServedResource({
      type,
      store: this.store.resource(storageNameOf(type)),
      rules() {
        const rules = builtinRules(type, allocator);
        if (type.group === "autoscaling" && type.version === "v1") return scalerRules(rules);
        return isDefinition(type) ? definitionRules(rules) : rules;
      },
      ...(conversion === undefined ? {} : { conversion }),
    });
  }

  #customResource(type: ServedType): ServedResource {
    // A watch cannot resume from before its type existed.
    const store = this.store.resource(resourceNameOf(type), { compacted: this.store.revision });
    const rules = customRules(type);
    return new ServedResource({
      type,
      store,
      rules: () => rules,
      conversion: customConversion(type, {
        rulesOf: (other) => (other === type ? rules : customRules(other)),
        ask: this.#ask,
      }),
      definition: () => this.store.resource(DEFINITIONS).get(resourceNameOf(type)),
    });
  }
}

const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";

function pathOf({ group, version, plural }: { group: string; version: string; plural: string }): string {
  return `${group}/${version}/${plural}`;
}

/** Between the form in which a resource is stored and the form of one of its versions. */
export interface Conversion {
  toStored(object: JsonObject): JsonObject;
  /** Returns the stored object itself where the forms are the same. */
  fromStored(object: JsonObject): JsonObject;
  /** Who is asked for the forms of other versions. */
  webhook?: WebhookForms;
}

/** The forms of a custom resource that a webhook knows. */
export interface WebhookForms {
  /** The version that objects are stored in from now on. */
  readonly storedVersion: string;
  /** Asks for stored objects in the version of the resource. */
  fromStored(objects: readonly JsonObject[]): Promise<JsonObject[]>;
  /** Asks for an object in any version. */
  into(apiVersion: string, object: JsonObject): Promise<JsonObject>;
}

/** One version of a resource as requests reach it: the type, its rules and the objects. */
export class ServedResource {
  readonly type: ServedType;
  readonly store: ResourceStore;
  readonly #rulesOf: () => TypeRules;
  readonly #conversion: Conversion | undefined;
  readonly #definitionOf: () => StoredObject | undefined;
  readonly #views = new WeakMap<StoredObject, StoredObject>();
  readonly #loading = new WeakMap<StoredObject, Promise<void>>();
  readonly #typeMetaLength: number;
  #rules: TypeRules | undefined;

  constructor(options: {
    type: ServedType;
    store: ResourceStore;
    /** Makes the rules on first use: most types of a server are never used. */
    rules: () => TypeRules;
    conversion?: Conversion;
    /** Returns the definition of a custom type as it is stored. */
    definition?: () => StoredObject | undefined;
  }) {
    this.type = options.type;
    this.store = options.store;
    this.#rulesOf = options.rules;
    this.#conversion = options.conversion;
    this.#definitionOf = options.definition ?? (() => undefined);
    this.#typeMetaLength = JSON.stringify({ kind: this.type.kind, apiVersion: apiVersionOf(this.type) }).length;
  }

  get rules(): TypeRules {
    return (this.#rules ??= this.#rulesOf());
  }

  /** The integers of defaults that their values have rounded, where they are in objects. */
  get integersOfDefaults(): LongIntegers | undefined {
    const integers = this.#definitionOf()?.integers;
    return integers === undefined ? undefined : integersOfDefaults(integers);
  }

  /** Whether forms of objects have to be asked for: what needs them throws a PendingConversion then. */
  get asksWebhook(): boolean {
    return this.#conversion?.webhook !== undefined;
  }

  /** Returns an object in this version; equal forms are shared, so that their JSON is made once. */
  read(stored: StoredObject): StoredObject {
    if (this.#conversion === undefined) return stored;
    let view = this.#views.get(stored);
    if (view === undefined) {
      if (this.#isAskedFor(stored)) throw this.#pending([stored]);
      const before = stored.object;
      const object = this.#conversion.fromStored(before);
      view = object === before ? stored : stored.as(object, this.#sources);
      this.#views.set(stored, view);
    }
    return view;
  }

  /** Makes sure that objects can be read, so that all are asked for at once. */
  require(objects: readonly StoredObject[]): void {
    if (!this.asksWebhook) return;
    const missing = objects.filter((stored) => !this.#views.has(stored) && this.#isAskedFor(stored));
    if (missing.length > 0) throw this.#pending(missing);
  }

  /** Asks for the form of an object, even if it is known; undefined if nobody has to be asked. */
  refresh(stored: StoredObject): Promise<void> | undefined {
    return this.#isAskedFor(stored) ? this.#load([stored]) : undefined;
  }

  /** Returns an object of this version in another version of the same resource. */
  formIn(other: ServedResource, object: JsonObject): JsonObject {
    if (other === this) return object;
    const webhook = this.#conversion?.webhook;
    return webhook === undefined
      ? other.#formOf(this.storedForm(object))
      : formBy(webhook, { object, apiVersion: apiVersionOf(other.type) });
  }

  /** Returns the stored form of an object of this version. */
  storedForm(object: JsonObject): JsonObject {
    const webhook = this.#conversion?.webhook;
    if (webhook === undefined || webhook.storedVersion === apiVersionOf(this.type))
      return this.#conversion === undefined ? object : this.#conversion.toStored(object);
    const { resourceVersion, ...metadata } = object["metadata"] as JsonObject;
    const form = formBy(webhook, { object: { ...object, metadata }, apiVersion: webhook.storedVersion });
    if (resourceVersion === undefined) return form;
    return { ...form, metadata: { ...(form["metadata"] as JsonObject), resourceVersion } };
  }

  #formOf(object: JsonObject): JsonObject {
    return this.#conversion === undefined ? object : this.#conversion.fromStored(object);
  }

  #isAskedFor(stored: StoredObject): boolean {
    return this.asksWebhook && stored.object["apiVersion"] !== apiVersionOf(this.type);
  }

  #pending(missing: readonly StoredObject[]): PendingConversion {
    return new PendingConversion(async () => {
      const fresh = missing.filter((stored) => !this.#loading.has(stored));
      const loaded = fresh.length === 0 ? undefined : this.#load(fresh);
      for (const stored of fresh) this.#loading.set(stored, loaded as Promise<void>);
      try {
        await Promise.all(missing.map((stored) => this.#loading.get(stored)));
      } finally {
        for (const stored of fresh) this.#loading.delete(stored);
      }
    });
  }

  async #load(missing: readonly StoredObject[]): Promise<void> {
    const { webhook } = this.#conversion as Conversion;
    const forms = await (webhook as WebhookForms).fromStored(missing.map(({ object }) => object));
    missing.forEach((stored, index) => this.#views.set(stored, stored.as(forms[index] as JsonObject, this.#sources)));
  }

  get #sources(): readonly LongIntegers[] {
    const { integersOfDefaults: integers } = this;
    return integers === undefined ? [] : [integers];
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

function formBy(webhook: WebhookForms, to: { object: JsonObject; apiVersion: string }): JsonObject {
  const { object, apiVersion } = to;
  return knownFormOrThrow(`${apiVersion} ${JSON.stringify(object)}`, () => webhook.into(apiVersion, object));
}

/** What a kind demands of its objects; built-in kinds and custom resources implement it differently. */
export interface TypeRules {
  /** What server-side apply knows about the fields. */
  readonly mergeType: MergeType;
  /**
   * Brings an object into the shape of the kind, in place; returns the paths of fields that are not in it.
   *
   * In what an apply made, nulls stay: they stand for what its manager emptied, and the schema may not allow them.
   */
  decode(object: JsonObject, options?: { keepsNulls: boolean }): string[];
  /** Fills in what the client left out, in place; `live` is what the object replaces. */
  fillDefaults(object: JsonObject, live?: JsonObject): void;
  /** Sets what only the server decides, in place, right before the object is checked and stored; returns what to warn of even if it is refused. */
  finish(
    object: JsonObject,
    live: JsonObject | undefined,
    write: { subresource: string; isDryRun: boolean },
  ): readonly string[] | undefined;
  /** Sets, in place, what reading a written object from the store sets, or leaves out. */
  reread?(object: JsonObject): void;
  /** Checks an object outside its metadata; `live` is what it replaces, and `ofMetadata` what is wrong with its metadata. */
  validate(object: JsonObject, live?: JsonObject, ofMetadata?: readonly FieldError[]): FieldError[];
  /** Checks an object that was written through a subresource that changes a part of it; `undefined` is as `validate`. */
  validatePart?(object: JsonObject, live: JsonObject, subresource: string): FieldError[] | undefined;
  /** Checks an object that was written through /status. */
  validateStatus(object: JsonObject, live: JsonObject): FieldError[];
  /** What an update left as it was though it breaks a rule: told even if the update fails. */
  forgiven?(object: JsonObject): readonly string[];
  /** Returns the warnings that a write of this object causes. */
  warnings(object: JsonObject, live?: JsonObject, subresource?: string): string[];
}
