import { isDeepStrictEqual } from "node:util";
import { findError, TerminalError } from "../../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { messageOf, type Logger } from "../../base/logger.js";
import type { DependentDriver, DriverRun, Live, Wanted, WriteOutcome } from "./driver.js";
import type { KnownIds } from "./external-state.js";
import type { ExternalArguments, ExternalDependent } from "../definition/workflow-definition.js";

/** Where the resources of an external dependent are known. */
export interface ExternalResources extends Pick<DependentDriver, "activate" | "deactivate"> {
  /** Whether resources of other dependents may be among them. */
  readonly isShared: boolean;
  secondariesOf(primary: KubernetesObject): readonly unknown[];
  /** Fetches what is not known of a primary, or may be wrong. */
  load?(primary: KubernetesObject, signal: AbortSignal): Promise<void>;
  /** Takes what the driver did, so that the next read sees it and no event comes of it. */
  recordCreated(primary: ObjectKey, resource: unknown): void;
  recordUpdated(primary: ObjectKey, resource: unknown, previous: unknown): void;
  recordDeleted(primary: ObjectKey, resource: unknown): void;
  /** Says that a change failed, perhaps after it had an effect: what is known may be wrong. */
  invalidate(primary: ObjectKey): void;
}

/** What a driver of external resources works with. */
export interface ExternalDriverOptions {
  readonly definition: ExternalDependent;
  readonly source: ExternalResources;
  /** Keeps the ids of what was created; absent if the dependent has no state. */
  readonly state?: KnownIds | undefined;
  /** Told of resources that are left because they could not be deleted. */
  readonly onReleased?: ((released: ReleasedResource) => void) | undefined;
}

/** A resource that is left, outside Kubernetes, because it could not be deleted. */
export interface ReleasedResource {
  readonly primary: KubernetesObject;
  readonly dependent: string;
  readonly item?: string | undefined;
  readonly message: string;
  readonly logger: Logger;
}

/** A resource with the key of its item, which is empty unless the dependent is a bulk one. */
interface ExternalLive extends Live {
  readonly key: string;
}

type Functions = {
  readonly create?: (desired: unknown, args: object) => unknown;
  readonly update?: (desired: unknown, live: unknown, args: object) => unknown;
  readonly delete?: (live: unknown, args: object) => unknown;
  readonly matches?: (desired: unknown, live: unknown) => boolean;
  readonly idOf?: (resource: unknown) => string;
  readonly isOwn?: (resource: unknown, primary: KubernetesObject) => boolean;
};

/** The key under which the id of the only resource of a dependent is kept. */
const SINGLE = "";

/** Finds, writes and removes the resources of one dependent outside Kubernetes, by functions of the user. */
export class ExternalDriver implements DependentDriver {
  // What is outside has no owner references.
  readonly isGarbageCollected = false;
  readonly #definition: ExternalDependent;
  readonly #functions: Functions;
  readonly #source: ExternalResources;
  readonly #state: KnownIds | undefined;
  readonly #onReleased: ExternalDriverOptions["onReleased"];

  constructor({ definition, source, state, onReleased }: ExternalDriverOptions) {
    this.#onReleased = onReleased;
    this.#definition = definition;
    this.#functions = definition.external as unknown as Functions;
    this.#source = source;
    this.#state = state;
  }

  get capabilities(): DependentDriver["capabilities"] {
    const { create, update, delete: remove } = this.#functions;
    return { write: create !== undefined || update !== undefined, remove: remove !== undefined };
  }

  activate(primary: ObjectKey): Promise<void> {
    return this.#source.activate(primary);
  }

  deactivate(primary: ObjectKey): Promise<void> {
    return this.#source.deactivate(primary);
  }

  complete(_run: DriverRun, desired: unknown, item?: string): Wanted {
    if (typeof desired !== "object" || desired === null)
      throw new TerminalError(`desired() returned ${String(desired)}; it has to return what the resource should be`);
    if (this.#state !== undefined) return { id: item ?? SINGLE, object: desired };
    const id = this.#idOf(desired);
    if (item !== undefined && id !== item)
      throw new TerminalError(
        `the item "${item}" has the id "${id}"; its key has to be its id, unless the dependent keeps the ids (state)`,
      );
    return { id, object: desired };
  }

  find(run: Pick<DriverRun, "primary">, wanted?: Wanted): ExternalLive | undefined {
    if (this.#isBulk) return wanted === undefined ? undefined : this.findItems(run).get(wanted.id);
    const found = this.#candidatesFor(run.primary, wanted);
    if (found.length <= 1) return found[0] === undefined ? undefined : liveOf(found[0]);
    const { name } = this.#definition;
    const ids = found.map((each) => `"${this.#idOf(each)}"`).join(", ");
    throw new Error(
      `${found.length} resources belong to its primary (${ids}), and dependent "${name}" is one; say which (isOwn), give it an event source of ` +
        "its own that knows one of them, let the runtime keep its id (state), or make it a bulk dependent",
    );
  }

  findItems({ primary }: Pick<DriverRun, "primary">): ReadonlyMap<string, ExternalLive> {
    const keys = new Map([...(this.#state?.read(primary) ?? [])].map(([key, id]) => [id, key]));
    const all = this.#ownOf(primary).flatMap((object) => {
      const id = this.#idOf(object);
      const key = keys.get(id);
      // What is not noted in the state of a shared source may be of another dependent.
      if (key === undefined && this.#state !== undefined && this.#source.isShared) return [];
      return [[key ?? id, { object: object as object, key: key ?? id }] as const];
    });
    return new Map(all);
  }

  async write(run: DriverRun, wanted: Wanted, found: Live | undefined): Promise<WriteOutcome> {
    const live = found ?? (await this.#lookAgain(run, wanted));
    if (live === undefined) return this.#create(run, wanted);
    const { object } = live;
    const key = this.#keyOf(wanted);
    const id = this.#idOf(object);
    // An id that could not be kept when its resource was created is kept now, and so is one that somebody took away.
    if (this.#state?.isKept(run.primary, key, id) === false) await this.#state.write(run, key, id);
    const { update, matches = isDeepStrictEqual } = this.#functions;
    if (update === undefined || matches(wanted.object, object)) return "unchanged";
    const updated = await this.#attempt(run, () => update(wanted.object, object, this.#argumentsOf(run, key)));
    this.#source.recordUpdated(keyOf(run.primary.metadata), this.#returned("update", updated), object);
    return "updated";
  }

  async remove(run: DriverRun, live: Live): Promise<void> {
    const { object, key } = live as ExternalLive;
    const { delete: remove } = this.#functions;
    await this.#attempt(run, () => remove?.(object, this.#argumentsOf(run, key)));
    this.#source.recordDeleted(keyOf(run.primary.metadata), object);
    // Only now: by its id the resource is found when this is interrupted.
    await this.#state?.remove(run, key);
  }

  release({ primary, context }: DriverRun, { error, item }: { error: unknown; item?: string | undefined }): boolean {
    const { name, external } = this.#definition;
    if (external.onDeleteFailure !== "release" || primary.metadata.deletionTimestamp === undefined) return false;
    // An error that says when to try again is no end.
    if (findError(error, "RetryAfterError") !== undefined) return false;
    const { logger } = context;
    const dependent = item === undefined ? `"${name}"` : `"${name}", item "${item}"`;
    const message = `the resource of dependent ${dependent} could not be deleted and is left: ${messageOf(error)}`;
    logger.warn({ dependent: name, item, error }, message);
    this.#onReleased?.({ primary, dependent: name, item, message, logger });
    return true;
  }

  // A creation that failed may have had an effect, which is fetched then.
  async #lookAgain(run: DriverRun, wanted: Wanted): Promise<Live | undefined> {
    await this.#source.load?.(run.primary, run.context.signal);
    return this.find(run, wanted);
  }

  async #create(run: DriverRun, wanted: Wanted): Promise<WriteOutcome> {
    const { create } = this.#functions;
    if (create === undefined) return "absent";
    const key = this.#keyOf(wanted);
    const answer = await this.#attempt(run, () => create(wanted.object, this.#argumentsOf(run, key)));
    const created = this.#returned("create", answer);
    const id = this.#idOf(created);
    try {
      // What ran out of time may have been made by a later attempt as well, whose id is kept by now.
      const isReplaced = run.context.signal.aborted && this.#state?.read(run.primary).has(key) === true;
      if (!isReplaced) await this.#state?.write(run, key, id);
    } finally {
      this.#source.recordCreated(keyOf(run.primary.metadata), created);
    }
    const problem = this.#problemOf(created, wanted, run.primary);
    if (problem !== undefined) throw new TerminalError(problem);
    return "created";
  }

  /** Says why a resource will not be found again; undefined if it will. */
  #problemOf(created: object, wanted: Wanted, primary: KubernetesObject): string | undefined {
    const id = this.#idOf(created);
    if (this.#functions.isOwn?.(created, primary) === false)
      return `create() returned a resource (id "${id}") that isOwn says is of another dependent, so that it will not be found again`;
    if (this.#state !== undefined || wanted.id === "" || wanted.id === id) return undefined;
    return (
      `create() returned a resource with the id "${id}" for one with the id "${wanted.id}", which will not be found again; make idOf return ` +
      "what both have, or let the runtime keep the id (state)"
    );
  }

  // What fails, or runs out of time while it is still under way, may have an effect all the same.
  async #attempt<Result>({ primary, context }: DriverRun, change: () => Result | Promise<Result>): Promise<Result> {
    const { signal } = context;
    const invalidate = () => this.#source.invalidate(keyOf(primary.metadata));
    signal.addEventListener("abort", invalidate, { once: true });
    try {
      return await change();
    } catch (error) {
      invalidate();
      throw error;
    } finally {
      signal.removeEventListener("abort", invalidate);
    }
  }

  #candidatesFor(primary: KubernetesObject, wanted: Wanted | undefined): readonly unknown[] {
    const all = this.#ownOf(primary);
    if (this.#state === undefined) {
      // An id that the service gives is not known before; then whatever there is is meant.
      const isKnown = wanted !== undefined && wanted.id !== "";
      return isKnown ? all.filter((each) => this.#idOf(each) === wanted.id) : all;
    }
    const id = this.#state.read(primary).get(SINGLE);
    const own = id === undefined ? [] : all.filter((each) => this.#idOf(each) === id);
    // What was created but could not be noted is found by its source, if that knows nothing else.
    return own.length > 0 || this.#source.isShared ? own : all;
  }

  #ownOf(primary: KubernetesObject): readonly unknown[] {
    const all = this.#source.secondariesOf(primary);
    const { isOwn } = this.#functions;
    return isOwn === undefined ? all : all.filter((each) => isOwn(each, primary));
  }

  #argumentsOf({ primary, secondary, context }: DriverRun, key: string): ExternalArguments<KubernetesObject, object> {
    return { primary, secondary, context, state: this.#state?.read(primary).get(key) };
  }

  #returned(by: "create" | "update", resource: unknown): object {
    if (typeof resource === "object" && resource !== null) return resource;
    throw new TerminalError(`${by}() returned ${String(resource)}; it has to return the resource as it is now`);
  }

  #keyOf({ id }: Wanted): string {
    return this.#isBulk ? id : SINGLE;
  }

  #idOf(resource: unknown): string {
    return this.#functions.idOf?.(resource) ?? "";
  }

  get #isBulk(): boolean {
    return this.#definition.bulk !== undefined;
  }
}

function liveOf(object: unknown): ExternalLive {
  return { object: object as object, key: SINGLE };
}
