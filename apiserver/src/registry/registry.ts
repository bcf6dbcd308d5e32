import { resourceNameOf } from "../builtin/resource-name.js";
import { type ServedType, builtinTypes } from "../builtin/served-type.js";
import { isDefinition } from "../object/conditions.js";
import { isNamespace } from "../object/object-meta.js";
import { type ResourceStore, Store } from "../storage/store.js";
import { type Allocator, createAllocator } from "./allocator.js";
import { builtinConversion, scalerRules, storageNameOf } from "./builtin-conversion.js";
import { builtinRules, namespaceRules } from "./builtin-rules.js";
import { type AskWebhook, customConversion } from "./custom-conversion.js";
import { customRules } from "./custom-rules.js";
import { definitionRules } from "./definition-rules.js";
import { ServedResource } from "./served-resource.js";

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
        if (isNamespace(type)) return namespaceRules(rules);
        if (type.group === "autoscaling" && type.version === "v1") return scalerRules(type, rules);
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
