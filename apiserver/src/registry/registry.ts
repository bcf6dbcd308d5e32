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

/** The served resources by path, and their storage. */
export class Registry {
  readonly store: Store;
  readonly #resources = new Map<string, ServedResource>();
  readonly #customPaths = new Map<string, string[]>();
  readonly #builtinGroups: ReadonlySet<string>;
  readonly #ask: AskWebhook | undefined;
  #types: ServedType[] | undefined;

  /** `ask` calls the conversion webhooks of CRDs; without it, all versions of a custom resource have the same form. */
  constructor(options: { historyLimit?: number | undefined; ask?: AskWebhook } = {}) {
    this.store = new Store(options);
    this.#ask = options.ask;
    let made: Allocator | undefined;
    // Created on first use, so that it sees the Services that were loaded from the data folder.
    const allocator = (): Allocator => (made ??= createAllocator(this.store.resource("services")));
    const types = builtinTypes();
    this.#builtinGroups = new Set(types.map(({ group }) => group));
    for (const type of types) this.#add(this.#builtinResource(type, allocator));
  }

  /** The storage of Namespaces, needed by every write to a namespaced resource. */
  get namespaces(): ResourceStore {
    return this.store.resource("namespaces");
  }

  /** All served types, built-in ones first. */
  get types(): ServedType[] {
    return (this.#types ??= [...this.#resources.values()].map(({ type }) => type));
  }

  /** All served resources. */
  get resources(): Iterable<ServedResource> {
    return this.#resources.values();
  }

  /** Returns the resource at a path, or undefined. */
  find(path: { group: string; version: string; plural: string }): ServedResource | undefined {
    return this.#resources.get(pathOf(path));
  }

  /** True for built-in API groups; they respond to unknown resources differently. */
  isBuiltinGroup(group: string): boolean {
    return this.#builtinGroups.has(group);
  }

  /** Replaces the served types of a CustomResourceDefinition; an empty list stops serving it. */
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
    // A watch cannot resume from a revision before its type existed.
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

/** Converts between the stored form of a resource and one of its versions. */
export interface Conversion {
  toStored(object: JsonObject): JsonObject;
  /** Returns the stored object itself if the forms are equal. */
  fromStored(object: JsonObject): JsonObject;
  /** Converts by webhook, if the CRD configures one. */
  webhook?: WebhookForms;
}

/** Conversion of a custom resource by its webhook. */
export interface WebhookForms {
  /** The apiVersion that new writes are stored in. */
  readonly storedVersion: string;
  /** Converts stored objects to the version of the resource. */
  fromStored(objects: readonly JsonObject[]): Promise<JsonObject[]>;
  /** Converts an object to any version. */
  into(apiVersion: string, object: JsonObject): Promise<JsonObject>;
}

/** One version of a resource: its type, rules, and objects. */
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
    /** Called on first use: most types of a server are never used. */
    rules: () => TypeRules;
    conversion?: Conversion;
    /** Returns the stored CRD of a custom type. */
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

  /** 64-bit integers in the defaults of the CRD that lose precision as JavaScript numbers. */
  get integersOfDefaults(): LongIntegers | undefined {
    const integers = this.#definitionOf()?.integers;
    return integers === undefined ? undefined : integersOfDefaults(integers);
  }

  /** True if objects may have to be converted by a webhook; methods that need a missing form throw a PendingConversion. */
  get asksWebhook(): boolean {
    return this.#conversion?.webhook !== undefined;
  }

  /** Returns an object in this version. Results are cached, so that each form is encoded as JSON once. */
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

  /** Ensures that the objects can be read; throws one PendingConversion for all that are missing. */
  require(objects: readonly StoredObject[]): void {
    if (!this.asksWebhook) return;
    const missing = objects.filter((stored) => !this.#views.has(stored) && this.#isAskedFor(stored));
    if (missing.length > 0) throw this.#pending(missing);
  }

  /** Converts an object again, even if its form is cached; undefined if no webhook is needed. */
  refresh(stored: StoredObject): Promise<void> | undefined {
    return this.#isAskedFor(stored) ? this.#load([stored]) : undefined;
  }

  /** Converts an object of this version to another version of the same resource. */
  formIn(other: ServedResource, object: JsonObject): JsonObject {
    if (other === this) return object;
    const webhook = this.#conversion?.webhook;
    return webhook === undefined
      ? other.#formOf(this.storedForm(object))
      : formBy(webhook, { object, apiVersion: apiVersionOf(other.type) });
  }

  /** Converts an object of this version to its stored form. */
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

  /** Returns an object in this version as JSON. */
  jsonOf(stored: StoredObject): string {
    return this.read(stored).json;
  }

  /** Returns the JSON of an object as a list item; only items of custom resources contain kind and apiVersion. */
  itemJsonOf(stored: StoredObject): string {
    const json = this.jsonOf(stored);
    // These two fields are encoded first, see `normalForm`.
    return this.type.custom === undefined ? `{${json.slice(this.#typeMetaLength)}` : json;
  }
}

function formBy(webhook: WebhookForms, to: { object: JsonObject; apiVersion: string }): JsonObject {
  const { object, apiVersion } = to;
  return knownFormOrThrow(`${apiVersion} ${JSON.stringify(object)}`, () => webhook.into(apiVersion, object));
}

/** Decoding, defaulting, and validation of a kind; implemented for built-in kinds and for custom resources. */
export interface TypeRules {
  /** The schema of server-side apply: list types, keys, and atomic fields. */
  readonly mergeType: MergeType;
  /**
   * Decodes an object into the schema of the kind, in place; returns the paths of unknown fields.
   *
   * `keepsNulls` preserves nulls in the result of an apply: they stand for values that the manager emptied, and the schema may not allow them.
   */
  decode(object: JsonObject, options?: { keepsNulls: boolean }): string[];
  /** Sets defaults, in place; `live` is the object that is replaced. */
  fillDefaults(object: JsonObject, live?: JsonObject): void;
  /** Sets the fields that the server owns, in place, before validation; returns the warnings of a create, which are sent even if it is rejected. */
  finish(
    object: JsonObject,
    live: JsonObject | undefined,
    write: { subresource: string; isDryRun: boolean },
  ): readonly string[] | undefined;
  /** Applies, in place, what decoding the object from storage changes. */
  reread?(object: JsonObject): void;
  /** Validates an object except its metadata. `live` is the object that is replaced; `ofMetadata` contains the errors of its metadata. */
  validate(object: JsonObject, live?: JsonObject, ofMetadata?: readonly FieldError[]): FieldError[];
  /** Validates a write to a subresource that changes a part of the object; returns undefined to use `validate`. */
  validatePart?(object: JsonObject, live: JsonObject, subresource: string): FieldError[] | undefined;
  /** Validates a write to the status subresource. */
  validateStatus(object: JsonObject, live: JsonObject): FieldError[];
  /** Messages for invalid values that the update did not change; sent as warnings even if the update fails. */
  forgiven?(object: JsonObject): readonly string[];
  /** Returns the warnings for a write. */
  warnings(object: JsonObject, live?: JsonObject, subresource?: string): string[];
}
