import type { ObjectKey } from "../base/kubernetes-object.js";
import type { EventSourceContext } from "./event-source.js";
import { isKindSource, type RegisteredSource } from "./registered-source.js";

/** Runs the source of dependents as long as a primary needs it for one of them. */
export class Activation {
  readonly #registered: RegisteredSource;
  readonly #contextOf: () => EventSourceContext;
  readonly #users = new Set<string>();
  readonly #refused = new Set<ObjectKey>();

  constructor(registered: RegisteredSource, contextOf: () => EventSourceContext) {
    this.#registered = registered;
    this.#contextOf = contextOf;
  }

  /** Starts the source for a dependent of a primary; resolves when the state is known, and throws if that fails now. */
  async activate(dependent: string, primary: ObjectKey): Promise<void> {
    this.#users.add(`${dependent} ${primary}`);
    const context = this.#contextOf();
    try {
      await this.#registered.startOrThrow(context);
    } catch (error) {
      this.#refuse(primary, context);
      throw error;
    }
  }

  /** Gives the source up for a dependent of a primary; with the last one it is stopped, unless it runs in any case. */
  async deactivate(dependent: string, primary: ObjectKey): Promise<void> {
    const wasUsed = this.#users.delete(`${dependent} ${primary}`);
    this.#refused.delete(primary);
    if (wasUsed && this.#users.size === 0 && this.#registered.isActivatedLater) await this.#registered.stop();
  }

  // The primaries that were refused are reconciled when the state is known after all.
  #refuse(primary: ObjectKey, context: EventSourceContext): void {
    const { source } = this.#registered;
    const notify = () => {
      const refused = [...this.#refused];
      this.#refused.clear();
      context.notify(refused);
    };
    if (this.#refused.size === 0 && isKindSource(source)) void source.start(context).then(notify);
    this.#refused.add(primary);
  }
}
