// Which objects of other dependents a condition reads, and which of them are gone.
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { nameOfType, type Defined } from "../base/resource-definition.js";
import type { DependentArguments } from "./definition/workflow-definition.js";

type Arguments = DependentArguments<KubernetesObject, object>;

/** Records what one call of a condition reads of `secondary` and by the lookups of the context, without its own dependent. */
export class InputReads {
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
    const noting =
      (lookup: (type: never, options?: never) => unknown) =>
      (type: Defined | string, options?: never): unknown => {
        const found = lookup(type as never, options);
        this.#note(nameOfType(typeof type === "string" ? type : type.definition) ?? "an object", found);
        return found;
      };
    return {
      ...args,
      secondary: new Proxy(args.secondary, {
        get: (target, member) => {
          const value: unknown = Reflect.get(target, member);
          if (typeof member === "string" && member !== this.#dependent) this.#note(member, value);
          return value;
        },
      }),
      // Members of a context that are created on demand stay so.
      context: new Proxy(args.context, {
        get: (target, member) => {
          const value: unknown = Reflect.get(target, member);
          return member === "secondary" || member === "secondaries" ? noting(value as never) : value;
        },
      }),
    };
  }

  #note(name: string, value: unknown): void {
    const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
    this.#reads.set(name, value === undefined || isEmpty);
  }
}
