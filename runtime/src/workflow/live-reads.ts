// Which live objects of a dependent its `desired` has read: a write replaces no other object, and no other version of these.
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { Defined, ResourceDefinition } from "../base/resource-definition.js";
import type { DependentArguments } from "./definition/workflow-definition.js";

type Arguments = DependentArguments<KubernetesObject, object>;

/** The versions in which one call of `desired` read the objects of its own dependent, by key; absent if it read none of them. */
export type SeenVersions = ReadonlyMap<ObjectKey, string | undefined>;

/** Watches one call of `desired` for reads of the objects that it states. */
export class LiveReads {
  readonly #versions = new Map<ObjectKey, string | undefined>();
  #hasRead = false;

  /** Undefined as long as nothing was read. */
  get versions(): SeenVersions | undefined {
    return this.#hasRead ? this.#versions : undefined;
  }

  /** Returns the arguments of `desired`, which note what is read of the dependent or of its kind. */
  observe(
    { primary, secondary, context }: Arguments,
    { name, resource, bulk }: { name: string; resource: ResourceDefinition; bulk?: object | undefined },
  ): Arguments {
    const isOwnKind = (type: Defined | string) =>
      typeof type !== "string" && type.definition.kind === resource.kind && type.definition.group === resource.group;
    const noting =
      (lookup: (type: never, options?: never) => unknown, all: (found: unknown) => Iterable<unknown>) =>
      (type: never, options?: never): unknown => {
        const found = lookup(type, options);
        if (isOwnKind(type)) this.#note(all(found));
        return found;
      };
    return {
      primary,
      secondary: new Proxy(secondary, {
        get: (target, member) => {
          const value: unknown = Reflect.get(target, member);
          if (member === name) this.#note(bulk === undefined ? [value] : Object.values(value as object));
          return value;
        },
      }),
      // Members of a context that are created on demand stay so.
      context: new Proxy(context, {
        get: (target, member) => {
          const value: unknown = Reflect.get(target, member);
          if (member === "secondary") return noting(value as never, (found) => [found]);
          return member === "secondaries" ? noting(value as never, (found) => found as unknown[]) : value;
        },
      }),
    };
  }

  #note(objects: Iterable<unknown>): void {
    this.#hasRead = true;
    for (const object of objects as Iterable<KubernetesObject | undefined>)
      if (object !== undefined) this.#versions.set(keyOf(object.metadata), object.metadata.resourceVersion);
  }
}
