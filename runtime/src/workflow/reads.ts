// Records what a function of the user reads of `secondary` and by the lookups of the context. `desired` must not replace an object in another
// version than the one that it read, and a condition of a cleanup may fail because an object that it reads is gone.
import {
  type Defined,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  keyOf,
  nameOfType,
} from "../base/kubernetes-object.js";
import type { SeenVersions } from "./dependent-reconciler.js";
import type { DependentArguments } from "./workflow-definition.js";

type Arguments = DependentArguments<KubernetesObject, object>;
type Lookup = (type: Defined | string, options?: never) => unknown;

interface ReadObserver {
  /** `found` is the value of a member of `secondary`. */
  onMember(name: string, found: unknown): void;
  /** `found` is what `context.secondary` or `context.secondaries` returned. */
  onLookup(type: Defined | string, found: unknown): void;
}

/** Returns an object whose members are what `see` makes of them. Members that are created on demand stay so. */
export function intercept<Target extends object>(
  target: Target,
  see: (member: string | symbol, value: unknown) => unknown,
): Target {
  return new Proxy(target, { get: (target, member) => see(member, Reflect.get(target, member)) });
}

function observeReads<Args extends Arguments>(args: Args, observer: ReadObserver): Args {
  const seeSecondary = (member: string | symbol, value: unknown) => {
    if (typeof member === "string") observer.onMember(member, value);
    return value;
  };
  const seeContext = (member: string | symbol, value: unknown) => {
    if (member !== "secondary" && member !== "secondaries") return value;
    return (type: Defined | string, options?: never): unknown => {
      const found = (value as Lookup)(type, options);
      observer.onLookup(type, found);
      return found;
    };
  };
  return {
    ...args,
    secondary: intercept(args.secondary, seeSecondary),
    context: intercept(args.context, seeContext),
  };
}

interface OwnDependent {
  readonly name: string;
  readonly resource: ResourceDefinition;
  readonly bulk?: object | undefined;
}

/** The live objects of its own dependent that one call of `desired` reads. */
export class LiveReads implements ReadObserver {
  readonly #dependent: OwnDependent;
  readonly #versions = new Map<ObjectKey, string | undefined>();
  #hasRead = false;

  constructor(dependent: OwnDependent) {
    this.#dependent = dependent;
  }

  /** Undefined as long as nothing was read. */
  get versions(): SeenVersions | undefined {
    return this.#hasRead ? this.#versions : undefined;
  }

  observe(args: Arguments): Arguments {
    return observeReads(args, this);
  }

  onMember(name: string, found: unknown): void {
    if (name !== this.#dependent.name) return;
    this.#note(this.#dependent.bulk === undefined ? [found] : Object.values(found as object));
  }

  onLookup(type: Defined | string, found: unknown): void {
    const { kind, group } = this.#dependent.resource;
    if (typeof type === "string" || type.definition.kind !== kind || type.definition.group !== group) return;
    this.#note(Array.isArray(found) ? found : [found]);
  }

  #note(objects: readonly unknown[]): void {
    this.#hasRead = true;
    for (const object of objects as readonly (KubernetesObject | undefined)[])
      if (object !== undefined) this.#versions.set(keyOf(object.metadata), object.metadata.resourceVersion);
  }
}

/** The objects of other dependents and event sources that one call of a condition reads. */
export class InputReads implements ReadObserver {
  readonly #dependent: string;
  /** What was read, and whether it was missing. */
  readonly #reads = new Map<string, boolean>();

  constructor(dependent: string) {
    this.#dependent = dependent;
  }

  /** Whether something that was read is gone. */
  get lacksAny(): boolean {
    return [...this.#reads.values()].includes(true);
  }

  /** Whether something was read, and all of that is gone. */
  get lacksAll(): boolean {
    return this.#reads.size > 0 && ![...this.#reads.values()].includes(false);
  }

  describeMissing(): string {
    const missing = [...this.#reads].flatMap(([name, isMissing]) => (isMissing ? name : []));
    return missing.length === 0 ? "it reads nothing else" : `${missing.join(", ")}, which it reads, is gone`;
  }

  observe<Args extends Arguments>(args: Args): Args {
    return observeReads(args, this);
  }

  onMember(name: string, found: unknown): void {
    if (name !== this.#dependent) this.#note(name, found);
  }

  onLookup(type: Defined | string, found: unknown): void {
    this.#note(nameOfType(typeof type === "string" ? type : type.definition) ?? "an object", found);
  }

  #note(name: string, value: unknown): void {
    const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
    this.#reads.set(name, value === undefined || isEmpty);
  }
}
