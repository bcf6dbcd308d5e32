// Everything that one controller is told by: its primaries, its dependents, and the event sources of the user.
import { systemClock, type Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { type ResourceDefinition, describeSource, hasType, type SecondaryType } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import type { EventSource, EventSourceContext } from "./event-source.js";
import type { IndexFunction } from "../cache/object-index.js";
import type { ResourceChange } from "../cache/resource-change.js";
import { ResourceView } from "../cache/resource-view.js";
import { type SecondarySources } from "./secondary-sources.js";
import type { SharedInformers } from "../watch/shared-informers.js";
import {
  createDependentSources,
  groupDependents,
  type DependentSource,
  type DependentWatch,
} from "./kind/dependent-source.js";
import {
  createExternalDependentSource,
  createExternalSource,
  type ExternalDependentSource,
  type ExternalWatch,
} from "./external/external-watch.js";
import { HealthRecord } from "./health-record.js";
import {
  byStart,
  checkedKeys,
  failuresOf,
  followedBy,
  healthOf,
  isViewSource,
  PRIMARY_SOURCE,
  twinsOf,
  type RegisteredSource,
} from "./registered-source.js";
import { switchNamespaces } from "./kind/switch-namespaces.js";
import { ViewWatch, type Namespaces } from "./kind/view-watch.js";
import type { SourceHealth } from "../base/health.js";
import type { SecondaryCause } from "../base/reconcile-reason.js";
import { untilAborted } from "../base/promises.js";

/** What a controller watches, and whom it tells. */
export interface ControllerSourcesOptions {
  /** The name of the controller. */
  readonly controller: string;
  readonly primary: ResourceDefinition;
  readonly dependents: readonly DependentWatch[];
  /** The dependents that Kubernetes does not have. */
  readonly externals?: readonly ExternalWatch[] | undefined;
  /** The event sources of the user. */
  readonly sources?: readonly EventSource[] | undefined;
  readonly namespaces?: Namespaces;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly shardSelector?: string | undefined;
  /** The indexes of the primaries. */
  readonly indexes?: { readonly [name: string]: IndexFunction } | undefined;
  readonly reconcilesOnAllEvents?: boolean | undefined;
  readonly fieldManager: string;
  readonly client: ApiClient;
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly clock?: Clock | undefined;
  onPrimaryChange(change: ResourceChange): void;
  onSecondaryChange(primaries: Iterable<ObjectKey>, cause: SecondaryCause & { readonly source: string }): void;
}

// Whom a source tells while it runs: one that two controllers share would tell one of them.
const owners = new WeakMap<EventSource, ControllerSources>();

/** The event sources of one controller. */
export class ControllerSources implements SecondarySources {
  /** What the controller sees of its primaries. */
  readonly primaries: ResourceView;
  /** In the order of the dependents. */
  readonly dependents: readonly DependentSource[];
  /** Those of the external dependents, in their order. */
  readonly externals: readonly ExternalDependentSource[];
  readonly #options: ControllerSourcesOptions;
  readonly #primaryWatch: ViewWatch;
  /** What became of the functions of the user that read primaries. */
  readonly #primaryRecord = new HealthRecord(PRIMARY_SOURCE);
  readonly #registered = new Map<string, RegisteredSource>();
  /** The sources of dependents that are started by their activation. */
  readonly #activatedLater: ReadonlySet<EventSource>;
  /** The dependents that share a source of the user, by the name of the source. */
  readonly #users = new Map<string, string>();
  #namespaces: Namespaces;
  #lastChange: Promise<unknown> = Promise.resolve();
  #isStarted = false;

  constructor(options: ControllerSourcesOptions) {
    const {
      primary,
      labelSelector,
      fieldSelector,
      shardSelector,
      indexes,
      dependents,
      externals = [],
      sources = [],
    } = options;
    this.#options = options;
    this.#namespaces = options.namespaces;
    this.primaries = new ResourceView(primary, indexes, {
      onIndexFailure: (...failure) => this.#primaryRecord.noteIndex(...failure),
    });
    const request = { definition: primary, labelSelector, fieldSelector, shardSelector };
    const onChange = (change: ResourceChange) => this.#onPrimaryChange(change);
    this.#primaryWatch = new ViewWatch({ view: this.primaries, request, onChange });
    this.primaries.setOwner(this, () => this.#twinsOf({ view: this.primaries }));
    const groups = groupDependents(dependents, primary);
    const own = externals.map(createExternalSource);
    this.#activatedLater = new Set<EventSource>([
      ...groups.flatMap(({ source, members }) => (members[0]!.isActivatedLater ? source : [])),
      ...own.flatMap((each, index) => (externals[index]!.isActivatedLater ? (each ?? []) : [])),
    ]);
    for (const { source, members } of groups)
      this.#add(
        source,
        members.map(({ name }) => name),
      );
    externals.forEach(({ name }, index) => own[index] !== undefined && this.#add(own[index], [name]));
    for (const source of sources) this.#add(source);
    for (const { name, origin } of externals) if (origin.kind === "eventSource") this.#users.set(origin.name, name);
    for (const { name, eventSource } of dependents) if (eventSource !== undefined) this.#users.set(eventSource, name);
    const facts = {
      named: (name: string) => this.#named(name)?.source,
      names: () => this.names(),
      contextOf: (source: EventSource) => {
        // A reconcile that was given up may get there after the stop, and nobody would stop the watch any more.
        if (!this.#isStarted) throw new Error(`controller "${options.controller}" is stopped`);
        return this.#contextOf(source);
      },
    };
    this.dependents = createDependentSources(dependents, { groups, primary, ...facts });
    this.externals = externals.map((each, index) => createExternalDependentSource(each, own[index], facts));
  }

  /**
   * Starts the primaries and the dependents in Kubernetes, then the sources that come first, then the others, then the external dependents, which
   * may be fetched by what all of these know; resolves when the whole state is known.
   */
  async start(): Promise<void> {
    this.#isStarted = true;
    this.#primaryRecord.start(this.#options.logger);
    const { ofDependents, first, others, externals } = byStart(this.#registered.values());
    const isStartedNow = ({ source }: RegisteredSource) => !this.#activatedLater.has(source);
    const watched = this.#startAll(ofDependents.filter(isStartedNow));
    await Promise.all([this.#primaryWatch.start(this.#options.informers, this.#namespaces), watched]);
    for (const next of [first, others, externals]) {
      // What is stopped while it starts stays so, and so does what was removed meanwhile.
      if (!this.#isStarted) return;
      const present = next.filter((each) => this.#registered.get(each.source.name) === each);
      await this.#startAll(present.filter(isStartedNow));
    }
  }

  /**
   * Stops everything, in the opposite order. Sources of the user that take longer than `deadlineMs` all in all are left alone; tells whether
   * there was none.
   */
  async stop(deadlineMs = Infinity): Promise<boolean> {
    this.#isStarted = false;
    const { ofDependents, first, others, externals } = byStart(this.#registered.values());
    const { clock = systemClock } = this.#options;
    const late = new AbortController();
    const cancel =
      deadlineMs < Infinity
        ? clock.schedule(deadlineMs, () => late.abort(new Error("it did not return in time")))
        : () => {};
    await this.#stopAll(externals, late.signal);
    await this.#stopAll(others, late.signal);
    await this.#stopAll(first, late.signal);
    await this.#stopAll(ofDependents);
    this.#primaryRecord.stop();
    await this.#primaryWatch.stop();
    cancel();
    return !late.signal.aborted;
  }

  find(type: SecondaryType, name?: string): readonly EventSource[] {
    const named = name === undefined ? [...this.#registered.values()] : [this.#named(name)];
    return named.flatMap((each) => (each !== undefined && hasType(each.source, type) ? each.source : []));
  }

  /** Returns the source of this name, or the one of the dependent of this name. */
  get(name: string): EventSource | undefined {
    return this.#named(name)?.source;
  }

  names(): readonly string[] {
    return [...this.#registered.keys()];
  }

  async register(source: EventSource): Promise<EventSource> {
    const registered = this.#named(source.name) ?? this.#add(source);
    // Before the start there is nothing to wait for, and dependents are activated.
    if (this.#isStarted && registered.dependents.length === 0) await this.#startNow(registered);
    return registered.source;
  }

  async deregister(name: string): Promise<void> {
    const registered = this.#named(name);
    if (registered === undefined) return;
    if (registered.dependents.length > 0)
      throw new Error(`event source "${name}" belongs to a dependent of controller "${this.#options.controller}"`);
    const user = this.#users.get(name);
    if (user !== undefined)
      throw new Error(
        `event source "${name}" is shared by dependent "${user}" of controller "${this.#options.controller}"`,
      );
    this.#registered.delete(name);
    await this.#stopAll([registered]);
  }

  /** Lets every source fetch what it does not know yet of a primary, before it is reconciled. */
  async load(primary: KubernetesObject, signal: AbortSignal): Promise<void> {
    const loading = [];
    for (const { source, started, dependents } of this.#registered.values())
      if (source.load !== undefined && (started !== undefined || dependents.length > 0))
        loading.push(source.load(primary, signal));
    if (loading.length > 0) await Promise.all(loading);
  }

  /** Says that a reconcile of a primary ended: what was fetched for it may be forgotten. */
  release(primary: ObjectKey): void {
    for (const { source, record } of this.#registered.values())
      if (source.release !== undefined) record.tell("release", () => source.release?.(primary));
  }

  /**
   * Watches other namespaces: first gets their state ready, then shows it in one turn, without events for what was known and for what is
   * dropped. Throws, and leaves everything as it is, if a namespace cannot be watched now.
   */
  setNamespaces(namespaces: Namespaces): Promise<void> {
    const change = this.#lastChange.then(() => this.#setNamespaces(namespaces));
    this.#lastChange = change.catch(() => {});
    return change;
  }

  /** How each source is doing, by name; dependents that are not activated are unknown. */
  health(): { readonly [name: string]: SourceHealth } {
    const all = [...this.#registered].map(([name, each]) => [name, healthOf(each)] as const);
    const ofWatch = this.#primaryWatch.health;
    const ofPrimaries = ofWatch.status === "healthy" ? this.#primaryRecord.health : ofWatch;
    return Object.fromEntries([[PRIMARY_SOURCE, ofPrimaries], ...all]);
  }

  /** What is wrong with the sources, and which have not started yet, for whoever waits for their start. */
  get failures(): readonly string[] {
    const { controller, primary } = this.#options;
    return failuresOf({ registered: this.#registered, health: this.health(), controller, primary });
  }

  async #setNamespaces(namespaces: Namespaces): Promise<void> {
    const onSwitch = () => void (this.#namespaces = namespaces);
    try {
      await switchNamespaces(namespaces, { following: () => this.#following(), onSwitch });
    } catch (error) {
      const what = `the namespaces of controller "${this.#options.controller}" stay as they are`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    }
    const told = [...this.#registered.values()].map(async ({ source, record }) => {
      try {
        await source.setNamespaces?.(namespaces);
      } catch (error) {
        record.fail("setNamespaces", error);
      }
    });
    await Promise.all(told);
  }

  // The primaries come last: whoever reconciles them finds the secondaries there.
  #following(): readonly ViewWatch[] {
    return [...followedBy(this.#registered.values()), this.#primaryWatch];
  }

  // The primaries are a source as well.
  #twinsOf(source: Pick<EventSource, "view" | "client">): Iterable<ResourceView> {
    const all = [...this.#registered.values()].map((each) => each.source);
    return twinsOf(source, [{ view: this.primaries }, ...all]);
  }

  #named(name: string): RegisteredSource | undefined {
    return (
      this.#registered.get(name) ?? [...this.#registered.values()].find(({ dependents }) => dependents.includes(name))
    );
  }

  #add(source: EventSource, dependents: readonly string[] = []): RegisteredSource {
    const { name } = source;
    const known = this.#named(name)?.source;
    if (name === PRIMARY_SOURCE || known !== undefined)
      throw new Error(
        `controller "${this.#options.controller}" has two event sources named "${name}": ${known === undefined ? "that of its primaries" : describeSource(known)} ` +
          `and ${describeSource(source)}; give one of them another name`,
      );
    const registered: RegisteredSource = { source, dependents, record: new HealthRecord(name), isStarting: false };
    this.#registered.set(name, registered);
    source.view?.setOwner(this, () => this.#twinsOf(source));
    return registered;
  }

  async #startAll(registered: readonly RegisteredSource[]): Promise<void> {
    await Promise.all(registered.map((each) => this.#start(each)));
  }

  #start(registered: RegisteredSource): Promise<void> {
    registered.started ??= this.#begin(registered, (source, context) => source.start(context));
    return registered.started;
  }

  // A reconcile that registers a source must not wait for ever; it is tried again, and so is the source.
  async #startNow(registered: RegisteredSource): Promise<void> {
    const { source } = registered;
    this.#own(source);
    if (isViewSource(source)) {
      registered.started ??= this.#begin(registered, async () => {});
      return source.startOrThrow(this.#contextOf(source));
    }
    try {
      await this.#start(registered);
    } catch (error) {
      registered.started = undefined;
      throw error;
    }
  }

  #own(source: EventSource): void {
    const owner = owners.get(source) ?? this;
    owners.set(source, owner);
    if (owner === this) return;
    const [own, other] = [this.#options.controller, owner.#options.controller];
    throw new Error(
      `event source "${source.name}" of controller "${own}" belongs to controller "${other}", too; create one for each of them`,
    );
  }

  async #begin(
    registered: RegisteredSource,
    start: (source: EventSource, context: EventSourceContext) => Promise<void>,
  ): Promise<void> {
    const { source, record } = registered;
    this.#own(source);
    record.start(this.#options.logger);
    const stopped = new Promise<void>((resolve) => (registered.giveUp = resolve));
    try {
      registered.isStarting = true;
      // What is stopped while it starts may never have started.
      await Promise.race([start(source, this.#contextOf(source)), stopped]);
    } catch (error) {
      const { controller } = this.#options;
      const what = `event source "${source.name}" of controller "${controller}" could not be started`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    } finally {
      registered.isStarting = false;
    }
  }

  async #stopAll(registered: readonly RegisteredSource[], late?: AbortSignal): Promise<void> {
    const { logger, controller } = this.#options;
    const stop = async (each: RegisteredSource) => {
      each.started = undefined;
      each.giveUp?.();
      if (owners.get(each.source) === this) owners.delete(each.source);
      each.record.stop();
      const { name } = each.source;
      try {
        await untilAborted(each.source.stop(), late);
      } catch (error) {
        // One that cannot be stopped must not keep the others running.
        logger.warn({ controller, source: name }, `event source "${name}" could not be stopped: ${messageOf(error)}`);
      }
    };
    await Promise.all(registered.map(stop));
  }

  #contextOf({ name }: EventSource): EventSourceContext {
    const { controller, primary, fieldManager, client, informers, logger, clock = systemClock } = this.#options;
    const { reconcilesOnAllEvents = false } = this.#options;
    return {
      ...{ controller, primary, fieldManager, client, informers, logger, clock, reconcilesOnAllEvents },
      primaries: this.primaries,
      namespaces: this.#namespaces,
      notify: (primaries, cause) =>
        this.#options.onSecondaryChange(checkedKeys(name, primaries), { source: name, ...cause }),
    };
  }

  // Sources are told first: what they know of a primary is there when it is reconciled.
  #onPrimaryChange(change: ResourceChange): void {
    for (const { source, started, dependents, record } of this.#registered.values())
      if ((started !== undefined || dependents.length > 0) && source.onPrimaryChange !== undefined)
        record.tell("onPrimaryChange", () => source.onPrimaryChange?.(change));
    this.#options.onPrimaryChange(change);
  }
}
