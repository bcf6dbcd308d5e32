// A source of a controller with what the controller knows of it, and what is asked of any source, whoever wrote it.
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { viewOf } from "../cache/resource-view.js";
import { nameOfType } from "../base/resource-definition.js";
import type { SourceHealth } from "../base/activity.js";
import { untilAborted } from "../base/promises.js";
import type { EventSource, EventSourceContext } from "./event-source.js";
import { HealthRecord } from "./health-record.js";
import type { KindSource } from "./kind/kind-source.js";

/** Whom sources are registered for; one for each running controller. */
export interface SourceRegistrar {
  readonly controller: string;
  readonly logger: Logger;
  /** Returns what a source is started with; throws if the controller is stopped. */
  contextOf(source: EventSource): EventSourceContext;
  /** Called each time objects become known that were not. */
  onKnown(): void;
}

/** What a source is registered as. */
export interface SourceRegistration {
  /** Whose it is: of the primaries, of dependents in Kubernetes or of one outside it, or of the user. */
  readonly role: "primaries" | "dependents" | "external" | "user";
  readonly dependents?: readonly string[];
  /** Whether it starts with the first primary that needs it, and stops with the last. */
  readonly isActivatedLater?: boolean;
  /** Whether a reconcile registers it, which fails if it cannot be watched. */
  readonly isRegisteredLater?: boolean;
}

/** How many stages of a start there are before those of the sources that start when this replica leads. */
export const STAGES = 4;

// A source notifies one controller: if two shared it, one of them would get no events.
const registrars = new WeakMap<EventSource, SourceRegistrar>();

/** An event source of one controller, from its registration on. */
export class RegisteredSource {
  readonly source: EventSource;
  readonly name: string;
  readonly role: SourceRegistration["role"];
  readonly dependents: readonly string[];
  readonly isActivatedLater: boolean;
  readonly isRegisteredLater: boolean;
  readonly #registrar: SourceRegistrar;
  /** How what calls it is doing. */
  readonly record: HealthRecord;
  /** The start that is under way or done; absent before, and after a stop. */
  #started: Promise<void> | undefined;
  isStarting = false;
  #endWait = () => {};
  readonly #users = new Set<string>();
  /** The primaries for which it could not be started. */
  readonly #refused = new Set<ObjectKey>();

  constructor(source: EventSource, registrar: SourceRegistrar, as: SourceRegistration) {
    this.source = source;
    this.name = source.name;
    this.role = as.role;
    this.dependents = as.dependents ?? [];
    this.isActivatedLater = as.isActivatedLater ?? source.activationCondition !== undefined;
    this.isRegisteredLater = as.isRegisteredLater ?? false;
    this.#registrar = registrar;
    this.record = new HealthRecord(source.name);
  }

  /** When it starts. The watches are first; the fetches of external dependents may read what all others know. */
  get stage(): number {
    const { startPriority, startsWhenLeading } = this.source;
    const stage = { primaries: 0, dependents: 0, user: startPriority === "first" ? 1 : 2, external: 3 }[this.role];
    return startsWhenLeading === true ? STAGES + stage : stage;
  }

  /** Whether it takes changes of primaries: it was started, or its dependents start it. */
  get isInUse(): boolean {
    return this.#started !== undefined || this.dependents.length > 0;
  }

  /** How it is doing, and what calls it; its getter may fail like any other function of the user. */
  get health(): SourceHealth {
    const { health: calls } = this.record;
    try {
      const { health: stated } = this.source;
      return calls.status === "unhealthy" && stated.status !== "unhealthy" ? calls : stated;
    } catch (error) {
      return { status: "unhealthy", reason: `health failed: ${messageOf(error)}` };
    }
  }

  /**
   * Starts the source, once; resolves when its state is known, or when it is stopped before that. With `settle` a watch that fails is not
   * waited for.
   */
  start(mode: "start" | "settle" = "start"): Promise<void> {
    const { source } = this;
    const context = this.#registrar.contextOf(source);
    const start = isKindSource(source) ? () => source.start(context, mode) : () => source.start(context);
    this.#started ??= this.#begin(start);
    return this.#started;
  }

  /** Says what the source does not know of what may belong to a primary; undefined if nothing waits for that. */
  unknownFor(primary: Parameters<KindSource["unknownFor"]>[0]): string | undefined {
    const { source } = this;
    // What starts for single primaries is known when they are reconciled, or their reconcile fails.
    if (this.isActivatedLater || this.isRegisteredLater) return undefined;
    if (this.#started === undefined || !isKindSource(source)) return undefined;
    return source.unknownFor(primary);
  }

  /**
   * Starts the source for a reconcile of a primary, which must not wait for ever: throws as soon as an attempt fails of what the primary needs,
   * or of anything without a primary. Reconcile and start are tried again.
   */
  async startOrThrow(primary?: KubernetesObject): Promise<void> {
    const { source } = this;
    this.#reserve();
    if (isKindSource(source)) {
      const context = this.#registrar.contextOf(source);
      this.#started ??= this.#begin(async () => {});
      return source.start(context, "startOrThrow", primary);
    }
    try {
      await this.start();
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }

  /** Starts the source for a dependent of a primary; resolves when its state is known, and throws if the start fails now. */
  async activate(dependent: string, primary: ObjectKey): Promise<void> {
    // A source of the user runs whether or not a dependent needs it, unless it has a condition itself.
    if (this.role === "user" && !this.isActivatedLater) return;
    const { source } = this;
    this.#users.add(`${dependent} ${primary}`);
    const context = this.#registrar.contextOf(source);
    try {
      await this.startOrThrow(context.primaries.get(primary)?.object);
    } catch (error) {
      if (isKindSource(source)) this.#refused.add(primary);
      throw error;
    }
  }

  /** Takes that a primary waits for something that the source does not know. */
  refuse(primary: ObjectKey): void {
    this.#refused.add(primary);
  }

  /** Ends the use by a dependent of a primary. The source stops with its last user, unless it runs in any case. */
  async deactivate(dependent: string, primary: ObjectKey): Promise<void> {
    const wasUsed = this.#users.delete(`${dependent} ${primary}`);
    this.#refused.delete(primary);
    if (wasUsed && this.#users.size === 0 && this.isActivatedLater) await this.stop();
  }

  /** Stops the source, and waits for that until `late` is aborted. A failure is logged: it must not keep the other sources running. */
  async stop(late?: AbortSignal): Promise<void> {
    const { name } = this;
    const { controller, logger } = this.#registrar;
    this.#started = undefined;
    this.#endWait();
    if (registrars.get(this.source) === this.#registrar) registrars.delete(this.source);
    this.record.stop();
    try {
      await untilAborted(this.source.stop(), late);
    } catch (error) {
      logger.warn({ controller, source: name }, `event source "${name}" could not be stopped: ${messageOf(error)}`);
    }
  }

  async setNamespaces(namespaces: readonly string[] | undefined): Promise<void> {
    try {
      await this.source.setNamespaces?.(namespaces);
    } catch (error) {
      this.record.fail("setNamespaces", error);
    }
  }

  describe(): string {
    if (this.role === "primaries") return "that of its primaries";
    const type = nameOfType(this.source.type);
    return type === undefined ? "one without resources" : `one of ${type}`;
  }

  async #begin(start: () => Promise<void>): Promise<void> {
    this.#reserve();
    this.record.start(this.#registrar);
    const stopped = new Promise<void>((resolve) => (this.#endWait = resolve));
    try {
      this.isStarting = true;
      // What is stopped while it starts may never have started.
      await Promise.race([start(), stopped]);
    } catch (error) {
      const what = `event source "${this.name}" of controller "${this.#registrar.controller}" could not be started`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    } finally {
      this.isStarting = false;
    }
  }

  // The primaries that were refused are reconciled.
  #noteKnown(): void {
    if (this.#refused.size > 0) {
      const refused = [...this.#refused];
      this.#refused.clear();
      this.#registrar.contextOf(this.source).notify(refused);
    }
    this.#registrar.onKnown();
  }

  #reserve(): void {
    const first = registrars.get(this.source) ?? this.#registrar;
    registrars.set(this.source, first);
    if (first === this.#registrar) {
      if (isKindSource(this.source)) this.source.onKnown = () => this.#noteKnown();
      return;
    }
    const [own, other] = [this.#registrar.controller, first.controller];
    throw new Error(
      `event source "${this.name}" of controller "${own}" belongs to controller "${other}", too; create one for each of them`,
    );
  }
}

/** Tells whether a source shows a kind of Kubernetes; by what it can do, for it may come from another copy of this package. */
export function isKindSource(source: EventSource): source is KindSource {
  return viewOf(source) !== undefined && "following" in source;
}
