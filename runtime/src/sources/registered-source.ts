// One event source in its controller, from its registration on: start and stop, the dependents that use it, and the health of its functions.
import type { SourceHealth } from "../base/activity.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import { type ResourceDefinition, nameOfType } from "../base/resource-definition.js";
import { untilAborted } from "../base/wait.js";
import type { ResourceChange } from "../cache/resource-events.js";
import { type ResourceView, viewOf } from "../cache/resource-view.js";
import { type EventSource, type EventSourceContext, HealthRecord } from "./event-source.js";
import type { KindSource, KindSourceContext } from "./kind-source.js";
import type { PrimaryOrNamespace } from "./secondary-mapping.js";

/** The running controller that sources are registered for. */
export interface SourceRegistrar {
  readonly controller: string;
  readonly logger: Logger;
  /** Returns the context to start a source with; throws if the controller is stopped. */
  contextOf(source: EventSource): EventSourceContext;
  /** Called each time objects become known that were not. */
  onKnown(): void;
  /** Called with each change of an object in the cluster of the operator that contains a write of its field managers. */
  onWritten(
    change: ResourceChange,
    about: { readonly definition: ResourceDefinition; readonly primaries: Iterable<ObjectKey> },
  ): void;
}

export interface SourceRegistration {
  readonly role: "primaries" | "dependents" | "external" | "user";
  readonly dependents?: readonly string[];
  /** Whether it starts with the first primary that needs it, and stops with the last. */
  readonly isActivatedLater?: boolean;
  /** Whether a reconcile registers it, and fails if it cannot be watched. */
  readonly isRegisteredLater?: boolean;
}

// A source notifies one controller: the other one would get no events.
const registrars = new WeakMap<EventSource, SourceRegistrar>();

export class RegisteredSource {
  readonly source: EventSource;
  /** The source if it watches a kind, as those of dependents and of `informerSource` do. */
  readonly kind: KindSource | undefined;
  /** The objects of the source; the source of a user may have a view without being a `KindSource`. */
  readonly view: ResourceView | undefined;
  readonly name: string;
  readonly role: SourceRegistration["role"];
  readonly dependents: readonly string[];
  readonly isActivatedLater: boolean;
  readonly isRegisteredLater: boolean;
  readonly #registrar: SourceRegistrar;
  readonly #callbacks: Pick<KindSourceContext, "onKnown" | "onWritten">;
  /** The failures of calls of its functions. */
  readonly record: HealthRecord;
  /** The start in progress or done; absent before it and after a stop. */
  #started: Promise<void> | undefined;
  isStarting = false;
  #endWait = () => {};
  /** The uses, each by a dependent for a primary. */
  readonly #users = new Set<string>();
  /** The primaries that wait for something that the source does not know, or whose watch could not be started. */
  readonly #refused = new Set<ObjectKey>();

  constructor(source: EventSource, registrar: SourceRegistrar, as: SourceRegistration) {
    this.source = source;
    this.kind = isKindSource(source) ? source : undefined;
    this.#callbacks = this.kind === undefined ? {} : this.#callbacksOf(this.kind);
    this.view = viewOf(source);
    this.name = source.name;
    this.role = as.role;
    this.dependents = as.dependents ?? [];
    this.isActivatedLater = as.isActivatedLater ?? source.activationCondition !== undefined;
    this.isRegisteredLater = as.isRegisteredLater ?? false;
    this.#registrar = registrar;
    this.record = new HealthRecord(source.name);
  }

  /** Whether it gets changes of primaries: it was started, or its dependents start it. */
  get isInUse(): boolean {
    return this.#started !== undefined || this.dependents.length > 0;
  }

  /** The health that the source reports, or the failures of its functions. The getter may throw like any other function of the user. */
  get health(): SourceHealth {
    const { health: calls } = this.record;
    try {
      const { health: reported } = this.source;
      return calls.status === "unhealthy" && reported.status !== "unhealthy" ? calls : reported;
    } catch (error) {
      return { status: "unhealthy", reason: `health failed: ${messageOf(error)}` };
    }
  }

  /** Starts the source, once; resolves when its state is known, or when it is stopped. With `settle` a failing watch ends the wait. */
  start(mode: "start" | "settle" = "start"): Promise<void> {
    const { source, kind } = this;
    const context = this.#createContext();
    this.#started ??= this.#begin(() => (kind === undefined ? source.start(context) : kind.start(context, mode)));
    return this.#started;
  }

  /** Describes which objects are not known that may belong to a primary; undefined if its reconcile does not have to wait. */
  unknownFor(primary: PrimaryOrNamespace): string | undefined {
    // The reconcile of a primary starts these sources, and fails if their objects cannot be known.
    if (this.isActivatedLater || this.isRegisteredLater) return undefined;
    return this.#started === undefined ? undefined : this.kind?.unknownFor(primary);
  }

  /**
   * Describes which objects of a namespace, or of any by default, are not known; undefined if all are. The primary is reconciled when they become
   * known.
   */
  unknownIn(primary: ObjectKey, namespace?: string): string | undefined {
    const unknown = this.kind?.unknownIn(namespace);
    if (unknown !== undefined) this.#refused.add(primary);
    return unknown;
  }

  /**
   * Starts the source for a reconcile, which must not wait for ever: throws as soon as an attempt to watch fails. `primary` limits the wait to
   * the namespaces that may hold its objects. A watch keeps trying.
   */
  async startOrThrow(primary?: KubernetesObject): Promise<void> {
    this.#reserve();
    if (this.kind !== undefined) {
      const context = this.#createContext();
      // In use from now on, without a wait for all of its namespaces.
      this.#started ??= this.#begin(async () => {});
      return this.kind.start(context, "startOrThrow", primary);
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
    // A source of the user runs in any case, unless it has an activation condition itself.
    if (this.role === "user" && !this.isActivatedLater) return;
    this.#users.add(`${dependent} ${primary}`);
    const context = this.#registrar.contextOf(this.source);
    try {
      await this.startOrThrow(context.primaries.get(primary)?.object);
    } catch (error) {
      if (this.kind !== undefined) this.#refused.add(primary);
      throw error;
    }
  }

  /** Ends the use by a dependent of a primary. The source stops with its last user, unless it runs in any case. */
  async deactivate(dependent: string, primary: ObjectKey): Promise<void> {
    const wasUsed = this.#users.delete(`${dependent} ${primary}`);
    this.#refused.delete(primary);
    if (wasUsed && this.#users.size === 0 && this.isActivatedLater) await this.stop();
  }

  /** Stops the source; waits until `late` is aborted. A failure is logged, and does not keep the other sources from being stopped. */
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

  #createContext(): KindSourceContext {
    return Object.assign(this.#registrar.contextOf(this.source), this.#callbacks);
  }

  async #begin(start: () => Promise<void>): Promise<void> {
    this.#reserve();
    this.record.start(this.#registrar);
    const stopped = new Promise<void>((resolve) => (this.#endWait = resolve));
    try {
      this.isStarting = true;
      // The start of a source that is stopped meanwhile may never resolve.
      await Promise.race([start(), stopped]);
    } catch (error) {
      const what = `event source "${this.name}" of controller "${this.#registrar.controller}" could not be started`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    } finally {
      this.isStarting = false;
    }
  }

  #callbacksOf({ connection, view: { definition } }: KindSource): Pick<KindSourceContext, "onKnown" | "onWritten"> {
    const onKnown = () => this.#noteKnown();
    // The field managers of the operator write in its own cluster.
    if (connection !== undefined) return { onKnown };
    return { onKnown, onWritten: (change, primaries) => this.#registrar.onWritten(change, { definition, primaries }) };
  }

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
    if (first === this.#registrar) return;
    const [own, other] = [this.#registrar.controller, first.controller];
    throw new Error(
      `event source "${this.name}" of controller "${own}" belongs to controller "${other}", too; create one for each of them`,
    );
  }
}

// By its members, since the source may come from another copy of this package.
function isKindSource(source: EventSource): source is KindSource {
  return viewOf(source) !== undefined && "following" in source;
}
