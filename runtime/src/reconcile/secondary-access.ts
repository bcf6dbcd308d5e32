import {
  compareResourceVersions,
  describeObject,
  groupOf,
  keyOf,
  sortedByKey,
  type KubernetesObject,
} from "../base/kubernetes-object.js";
import { type ResourceDefinition, hasType, nameOfType, type SecondaryType } from "../base/resource-definition.js";
import type { EventSource } from "../sources/event-source.js";
import { type SecondarySources } from "../sources/controller-sources.js";
import type { SecondariesOptions, SecondaryOptions } from "../workflow/definition/context.js";
import {
  isKubernetes,
  type KubernetesDependent,
  type WorkflowDefinition,
} from "../workflow/definition/workflow-definition.js";

/** Finds the secondary resources of primaries through the event sources of one controller. */
export class SecondaryAccess {
  readonly #sources: SecondarySources;
  readonly #primary: ResourceDefinition;
  /** Those whose event source is not there while they are inactive. */
  readonly #activated: readonly KubernetesDependent[];

  constructor(sources: SecondarySources, { primary, dependents }: WorkflowDefinition) {
    this.#sources = sources;
    this.#primary = primary;
    const kubernetes = dependents.filter(isKubernetes);
    this.#activated = kubernetes.filter(({ activationCondition }) => activationCondition !== undefined);
  }

  /** Returns the one of a type; throws if there are several. */
  find(primary: KubernetesObject, type: SecondaryType, options: SecondaryOptions & Discovered = {}): unknown {
    const { source, name, namespace } = options;
    const unwatched = discoveredOf(type, options);
    const sources = this.#sourcesOf(type, source);
    const latest = (all: readonly unknown[]) => (typeof type === "string" ? all : latestOf(all as KubernetesObject[]));
    if (name !== undefined) {
      const isNamespaced = typeof type === "string" || type.scope === "Namespaced";
      const key = keyOf({ name, namespace: isNamespaced ? (namespace ?? primary.metadata.namespace) : undefined });
      const blind = sources.find(({ get }) => get === undefined);
      if (blind !== undefined) throw new Error(`event source "${blind.name}" cannot look up a resource by its name`);
      const discovered = unwatched.filter(({ metadata }) => keyOf(metadata) === key);
      return latest([...sources.flatMap((each) => each.get?.(key) ?? []), ...discovered])[0];
    }
    if (namespace !== undefined) throw new Error(`the namespace "${namespace}" is given without a name`);
    const found = latest([...sources.flatMap((each) => each.secondariesOf(primary)), ...unwatched]);
    if (found.length <= 1) return found[0];
    throw new Error(
      `${found.length} resources of the type ${nameOfType(type)} belong to ${describeObject(this.#primary, primary.metadata)}; ask for one by its name, for those ` +
        "of one event source, or for all of them by secondaries()",
    );
  }

  /** Returns all of a type that belong to a primary. */
  list(
    primary: KubernetesObject,
    type: SecondaryType,
    options: SecondariesOptions & Discovered = {},
  ): readonly unknown[] {
    const { source, deduplicated = false } = options;
    if (deduplicated && typeof type === "string")
      throw new Error(
        `resources of the type ${type} have no versions to tell which is the latest; deduplicated is for Kubernetes' kinds`,
      );
    const watched = this.#sourcesOf(type, source).flatMap((each) => each.secondariesOf(primary));
    const unwatched = discoveredOf(type, options);
    const all = [...watched, ...unwatched];
    // Each source is sorted, and all of them together are not.
    return deduplicated || unwatched.length > 0 ? sortedByKey(latestOf(all as KubernetesObject[])) : all;
  }

  #sourcesOf(type: SecondaryType, name: string | undefined): readonly EventSource[] {
    const found = this.#sources.find(type, name);
    if (found.length > 0) return found;
    // The watch of a dependent that is inactive is stopped.
    const isInactive = this.#activated.some(({ resource }) => hasType({ type: resource }, type));
    if (name === undefined && isInactive) return found;
    const which = name === undefined ? "no event source" : `no event source "${name}"`;
    const sources = this.#sources.names().map((name) => {
      const type = nameOfType(this.#sources.get(name)?.type);
      return type === undefined ? `"${name}"` : `${type} ("${name}")`;
    });
    const there = sources.length === 0 ? "there are none" : `there are ${sources.join(", ")}`;
    throw new Error(`${which} of the controller of ${this.#primary.plural} has the type ${nameOfType(type)}; ${there}`);
  }
}

interface Discovered {
  /** Objects of dependents that no event source shows. */
  readonly discovered?: readonly KubernetesObject[];
}

function discoveredOf(type: SecondaryType, { source, discovered = [] }: { source?: string } & Discovered) {
  if (typeof type === "string" || source !== undefined) return [];
  return discovered.filter(({ apiVersion, kind }) => kind === type.kind && groupOf(apiVersion) === type.group);
}

// Several event sources may know one object, and one of them earlier than the other.
function latestOf(objects: readonly KubernetesObject[]): readonly KubernetesObject[] {
  if (objects.length <= 1) return objects;
  const latest = new Map<string, KubernetesObject>();
  for (const object of objects) {
    const { resourceVersion = "" } = object.metadata;
    const key = keyOf(object.metadata);
    const known = latest.get(key)?.metadata;
    if (known === undefined || compareResourceVersions(known.resourceVersion ?? "", resourceVersion) < 0)
      latest.set(key, object);
  }
  return [...latest.values()];
}
