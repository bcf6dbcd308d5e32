import { TerminalError } from "../../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectKey, describeObject } from "../../base/kubernetes-object.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DecodedResource } from "../../decode/decode-resource.js";
import {
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  isOriginal,
  isOwnedBy,
  isWrittenBy,
  OWNER_INDEX,
  PRIMARY_NAME,
} from "../../base/primary-link.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { ObjectWriter } from "../../write/object-writer.js";
import type { WriteCause } from "../../write/send/postponed-write.js";
import { completeDesired, hasLink, keyOfDesired, linkOf, type DesiredObject } from "./dependent-object.js";
import type { DependentDriver, DriverRun, FindRun, Live, Wanted, WriteOutcome } from "./driver.js";
import type { PlanNode } from "../plan.js";
import { claim, isClaimedByOther, notePostponed, noteRemoved, noteWanted, removalOf } from "../wanted-objects.js";
import { removeBy, writeBy } from "./operations.js";
import type { DeletionOptions, KubernetesDependent } from "../definition/workflow-definition.js";

export type { Writer } from "../../write/apply.js";
export type { ObjectWriter } from "../../write/object-writer.js";

/** Where the objects of a dependent are known. */
export interface DependentSource extends Pick<DependentDriver, "activate" | "deactivate"> {
  readonly cache: ResourceView;
  /** The namespaces that it knows, where these are not those of the controller; "all" for all of them. */
  readonly namespaces?: readonly string[] | "all" | undefined;
  /** Returns the keys of the objects that are tied to a primary as dependents are; by the index of owners unless given. */
  tiedTo?(primary: ObjectKey): ReadonlySet<ObjectKey>;
  /** Returns the objects that belong to a primary, whatever tells that; those that are tied to it unless given. */
  secondariesOf?(primary: KubernetesObject): readonly KubernetesObject[];
}

/** What a driver of objects of Kubernetes works with. */
export interface KubernetesDriverOptions {
  readonly node: PlanNode<KubernetesDependent>;
  readonly source: DependentSource;
  readonly writer: ObjectWriter;
  /** Returns the client of the cluster that the objects are in; that of the operator unless given. */
  readonly client?: () => ApiClient;
  /** The name of the controller, by which it knows its objects. */
  readonly controller?: string;
}

/** Finds, writes and removes the objects of one dependent in Kubernetes. */
export class KubernetesDriver implements DependentDriver {
  readonly #definition: KubernetesDependent;
  /** The cluster and kind of its objects. */
  readonly #claimPrefix: string;
  readonly #source: DependentSource;
  readonly #writer: ObjectWriter;
  readonly #client: KubernetesDriverOptions["client"];
  readonly #controller: string | undefined;

  constructor({ node, source, writer, client, controller }: KubernetesDriverOptions) {
    this.#client = client;
    this.#controller = controller;
    this.#definition = node.definition;
    const { cluster = "", resource } = node.definition;
    this.#claimPrefix = JSON.stringify([cluster, resource.group, resource.kind]);
    this.#source = source;
    this.#writer = writer;
  }

  // What is to be orphaned has to be untied before its primary goes.
  get isGarbageCollected(): boolean {
    return this.#definition.isGarbageCollected && this.#definition.onDelete !== "orphan";
  }

  get capabilities(): DependentDriver["capabilities"] {
    const isWritten = !this.#isReadOnly;
    return { write: isWritten, remove: isWritten && this.#definition.operations?.delete !== false };
  }

  get client(): ApiClient | undefined {
    return this.#client?.();
  }

  activate(primary: ObjectKey): Promise<void> {
    return this.#source.activate(primary);
  }

  deactivate(primary: ObjectKey): Promise<void> {
    return this.#source.deactivate(primary);
  }

  complete({ primary, definition, namespaces, context }: DriverRun, desired: unknown, item?: string): Wanted {
    const dependent = this.#definition;
    const owner = { primary, definition, controller: this.#controller };
    const watched = this.#namespacesIn(namespaces);
    const object = completeDesired(desired, { dependent, ...owner, namespaces: watched, item });
    const id = keyOfDesired(object);
    const rival = claim(context, dependent.name, this.#claimOn(id));
    if (rival !== dependent.name)
      throw new TerminalError(
        `desired() of dependent "${dependent.name}" returned ${describeObject(dependent.resource, object.metadata)}, which dependent ` +
          `"${rival}" wants as well; give one of them another name`,
      );
    noteWanted(context, dependent.name, id);
    return { id, object };
  }

  find({ primary, context }: FindRun, wanted?: Wanted): DecodedResource | undefined {
    if (this.#isReadOnly) return this.#onlyOf(primary);
    if (wanted !== undefined) return this.#tied(primary, wanted.id);
    const own = this.#ownOf(primary, context).filter(({ object }) => itemOf(object) === undefined);
    return own.length > 1 ? own.sort(byAge)[0] : own[0];
  }

  findItems({ primary, context }: FindRun): ReadonlyMap<string, Live> {
    const items = new Map<string, DecodedResource>();
    const isOwn = !this.#isReadOnly;
    for (const entry of isOwn ? this.#ownOf(primary, context) : this.#secondariesOf(primary)) {
      const key = itemOf(entry.object) ?? (isOwn ? undefined : nameIn(primary, entry.object));
      if (key === undefined) continue;
      const other = items.get(key);
      // The latest stands for its item; an older one with another name is a leftover.
      if (other === undefined || (isOwn && byAge(entry, other) < 0)) items.set(key, entry);
    }
    return items;
  }

  findLeftovers(
    { primary: { metadata } }: Pick<DriverRun, "primary">,
    isMeant: (dependent: string, id: ObjectKey) => boolean,
  ): readonly DecodedResource[] {
    const controller = this.#controller;
    if (this.#isReadOnly || controller === undefined) return [];
    return [...this.#tiedTo(keyOf(metadata))].flatMap((key) => {
      const entry = this.#source.cache.get(key);
      const live = entry?.object.metadata;
      const name = live?.annotations?.[DEPENDENT_NAME];
      if (live === undefined || name === undefined || !isMeant(name, key)) return [];
      // An owner of the name of the primary may be an earlier one.
      const isTied = isOwnedBy(live, metadata) || live.annotations?.[PRIMARY_NAME] === metadata.name;
      return isTied && isWrittenBy(live, controller) === true && this.#isGenuine(entry!) ? entry! : [];
    });
  }

  async write(run: DriverRun, wanted: Wanted, found: Live | undefined): Promise<WriteOutcome> {
    const { context, primary } = run;
    const { mode, operations } = this.#definition;
    const desired = wanted.object as DesiredObject;
    const live = await this.#liveAs(wanted, found as DecodedResource | undefined, { context, primary });
    if (live?.object.metadata.deletionTimestamp !== undefined) return "waiting";
    const isOnlyCreated = mode === "createOnly";
    const isKept = live !== undefined && isOnlyCreated;
    const isMatch = isKept || (live !== undefined && (await this.#matches(desired, live.object, context)));
    if (isMatch === true) return "unchanged";
    const isForced = isMatch === "differs";
    return writeBy(operations, { run, desired, live: live?.object }, () =>
      this.#apply(run, wanted, { live, isForced }),
    );
  }

  async #apply(
    { context, primary }: DriverRun,
    wanted: Wanted,
    { live, isForced }: { readonly live: DecodedResource | undefined; readonly isForced: boolean },
  ): Promise<WriteOutcome> {
    const { mode, existing, name } = this.#definition;
    const desired = wanted.object as DesiredObject;
    const isOnlyCreated = mode === "createOnly";
    const written = await this.#writer.apply(this.#target, desired, {
      live,
      existing,
      // What is only created has its content from whoever made it.
      adoption: isOnlyCreated ? linkOf(desired) : undefined,
      isOnlyCreated,
      isForced,
      cause: this.#causeOf({ primary, context }),
    });
    if (written.kind === "postponed") {
      notePostponed(context, name);
      return written;
    }
    const { kind, verdict } = written;
    if (verdict !== undefined && live !== undefined)
      context.logger.debug({ dependent: name, ...verdict }, "the live object was not as desired");
    return kind === "terminating" ? "waiting" : kind;
  }

  async remove(run: DriverRun, live: Live): Promise<void> {
    const object = live.object as KubernetesObject;
    const isOnItsWay = object.metadata.deletionTimestamp !== undefined;
    const operation = isOnItsWay ? false : this.#definition.operations?.delete;
    const removal = removeBy(operation, { run, live: object }, (options) =>
      this.#remove(live as DecodedResource, run, options),
    );
    noteRemoved(run.context, object.metadata.uid, removal);
    await removal;
  }

  async #remove(live: DecodedResource, run: DriverRun, options?: DeletionOptions): Promise<void> {
    const cause = this.#causeOf(run);
    if (this.#definition.onDelete !== "orphan")
      await this.#writer.delete(this.#target, live.object, { ...options, cause });
    else await this.#writer.untie(this.#target, live, { primary: run.primary, cause });
  }

  // A step that ran out of time cancels what it writes.
  #causeOf({ primary, context }: Pick<DriverRun, "primary" | "context">): WriteCause {
    const { signal, logger } = context;
    return { signal, logger, primary, dependent: this.#definition.name };
  }

  async #liveAs(
    { id }: Wanted,
    found: DecodedResource | undefined,
    { context, primary }: Pick<DriverRun, "context" | "primary">,
  ): Promise<DecodedResource | undefined> {
    // An item may get another name; what has the old one is not what is written.
    const isNamed = found !== undefined && keyOf(found.object.metadata) === id;
    const live = isNamed ? found : this.#tied(primary, id);
    // Another dependent had the object, and deletes it just now.
    const removal = removalOf(context, live?.object.metadata.uid);
    if (removal === undefined) return live;
    await Promise.allSettled([removal]);
    return this.#tied(primary, id);
  }

  /** Tells what the matcher of the user says; false if there is none, so that the writer compares. */
  async #matches(
    desired: DesiredObject,
    live: KubernetesObject,
    context: DriverRun["context"],
  ): Promise<boolean | "differs"> {
    const { matcher, resource, name } = this.#definition;
    if (matcher === undefined) return false;
    // It does not know of the link, which has to be there in any case.
    if (!hasLink(live, desired)) return "differs";
    const { apiVersion, kind } = resource;
    const isMatch: unknown = await matcher({ apiVersion, kind, ...desired } as never, live as never, context as never);
    if (typeof isMatch !== "boolean")
      throw new TerminalError(`the matcher of dependent "${name}" returned ${typeof isMatch} instead of a boolean`);
    return isMatch || "differs";
  }

  #tied({ metadata }: KubernetesObject, key: ObjectKey): DecodedResource | undefined {
    return this.#tiedTo(keyOf(metadata)).has(key) ? this.#source.cache.get(key) : undefined;
  }

  /** What was made as this dependent. */
  #ownOf({ metadata }: KubernetesObject, context?: object): DecodedResource[] {
    const { name } = this.#definition;
    const isTaken = (key: ObjectKey) => context !== undefined && isClaimedByOther(context, name, this.#claimOn(key));
    const own: DecodedResource[] = [];
    for (const key of this.#tiedTo(keyOf(metadata))) {
      const entry = this.#source.cache.get(key);
      if (entry !== undefined && this.#isOwn(entry) && !isTaken(key)) own.push(entry);
    }
    return own;
  }

  #isOwn(entry: DecodedResource): boolean {
    const { metadata } = entry.object;
    // A watch of the user may show objects of which somebody took the label off.
    const isOurs = this.#controller === undefined || isWrittenBy(metadata, this.#controller) !== false;
    return isOurs && metadata.annotations?.[DEPENDENT_NAME] === this.#definition.name && this.#isGenuine(entry);
  }

  // A copy that somebody made of an object has its annotations, and another name. Earlier versions did not write the name: what they
  // applied is told from its copies by its managed fields, as long as nobody strips these.
  #isGenuine({ object, owned }: DecodedResource): boolean {
    const { usesServerSideApply = true } = this.#definition;
    return isOriginal(object.metadata) ?? (!usesServerSideApply || owned !== undefined);
  }

  #onlyOf(primary: KubernetesObject): DecodedResource | undefined {
    const all = this.#secondariesOf(primary);
    if (all.length <= 1) return all[0];
    const { resource, name } = this.#definition;
    const names = all.map(({ object }) => keyOf(object.metadata)).join(", ");
    throw new Error(
      `${all.length} ${resource.plural} belong to its primary (${names}), and dependent "${name}" is one; limit it by a labelSelector or ` +
        "a fieldSelector, or make it a bulk dependent",
    );
  }

  // What other dependents made of the same kind is theirs.
  #secondariesOf(primary: KubernetesObject): DecodedResource[] {
    const { name } = this.#definition;
    const tied = () => [...this.#tiedTo(keyOf(primary.metadata))].sort();
    const all: readonly DecodedResource[] =
      this.#source.secondariesOf?.(primary).map((object) => ({ object })) ??
      tied().flatMap((key) => this.#source.cache.get(key) ?? []);
    return all.filter(({ object }) => (object.metadata.annotations?.[DEPENDENT_NAME] ?? name) === name);
  }

  /** Tells an object from those of all dependents. */
  #claimOn(id: ObjectKey): string {
    return `${this.#claimPrefix} ${id}`;
  }

  #tiedTo(primary: ObjectKey): ReadonlySet<ObjectKey> {
    return this.#source.tiedTo?.(primary) ?? this.#source.cache.keysByIndex(OWNER_INDEX, primary);
  }

  #namespacesIn(controller: readonly string[] | undefined): readonly string[] | undefined {
    const { namespaces } = this.#source;
    if (this.#definition.namespace !== undefined) return [this.#definition.namespace];
    return namespaces === "all" ? undefined : (namespaces ?? controller);
  }

  get #isReadOnly(): boolean {
    return this.#definition.mode === "readOnly";
  }

  get #target() {
    return { definition: this.#definition.resource, cache: this.#source.cache };
  }
}

function itemOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.annotations?.[DEPENDENT_ITEM];
}

// Somebody else made it: its name is all that tells it from the others.
function nameIn(primary: KubernetesObject, { metadata }: KubernetesObject): string {
  return metadata.namespace === primary.metadata.namespace ? metadata.name : keyOf(metadata);
}

function byAge({ object: a }: DecodedResource, { object: b }: DecodedResource): number {
  const [first, second] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? "");
  if (first !== second) return first! < second! ? 1 : -1;
  return keyOf(a.metadata) < keyOf(b.metadata) ? -1 : 1;
}
