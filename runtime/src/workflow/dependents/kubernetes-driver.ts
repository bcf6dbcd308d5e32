import { TerminalError } from "../../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectKey, describeObject } from "../../base/kubernetes-object.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DecodedResource } from "../../decode/decode-resource.js";
import type { WriteCause } from "../../write/send/postponed-write.js";
import type { Writer } from "../../write/writer.js";
import { completeDesired, hasLink, keyOfDesired, linkOf, type DesiredObject } from "./desired-object.js";
import type { DependentDriver, DriverRun, FindRun, Live, Wanted, WriteOutcome } from "./driver.js";
import type { PlanNode } from "../plan.js";
import { claim, isClaimedByOther, noteRemoved, noteWanted, removalOf } from "../wanted-objects.js";
import { LiveObjects, type DependentSource } from "./live-objects.js";
import { removeBy, writeBy } from "./operations.js";
import type { DeletionOptions, KubernetesDependent } from "../definition/workflow-definition.js";

export type { DependentSource } from "./live-objects.js";

/** What a driver of objects of Kubernetes works with. */
export interface KubernetesDriverOptions {
  readonly node: PlanNode<KubernetesDependent>;
  readonly source: DependentSource;
  readonly writer: Writer;
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
  readonly #writer: Writer;
  readonly #client: KubernetesDriverOptions["client"];
  readonly #controller: string | undefined;
  readonly #objects: LiveObjects;

  constructor({ node, source, writer, client, controller }: KubernetesDriverOptions) {
    this.#client = client;
    this.#controller = controller;
    this.#definition = node.definition;
    const { cluster = "", resource } = node.definition;
    this.#claimPrefix = JSON.stringify([cluster, resource.group, resource.kind]);
    this.#source = source;
    this.#writer = writer;
    this.#objects = new LiveObjects({ definition: node.definition, source, controller });
  }

  // What is to be orphaned has to be untied before its primary goes.
  get isGarbageCollected(): boolean {
    return this.#definition.garbageCollected && this.#definition.onDelete !== "orphan";
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
    if (this.#isReadOnly) return this.#objects.readOnly(primary);
    if (wanted !== undefined) return this.#objects.tied(primary, wanted.id);
    return this.#objects.single(primary, this.#takenIn(context));
  }

  findItems({ primary, context }: FindRun): ReadonlyMap<string, Live> {
    if (this.#isReadOnly) return this.#objects.readOnlyItems(primary);
    return this.#objects.items(primary, this.#takenIn(context));
  }

  findLeftovers(
    { primary }: Pick<DriverRun, "primary">,
    isMeant: (dependent: string, id: ObjectKey) => boolean,
  ): readonly DecodedResource[] {
    return this.#isReadOnly ? [] : this.#objects.leftovers(primary, isMeant);
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
    if (written.kind === "postponed") return written;
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
    const live = isNamed ? found : this.#objects.tied(primary, id);
    // Another dependent had the object, and deletes it just now.
    const removal = removalOf(context, live?.object.metadata.uid);
    if (removal === undefined) return live;
    await Promise.allSettled([removal]);
    return this.#objects.tied(primary, id);
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

  // What another dependent wants in this reconcile is not ours any more.
  #takenIn(context: object | undefined): (key: ObjectKey) => boolean {
    const { name } = this.#definition;
    return (key) => context !== undefined && isClaimedByOther(context, name, this.#claimOn(key));
  }

  /** Tells an object from those of all dependents. */
  #claimOn(id: ObjectKey): string {
    return `${this.#claimPrefix} ${id}`;
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
