// All event sources of one controller: those of its primaries, of its dependents, and of the user.
import { systemClock, type Clock } from "../base/clock.js";
import type { SourceHealth } from "../base/activity.js";
import { uidOf } from "../base/decoded-resource.js";
import { keyOf, type KubernetesObject, type ObjectKey, type ObjectMeta } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { ProofKey } from "../base/proof-key.js";
import type { SecondaryCause } from "../base/reconcile-reason.js";
import { hasType, type SecondaryType } from "../base/resource-definition.js";
import { unseenDeletionOf, type ResourceChange } from "../cache/resource-change.js";
import type { OwnViews } from "../cache/own-views.js";
import { viewOf, type ResourceView } from "../cache/resource-view.js";
import type { EventSource, EventSourceContext, SourcesListener } from "./event-source.js";
import { createExternalDependentSource, createExternalSource, sharedBy } from "./external/external-watch.js";
import type { ExternalDependentSource, ExternalWatch } from "./external/external-watch.js";
import { createDependentSource, groupDependents } from "./kind/dependent-source.js";
import type { DependentSource, DependentWatch } from "./kind/dependent-source.js";
import type { KindSource } from "./kind/kind-source.js";
import { switchNamespaces, type Namespaces } from "./kind/view-watch.js";
import { checkedKeys } from "./mappers.js";
import {
  isKindSource,
  RegisteredSource,
  STAGES,
  type SourceRegistrar,
  type SourceRegistration,
} from "./registered-source.js";

/** What a controller watches. */
export interface ControllerSourcesOptions extends Pick<
  EventSourceContext,
  "client" | "controller" | "fieldManager" | "informers" | "logger"
> {
  readonly primary: KindSource;
  /** Gets the views of all sources, for whoever writes. */
  readonly views: OwnViews;
  readonly dependents: readonly DependentWatch[];
  readonly externals?: readonly ExternalWatch[] | undefined;
  readonly sources?: readonly EventSource[] | undefined;
  readonly namespaces?: Namespaces;
  readonly onAllEvents?: boolean | undefined;
  /** What a watch does to the others that cannot begin. Default: `isolate` */
  readonly watchFailurePolicy?: "isolate" | "block" | undefined;
  readonly clock?: Clock | undefined;
  /** Called when an object has a proof of its link, and the key is not known. */
  onProofUnread?(): void;
}

// So long the start waits for watches that neither begin nor fail. Primaries wait for them in any case.
const SETTLE_MS = 10_000;

/** What the activation conditions of event sources are called with, besides their source. */
interface ActivationArguments {
  readonly primary: KubernetesObject;
  readonly secondary: object;
  readonly context: object;
}

/** The event sources of one controller. */
export class ControllerSources {
  readonly primaries: ResourceView;
  /** The namespaces that are watched; `setNamespaces` changes them. */
  namespaces: Namespaces;
  readonly dependents: ReadonlyMap<string, DependentSource>;
  readonly externals: ReadonlyMap<string, ExternalDependentSource>;
  readonly #options: ControllerSourcesOptions;
  readonly #registrar: SourceRegistrar;
  readonly #primary: RegisteredSource;
  /** All but that of the primaries. */
  readonly #registered = new Map<string, RegisteredSource>();
  /** The sources whose objects the primaries name. */
  #naming: readonly KindSource[] = [];
  #lastChange: Promise<unknown> = Promise.resolve();
  #proofKey: ProofKey | undefined;
  #isProofUnread = false;
  #listener: SourcesListener | undefined;
  /** Ends the wait of the start for primaries. */
  #endWait = () => {};

  constructor(options: ControllerSourcesOptions) {
    const { controller, logger, primary, dependents, externals = [], sources = [] } = options;
    this.#options = options;
    this.namespaces = options.namespaces;
    this.primaries = primary.view;
    const onKnown = () => {
      this.#endWait();
      this.#listener?.onKnown?.();
    };
    this.#registrar = { controller, logger, contextOf: (source) => this.#contextOf(source), onKnown };
    primary.view.onChange((change) => {
      this.#tellSources(change);
      if (change.written !== undefined)
        this.#listener?.onWritten?.(change, { definition: primary.view.definition, primaries: [change.key] });
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
   * Starts all sources in their order; resolves when all is known that can be, and with it the primaries of one namespace at least. Those that
   * start when this replica leads wait for `untilLeading`, which is called when all the rest is known.
   */
  async start(listener: SourcesListener, untilLeading = async () => {}): Promise<void> {
    this.#listener = listener;
    for (const [stage, next] of this.#startOrder().entries()) {
      if (stage === STAGES && this.#listener !== undefined) await untilLeading();
      // A source that is stopped or removed while it starts stays so.
      if (this.#listener === undefined) return;
      const present = next.filter((each) => this.#all().includes(each) && !each.isActivatedLater);
      await Promise.all(present.map((each) => this.#start(each)));
      if (stage === 0) await this.#untilPrimaries();
    }
  }

  /** Whether an object has a proof, and the key is not known. */
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

  /** Takes the key of the proofs: from now on links that it proves count. */
  setProofKey(key: ProofKey): void {
    if (this.#proofKey !== undefined) return;
    this.#proofKey = key;
    // Only links that have a proof were read without the key.
    if (!this.#isProofUnread) return;
    for (const { source } of this.#all()) viewOf(source)?.refreshIndexes();
  }

  /** Says what is not known of what may belong to a primary, so that it must not be reconciled; undefined if all is. */
  unknownFor(primary: KubernetesObject): string | undefined {
    return this.#unknownFor(primary);
  }

  #unknownFor(primary: Parameters<RegisteredSource["unknownFor"]>[0]): string | undefined {
    for (const each of this.#all()) {
      const unknown = each.unknownFor(primary);
      if (unknown !== undefined) return unknown;
    }
    return undefined;
  }

  /** Says why nothing can be reconciled in any of the namespaces; undefined if something can. */
  get problem(): string | undefined {
    const problems = (this.namespaces ?? [undefined]).map((namespace) => {
      const isNamespaced = this.primaries.definition.scope === "Namespaced";
      return this.#unknownFor({ namespace: isNamespaced ? namespace : undefined });
    });
    const isServed = problems.length === 0 || problems.includes(undefined);
    return isServed ? undefined : [...new Set(problems)].join("; ");
  }

  /** Stops everything, in the opposite order; resolves with whether the sources of the user stopped within `deadlineMs` in total. */
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

  /** Asks for primaries to be reconciled; without effect while the sources do not run. */
  notify(primaries: Iterable<ObjectKey>, cause: SecondaryCause & { readonly source: string }): void {
    this.#listener?.onSecondaryChange(primaries, cause);
  }

  /** Returns the sources of a type, in the order in which they were registered; only the one of this name if one is given. */
  find(type: SecondaryType, name?: string): readonly EventSource[] {
    const named = name === undefined ? [...this.#registered.values()] : [this.#named(name)];
    return named.flatMap((each) => (each !== undefined && hasType(each.source, type) ? each.source : []));
  }

  /** Returns the source of this name, or the one of the dependent of this name. */
  get(name: string): EventSource | undefined {
    return this.#named(name)?.source;
  }

  /** Returns the names of all sources, in the order in which they were registered. */
  names(): readonly string[] {
    return [...this.#registered.keys()];
  }

  /**
   * Adds a source while the controller runs; resolves when its state is known, or as much of it as concerns a primary. One that has its name already is returned instead. */
  async register(source: EventSource, primary?: KubernetesObject): Promise<EventSource> {
    const isRegisteredLater = this.#listener !== undefined;
    const registered = this.#named(source.name) ?? this.#add(source, { role: "user", isRegisteredLater });
    // Before the start there is nothing to wait for, and dependents are activated.
    if (isRegisteredLater && registered.dependents.length === 0) await registered.startOrThrow(primary);
    return registered.source;
  }

  /** Stops and removes a source; nothing happens if there is none of this name. */
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
    this.#naming = this.#naming.filter((source) => source !== registered.source);
    const view = viewOf(registered.source);
    if (view !== undefined) this.#options.views.delete(view);
    await registered.stop();
  }

  /**
   * Starts the sources whose activation condition is met for a primary, and ends their use for it where it is not; awaited before each reconcile
   * of it. Throws if such a source cannot be watched now.
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

  /** Has every source fetch what it does not know yet of a primary; awaited before each reconcile of it. */
  async load(primary: KubernetesObject, signal: AbortSignal): Promise<void> {
    const loads = [];
    for (const { source, isInUse } of this.#registered.values())
      if (isInUse && source.load !== undefined) loads.push(source.load(primary, signal));
    if (loads.length > 0) await Promise.all(loads);
  }

  /** Ends a reconcile of a primary: what was fetched for it may be evicted, and what was kept since it went is forgotten. */
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
   * Watches other namespaces, without events for what was known; what is dropped is deleted for the sources alone. Resolves when the state of
   * each is known or its watch has failed; where watches that fail block, it throws then.
   */
  setNamespaces(namespaces: Namespaces): Promise<void> {
    const change = this.#lastChange.then(async () => {
      // The primaries come last: whoever reconciles them finds the secondaries there.
      const following = () =>
        [...this.#registered.values(), this.#primary].flatMap(({ source }) =>
          isKindSource(source) ? (source.following ?? []) : [],
        );
      // What is watched again later may be another object.
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

  /** How each source is doing, by name; dependents that are not activated are unknown. */
  health(): { readonly [name: string]: SourceHealth } {
    return Object.fromEntries(this.#all().map((each) => [each.name, each.health]));
  }

  /** What is wrong with the sources, and which have not started yet, for whoever waits for their start. */
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
    if (!this.#isolates || !isKindSource(registered.source)) return registered.start();
    const { clock = systemClock } = this.#options;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => (cancel = clock.schedule(SETTLE_MS, resolve)));
    await Promise.race([registered.start("settle"), late]).finally(cancel);
  }

  // Without primaries there is nothing to serve, and nothing that anybody could wait for.
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
    return Array.from({ length: 2 * STAGES }, (_, stage) => all.filter((each) => each.stage === stage));
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
    if (isKindSource(source) && source.isNamed) this.#naming = [...this.#naming, source];
    const view = viewOf(source);
    if (view !== undefined) this.#options.views.add(view, source);
    if (view !== undefined && isKindSource(source) && source.connection === undefined)
      source.onWritten = (change, primaries) =>
        this.#listener?.onWritten?.(change, { definition: view.definition, primaries });
    return registered;
  }

  #contextOf({ name }: EventSource): EventSourceContext {
    const { controller, primary, fieldManager, client, informers, logger, clock = systemClock } = this.#options;
    const { onAllEvents = false } = this.#options;
    const listener = this.#listener;
    // A reconcile that was given up may get there after the stop, and nobody would stop the watch any more.
    if (listener === undefined) throw new Error(`controller "${controller}" is stopped`);
    return {
      ...{ controller, fieldManager, client, informers, logger, clock, onAllEvents },
      proofKey: () => this.#findProofKey(),
      primary: primary.view.definition,
      primaries: this.primaries,
      namespaces: this.namespaces,
      secondaryOf: (object) => {
        // What a fetch sees must not be taken for all that there is.
        const unknown = this.unknownFor(object);
        if (unknown !== undefined)
          throw new Error(`what may belong to ${keyOf(object.metadata)} is not known yet: ${unknown}`);
        return listener.secondaryOf?.(object) ?? {};
      },
      knownSecondaryOf: (object) => listener.secondaryOf?.(object) ?? {},
      noteSecondaries: (primaries) => this.#noteSecondaries(primaries),
      notify: (primaries, cause) => {
        // It would fail where nobody knows any more who gave it.
        const keys = checkedKeys(primaries, (type) => {
          return `event source "${name}" names a primary by ${type}; a key is "namespace/name" or "name"`;
        });
        this.#noteSecondaries(keys);
        this.notify(keys, { source: name, ...cause });
      },
    };
  }

  // What a primary names may follow from what it named before, through several sources.
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

/** The event sources of one controller, as its reconciles use them. */
export type SecondarySources = Pick<
  ControllerSources,
  "activate" | "deregister" | "find" | "get" | "load" | "names" | "register"
>;
