// The event sources of one controller (JOSDK's EventSourceManager): of its primaries, of its dependents, and of the user.
import type { SecondaryCause, SourceHealth } from "../base/activity.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type ResourceDefinition,
  type SecondaryType,
  hasType,
  keyOf,
  nameOfType,
  uidOf,
} from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import type { ProofKey } from "../base/proof-key.js";
import { type Clock, systemClock, untilAborted } from "../base/wait.js";
import { type ResourceChange, unseenDeletionOf } from "../cache/resource-cache.js";
import { type OwnViews, type ResourceView, viewOf } from "../cache/resource-view.js";
import {
  type DependentSource,
  type DependentWatch,
  type ExternalDependentSource,
  type ExternalWatch,
  createDependentSource,
  createExternalDependentSource,
  createExternalSource,
  groupDependents,
  sharedBy,
} from "./dependent-sources.js";
import { type EventSource, type EventSourceContext, HealthRecord, checkedKeys } from "./event-source.js";
import { type KindSource, type KindSourceContext, type Namespaces, switchNamespaces } from "./kind-source.js";
import type { PrimaryOrNamespace } from "./secondary-mapping.js";

export interface ControllerSourcesOptions extends Pick<
  EventSourceContext,
  "client" | "controller" | "fieldManager" | "informers" | "logger"
> {
  readonly primary: KindSource;
  /** Receives the views of all sources, so that writers can filter own events. */
  readonly views: OwnViews;
  readonly dependents: readonly DependentWatch[];
  readonly externals?: readonly ExternalWatch[] | undefined;
  readonly sources?: readonly EventSource[] | undefined;
  readonly namespaces?: Namespaces;
  readonly onAllEvents?: boolean | undefined;
  /** Whether a failing watch blocks the whole controller. Default: `isolate` */
  readonly watchFailurePolicy?: "isolate" | "block" | undefined;
  readonly clock?: Clock | undefined;
  /** Called when an object has a proof of its link and the key is not loaded. */
  onProofUnread?(): void;
}

// How long the start waits for a watch that neither syncs nor fails. Primaries that need its objects wait longer.
const SETTLE_MS = 10_000;

/** Receives the events of all sources from their start until their stop. */
export interface SourcesListener extends Partial<Pick<SourceRegistrar, "onKnown" | "onWritten">> {
  /** Called for changes of primaries by other clients, after the sources were notified, so that the reconcile reads their current state. */
  onPrimaryChange(change: ResourceChange): void;
  /** Called for each primary that was deleted or is no longer watched. */
  forget(primary: ObjectKey): void;
  onSecondaryChange(primaries: Iterable<ObjectKey>, cause: SecondaryCause & { readonly source: string }): void;
  secondaryOf?(primary: KubernetesObject): object;
}

// Watches start first: fetches of external dependents may read the objects of all other sources.
const STAGES = { primaries: 0, dependents: 0, userFirst: 1, user: 2, external: 3 };
const STAGE_COUNT = 4;

/** Returns the stage in which a source starts. Sources with `startsWhenLeading` have the same stages, after all other sources. */
function stageOf({ role, source }: RegisteredSource): number {
  const stage = STAGES[role === "user" && source.startPriority === "first" ? "userFirst" : role];
  return source.startsWhenLeading === true ? STAGE_COUNT + stage : stage;
}

/** Arguments of activation conditions, except `dependent` and `live`. */
interface ActivationArguments {
  readonly primary: KubernetesObject;
  readonly secondary: object;
  readonly context: object;
}

export class ControllerSources {
  readonly primaries: ResourceView;
  /** The watched namespaces; `setNamespaces` changes them. */
  namespaces: Namespaces;
  readonly dependents: ReadonlyMap<string, DependentSource>;
  readonly externals: ReadonlyMap<string, ExternalDependentSource>;
  readonly #options: ControllerSourcesOptions;
  readonly #registrar: SourceRegistrar;
  readonly #primary: RegisteredSource;
  /** All sources except the primary source. */
  readonly #registered = new Map<string, RegisteredSource>();
  /** Sources with `primaryToSecondary`. */
  #naming: readonly KindSource[] = [];
  #lastChange: Promise<unknown> = Promise.resolve();
  #proofKey: ProofKey | undefined;
  #isProofUnread = false;
  #listener: SourcesListener | undefined;
  /** Ends the wait for primaries at the start. */
  #endWait = () => {};

  constructor(options: ControllerSourcesOptions) {
    const { controller, logger, primary, dependents, externals = [], sources = [] } = options;
    this.#options = options;
    this.namespaces = options.namespaces;
    this.primaries = primary.view;
    this.#registrar = {
      controller,
      logger,
      contextOf: (source) => this.#contextOf(source),
      onKnown: () => {
        this.#endWait();
        this.#listener?.onKnown?.();
      },
      onWritten: (change, about) => this.#listener?.onWritten?.(change, about),
    };
    primary.view.onChange((change) => {
      this.#tellSources(change);
      if (change.written !== undefined)
        this.#registrar.onWritten(change, { definition: primary.view.definition, primaries: [change.key] });
      if (change.madeFor !== change.key) this.#listener?.onPrimaryChange(change);
    });
    this.#primary = new RegisteredSource(primary, this.#registrar, { role: "primaries" });
    options.views.add(primary.view, primary);
    for (const [source, members] of groupDependents(dependents)) {
      const names = members.map(({ name }) => name);
      this.#add(source, { role: "dependents", dependents: names, isActivatedLater: members[0]!.isActivatedLater });
    }
    for (const each of externals) {
      const { name, isActivatedLater } = each;
      const source = createExternalSource(each);
      if (source !== undefined) this.#add(source, { role: "external", dependents: [name], isActivatedLater });
    }
    for (const source of sources) this.#add(source, { role: "user" });
    const dependentOf = (each: DependentWatch) =>
      createDependentSource(each, this.#sourceOf(each.name, each.eventSource), {
        primary: primary.view.definition,
        proofKey: () => this.#findProofKey(),
      });
    const externalOf = (each: ExternalWatch) =>
      createExternalDependentSource(each, this.#sourceOf(each.name, sharedBy(each)), this.primaries);
    this.dependents = new Map(dependents.map((each) => [each.name, dependentOf(each)]));
    this.externals = new Map(externals.map((each) => [each.name, externalOf(each)]));
  }

  /**
   * Starts all sources in order. Resolves when everything that can be synced is synced, at least the primaries of one namespace. Sources that start
   * when this replica leads wait for `untilLeading`, which is called once the other sources have started.
   */
  async start(listener: SourcesListener, untilLeading = async () => {}): Promise<void> {
    this.#listener = listener;
    for (const [stage, next] of this.#startOrder().entries()) {
      if (stage === STAGE_COUNT && this.#listener !== undefined) await untilLeading();
      // A source may be removed, and all sources stopped, while others start.
      if (this.#listener === undefined) return;
      const present = next.filter((each) => this.#all().includes(each) && !each.isActivatedLater);
      await Promise.all(present.map((each) => this.#start(each)));
      if (stage === 0) await this.#untilPrimaries();
    }
  }

  /** Whether an object has a proof of its link and the key is not loaded. */
  get lacksProofKey(): boolean {
    return this.#isProofUnread && this.#proofKey === undefined;
  }

  #findProofKey(): ProofKey | undefined {
    if (this.#proofKey === undefined) {
      this.#isProofUnread = true;
      this.#options.onProofUnread?.();
    }
    return this.#proofKey;
  }

  /** Sets the proof key: links that it proves are valid from now on. */
  setProofKey(key: ProofKey): void {
    if (this.#proofKey !== undefined) return;
    this.#proofKey = key;
    // Otherwise no link with a proof has been read without the key.
    if (!this.#isProofUnread) return;
    for (const { view } of this.#all()) view?.refreshIndexes();
  }

  /** Describes unknown objects that may belong to a primary, which block its reconcile; undefined if all are known. */
  unknownFor(primary: PrimaryOrNamespace): string | undefined {
    for (const each of this.#all()) {
      const unknown = each.unknownFor(primary);
      if (unknown !== undefined) return unknown;
    }
    return undefined;
  }

  /** Describes why primaries cannot be reconciled in any namespace; undefined if they can in at least one. */
  get problem(): string | undefined {
    const problems = (this.namespaces ?? [undefined]).map((namespace) => {
      const isNamespaced = this.primaries.definition.scope === "Namespaced";
      return this.unknownFor({ namespace: isNamespaced ? namespace : undefined });
    });
    const isServed = problems.length === 0 || problems.includes(undefined);
    return isServed ? undefined : [...new Set(problems)].join("; ");
  }

  /** Stops all sources in reverse order. Resolves with whether the user's sources stopped within `deadlineMs` in total. */
  async stop(deadlineMs = Infinity): Promise<boolean> {
    this.#listener = undefined;
    this.#endWait();
    const { clock = systemClock } = this.#options;
    const late = new AbortController();
    const cancel = clock.schedule(deadlineMs, () => late.abort(new Error("it did not return in time")));
    const [watches, ...others] = this.#startOrder();
    for (const next of others.reverse()) await Promise.all(next.map((each) => each.stop(late.signal)));
    await Promise.all(watches!.map((each) => each.stop()));
    cancel();
    return !late.signal.aborted;
  }

  /** Requests reconciles of primaries. No effect while the sources are stopped. */
  notify(primaries: Iterable<ObjectKey>, cause: SecondaryCause & { readonly source: string }): void {
    this.#listener?.onSecondaryChange(primaries, cause);
  }

  /** Returns the sources with a type, or only the named source if it has the type, in the order of registration. */
  find(type: SecondaryType, name?: string): readonly EventSource[] {
    const named = name === undefined ? [...this.#registered.values()] : [this.#named(name)];
    return named.flatMap((each) => (each !== undefined && hasType(each.source, type) ? each.source : []));
  }

  /** Returns the source with this name, or the source of the dependent with this name. */
  get(name: string): EventSource | undefined {
    return this.#named(name)?.source;
  }

  /** Returns the names of all sources in the order of registration. */
  names(): readonly string[] {
    return [...this.#registered.keys()];
  }

  /**
   * Adds a source, even while the controller runs. Resolves when it is synced, or the part of it that may concern `primary`. If a source with this
   * name is registered already, returns that one.
   */
  async register(source: EventSource, primary?: KubernetesObject): Promise<EventSource> {
    const isRegisteredLater = this.#listener !== undefined;
    const registered = this.#named(source.name) ?? this.#add(source, { role: "user", isRegisteredLater });
    // Sources registered before the start are started by it; dependents activate theirs.
    if (isRegisteredLater && registered.dependents.length === 0) await registered.startOrThrow(primary);
    return registered.source;
  }

  /** Stops and removes a source. No effect if there is none with this name. */
  async deregister(name: string): Promise<void> {
    const registered = this.#named(name);
    if (registered === undefined) return;
    const { controller, dependents, externals = [] } = this.#options;
    if (registered.dependents.length > 0)
      throw new Error(`event source "${name}" belongs to a dependent of controller "${controller}"`);
    const sharing =
      dependents.find(({ eventSource }) => eventSource === name) ?? externals.find((each) => sharedBy(each) === name);
    if (sharing !== undefined)
      throw new Error(`event source "${name}" is shared by dependent "${sharing.name}" of controller "${controller}"`);
    this.#registered.delete(name);
    this.#refreshNaming();
    if (registered.view !== undefined) this.#options.views.delete(registered.view);
    await registered.stop();
  }

  /**
   * Starts the sources whose activation condition is met for a primary, and ends its use of the others. Awaited before each reconcile of the primary.
   * Throws if a source cannot be started.
   */
  async activate(args: ActivationArguments): Promise<void> {
    const key = keyOf(args.primary.metadata);
    for (const registered of this.#registered.values()) {
      const { name, type, client = this.#options.client, activationCondition } = registered.source;
      if (activationCondition === undefined) continue;
      const dependent = { name, client, ...(typeof type === "object" && { definition: type }) };
      const result = await activationCondition({ ...args, dependent, live: undefined } as never);
      const isMet = typeof result === "boolean" ? result : (result as { isMet?: unknown } | undefined)?.isMet;
      if (typeof isMet !== "boolean")
        throw new TypeError(
          `the activationCondition of event source "${name}" returned no true, false or { isMet, detail }`,
        );
      await (isMet ? registered.activate(name, key) : registered.deactivate(name, key));
    }
  }

  /** Lets every source fetch resources of a primary that are not known yet. Awaited before each reconcile of the primary. */
  async load(primary: KubernetesObject, signal: AbortSignal): Promise<void> {
    const loads = [];
    for (const { source, isInUse } of this.#registered.values())
      if (isInUse && source.load !== undefined) loads.push(source.load(primary, signal));
    if (loads.length > 0) await Promise.all(loads);
  }

  /** Ends a reconcile of a primary: objects fetched for it may be evicted. If the primary was deleted during the reconcile, its state is dropped. */
  release(primary: KubernetesObject): void {
    const key = keyOf(primary.metadata);
    for (const { source, record } of this.#registered.values())
      if (source.release !== undefined) record.callUnawaited("release", () => source.release?.(key));
    const now = this.primaries.get(key);
    if (uidOf(now) === primary.metadata.uid) return;
    this.#tellSources(unseenDeletionOf(primary));
    if (now !== undefined) this.#tellSources({ kind: "added", key, object: now.object, isInitial: true });
  }

  /**
   * Changes the watched namespaces, without events for objects that stay known. To the sources, primaries of dropped namespaces count as deleted; to
   * the controller they do not. Resolves when each namespace has synced or its watch has failed. With `watchFailurePolicy: "block"`, a failing watch
   * makes it reject.
   */
  setNamespaces(namespaces: Namespaces): Promise<void> {
    const change = this.#lastChange.then(async () => {
      // Primaries are switched last, so that their reconciles find the secondaries.
      const following = () =>
        [...this.#registered.values(), this.#primary].flatMap(({ kind }) => kind?.following ?? []);
      // If the namespace is watched again later, the name may belong to another object.
      const isDropped = ({ namespace }: ObjectMeta) =>
        namespace !== undefined && namespaces?.includes(namespace) === false;
      try {
        const onSwitch = () => {
          this.namespaces = namespaces;
          for (const { object } of this.primaries.list())
            if (isDropped(object.metadata)) this.#tellSources(unseenDeletionOf(object));
        };
        await switchNamespaces(namespaces, following, onSwitch, this.#isolates ? "settle" : "startOrThrow");
      } catch (error) {
        const what = `the namespaces of controller "${this.#options.controller}" stay as they are`;
        throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
      }
      await Promise.all([...this.#registered.values()].map((each) => each.setNamespaces(namespaces)));
    });
    this.#lastChange = change.catch(() => {});
    return change;
  }

  /** Returns the health of each source by name; `unknown` for inactive dependents. */
  health(): { readonly [name: string]: SourceHealth } {
    return Object.fromEntries(this.#all().map((each) => [each.name, each.health]));
  }

  /** Problems of the sources, and sources that have not started, to report during a slow start. */
  get failures(): readonly string[] {
    const { controller, primary } = this.#options;
    const wrong = this.#all().flatMap(({ health: { status, reason } }) =>
      status === "unhealthy" && reason !== undefined ? [reason] : [],
    );
    const waiting = [...this.#registered.values()]
      .filter(({ isStarting, health }) => isStarting && health.reason === undefined)
      .map(({ name }) => `event source "${name}" of controller "${controller}" has not started yet`);
    if (this.#primary.health.status === "unknown")
      waiting.unshift(`the ${primary.view.definition.plural} of controller "${controller}" are not known yet`);
    return [...new Set([...wrong, ...waiting])];
  }

  get #isolates(): boolean {
    return this.#options.watchFailurePolicy !== "block";
  }

  async #start(registered: RegisteredSource): Promise<void> {
    if (!this.#isolates || registered.kind === undefined) return registered.start();
    const { clock = systemClock } = this.#options;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => (cancel = clock.schedule(SETTLE_MS, resolve)));
    await Promise.race([registered.start("settle"), late]).finally(cancel);
  }

  // Without any primaries there is nothing to reconcile.
  async #untilPrimaries(): Promise<void> {
    const { primary } = this.#options;
    while (this.#listener !== undefined && !primary.isPartlySynced)
      await new Promise<void>((resolve) => (this.#endWait = resolve));
  }

  #all(): readonly RegisteredSource[] {
    return [this.#primary, ...this.#registered.values()];
  }

  #startOrder(): readonly (readonly RegisteredSource[])[] {
    const all = this.#all();
    return Array.from({ length: 2 * STAGE_COUNT }, (_, stage) => all.filter((each) => stageOf(each) === stage));
  }

  #named(name: string): RegisteredSource | undefined {
    return this.#registered.get(name) ?? [...this.#registered.values()].find((each) => each.dependents.includes(name));
  }

  #sourceOf(dependent: string, wanted = dependent): RegisteredSource {
    const source = this.#named(wanted);
    if (source !== undefined) return source;
    const all = this.names().join(", ") || "none";
    throw new Error(`dependent "${dependent}" shares event source "${wanted}", which does not exist; there are ${all}`);
  }

  #add(source: EventSource, as: SourceRegistration): RegisteredSource {
    const { name } = source;
    const known = name === this.#primary.name ? this.#primary : this.#named(name);
    const registered = new RegisteredSource(source, this.#registrar, as);
    if (known !== undefined)
      throw new Error(
        `controller "${this.#options.controller}" has two event sources named "${name}": ${known.describe()} and ` +
          `${registered.describe()}; give one of them another name`,
      );
    this.#registered.set(name, registered);
    this.#refreshNaming();
    if (registered.view !== undefined) this.#options.views.add(registered.view, source);
    return registered;
  }

  #refreshNaming(): void {
    this.#naming = [...this.#registered.values()].flatMap(({ kind }) => (kind?.isNamed === true ? kind : []));
  }

  #contextOf({ name }: EventSource): EventSourceContext {
    const { controller, primary, fieldManager, client, informers, logger } = this.#options;
    const { clock = systemClock, onAllEvents = false } = this.#options;
    const listener = this.#listener;
    // An aborted reconcile may try to start a source after the stop; nothing would stop that source.
    if (listener === undefined) throw new Error(`controller "${controller}" is stopped`);
    return {
      ...{ controller, fieldManager, client, informers, logger, clock, onAllEvents },
      proofKey: () => this.#findProofKey(),
      primary: primary.view.definition,
      primaries: this.primaries,
      namespaces: this.namespaces,
      secondaryOf: (object) => {
        // A fetch must not mistake a part of the secondaries for all of them.
        const unknown = this.unknownFor(object);
        if (unknown !== undefined)
          throw new Error(`secondaries of ${keyOf(object.metadata)} are not known yet: ${unknown}`);
        return listener.secondaryOf?.(object) ?? {};
      },
      knownSecondaryOf: (object) => listener.secondaryOf?.(object) ?? {},
      noteSecondaries: (primaries) => this.#noteSecondaries(primaries),
      notify: (primaries, cause) => {
        // An invalid key would fail in the queue, where its source is unknown.
        const keys = checkedKeys(primaries, (type) => {
          return `event source "${name}" names a primary by ${type}; a key is "namespace/name" or "name"`;
        });
        this.#noteSecondaries(keys);
        this.notify(keys, { source: name, ...cause });
      },
    };
  }

  // The secondaries that a primary names may depend on objects that it named before, across several sources.
  #noteSecondaries(primaries: Iterable<ObjectKey>): void {
    const sources = this.#naming;
    if (sources.length === 0) return;
    let keys = [...primaries];
    for (let hop = 0; keys.length > 0 && hop <= sources.length; hop++)
      keys = sources.flatMap((source) => {
        const changed = source.nameAgain(keys);
        if (changed.length > 0) this.notify(changed, { source: source.name });
        return changed;
      });
  }

  #tellSources(change: ResourceChange): void {
    for (const { source, record, isInUse } of this.#registered.values())
      if (isInUse && source.onPrimaryChange !== undefined)
        record.callUnawaited("onPrimaryChange", () => source.onPrimaryChange?.(change));
    if (change.kind !== "deleted") return;
    for (const registered of this.#registered.values())
      if (registered.source.activationCondition !== undefined) void registered.deactivate(registered.name, change.key);
    this.#listener?.forget(change.key);
  }
}

/** The event sources of one controller, as used by its reconciles. */
export type SecondarySources = Pick<
  ControllerSources,
  "activate" | "deregister" | "find" | "get" | "load" | "names" | "register"
>;

/** The running controller that a source is registered with. */
interface SourceRegistrar {
  readonly controller: string;
  readonly logger: Logger;
  /** Returns the context for the start of a source. Throws if the controller is stopped. */
  contextOf(source: EventSource): EventSourceContext;
  /** Called whenever objects become known. */
  onKnown(): void;
  /** Called for each change in the operator's cluster that contains a write of its field managers. */
  onWritten(
    change: ResourceChange,
    about: { readonly definition: ResourceDefinition; readonly primaries: Iterable<ObjectKey> },
  ): void;
}

interface SourceRegistration {
  readonly role: "primaries" | "dependents" | "external" | "user";
  readonly dependents?: readonly string[];
  /** Whether it starts for the first primary that needs it, and stops after the last. */
  readonly isActivatedLater?: boolean;
  /** Whether a reconcile registers it, and fails if it cannot be watched. */
  readonly isRegisteredLater?: boolean;
}

// A source can only notify one controller: another one would receive no events.
const registrars = new WeakMap<EventSource, SourceRegistrar>();

export class RegisteredSource {
  readonly source: EventSource;
  /** The source if it watches a kind, like those of dependents and of `informerSource`. */
  readonly kind: KindSource | undefined;
  /** The objects of the source. A custom source may have a view without being a `KindSource`. */
  readonly view: ResourceView | undefined;
  readonly name: string;
  readonly role: SourceRegistration["role"];
  readonly dependents: readonly string[];
  readonly isActivatedLater: boolean;
  readonly isRegisteredLater: boolean;
  readonly #registrar: SourceRegistrar;
  readonly #callbacks: Pick<KindSourceContext, "onKnown" | "onWritten">;
  /** Records failures of the source's functions. */
  readonly record: HealthRecord;
  /** The start, in progress or done; undefined before it and after a stop. */
  #started: Promise<void> | undefined;
  isStarting = false;
  #endWait = () => {};
  /** The uses of the source: each is a dependent and a primary. */
  readonly #users = new Set<string>();
  /** Primaries waiting for something that the source does not know, or whose watch could not be started. */
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

  /** Whether it receives changes of primaries: it has been started, or dependents activate it. */
  get isInUse(): boolean {
    return this.#started !== undefined || this.dependents.length > 0;
  }

  /** The health reported by the source, unless one of its functions fails. The getter of a custom source may throw. */
  get health(): SourceHealth {
    const { health: calls } = this.record;
    try {
      const { health: reported } = this.source;
      return calls.status === "unhealthy" && reported.status !== "unhealthy" ? calls : reported;
    } catch (error) {
      return { status: "unhealthy", reason: `health failed: ${messageOf(error)}` };
    }
  }

  /** Starts the source, once. Resolves when it is synced or stopped. With `settle`, a failing watch also ends the wait. */
  start(mode: "start" | "settle" = "start"): Promise<void> {
    const { source, kind } = this;
    const context = this.#createContext();
    this.#started ??= this.#begin(() => (kind === undefined ? source.start(context) : kind.start(context, mode)));
    return this.#started;
  }

  /** Describes unknown objects that may belong to a primary; undefined if its reconcile does not have to wait. */
  unknownFor(primary: PrimaryOrNamespace): string | undefined {
    // These sources are started by the reconcile of a primary, which fails if they cannot be synced.
    if (this.isActivatedLater || this.isRegisteredLater) return undefined;
    return this.#started === undefined ? undefined : this.kind?.unknownFor(primary);
  }

  /** Describes unknown objects in a namespace, by default in any; undefined if all are known. The primary is requeued when they become known. */
  unknownIn(primary: ObjectKey, namespace?: string): string | undefined {
    const unknown = this.kind?.unknownIn(namespace);
    if (unknown !== undefined) this.#refused.add(primary);
    return unknown;
  }

  /**
   * Starts the source during a reconcile, which must not wait forever: throws as soon as an attempt to watch fails. The watch keeps retrying.
   * `primary` limits the wait to namespaces that may hold its objects.
   */
  async startOrThrow(primary?: KubernetesObject): Promise<void> {
    this.#reserve();
    if (this.kind !== undefined) {
      const context = this.#createContext();
      // In use from now on, without waiting for all of its namespaces.
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

  /** Starts the source for a dependent of a primary. Resolves when it is synced. Throws if the start fails. */
  async activate(dependent: string, primary: ObjectKey): Promise<void> {
    // A source of the user always runs, unless it has an activation condition.
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

  /** Ends the use by a dependent of a primary. The source stops after its last use, unless it always runs. */
  async deactivate(dependent: string, primary: ObjectKey): Promise<void> {
    const wasUsed = this.#users.delete(`${dependent} ${primary}`);
    this.#refused.delete(primary);
    if (wasUsed && this.#users.size === 0 && this.isActivatedLater) await this.stop();
  }

  /** Stops the source, and waits until `late` is aborted at most. A failure is logged and does not prevent other sources from being stopped. */
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
      // The start of a source that is stopped in the meantime may never resolve.
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
    // The operator's field managers only write in its own cluster.
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

// Checks members instead of the class, because the source may come from another copy of this package.
function isKindSource(source: EventSource): source is KindSource {
  return viewOf(source) !== undefined && "following" in source;
}
