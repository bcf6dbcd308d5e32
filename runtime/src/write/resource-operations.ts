import type { Draft, KubernetesObject, PartialResource } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { Creatable, WholeObject } from "../base/resource-definition.js";
import { kindNameOf, type ResourceDefinition, hasType, nameOfType } from "../base/resource-definition.js";
import { viewOf, type ResourceView } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { KindOperations, type ResourceWrite, type RetriedPatch } from "./kind-operations.js";
import { latestOf } from "./send/on-latest.js";
import type { WriteCause } from "./send/postponed-write.js";
import type { Sender } from "./send/send.js";

/** An event source as it is looked for to write through it. */
interface NamedSource {
  readonly name: string;
  readonly type?: ResourceDefinition | string | undefined;
  readonly client?: ApiClient | undefined;
}

/** The event sources of the controller. */
interface NamedSources {
  names(): readonly string[];
  get(name: string): NamedSource | undefined;
  find(type: ResourceDefinition): readonly NamedSource[];
}

interface ResourceOperationsOptions {
  /** The sender of the controller, which makes its other writes as well. */
  readonly sender: Sender;
  readonly primary: WriteTarget;
  readonly finalizer: string;
  readonly sources: NamedSources;
  readonly logger: Logger;
}

/** Which finalizer is meant, and what is made of the event. Default: the finalizer of the controller */
export interface FinalizerOptions {
  readonly finalizer?: string;
  readonly mode?: "matchAndFilter" | "cacheOnly";
}

/**
 * Writes what a controller watches so that its next read sees it, and so that the event of a write causes no reconcile (JOSDK
 * ResourceOperations). For anything else there is `context.client`.
 */
export class ResourceOperations {
  readonly #options: ResourceOperationsOptions;
  readonly #cause: WriteCause | undefined;
  /** The kinds of which the log says that several event sources watch them. */
  readonly #warned: Set<string>;

  constructor(options: ResourceOperationsOptions, cause?: WriteCause, warned = new Set<string>()) {
    this.#options = options;
    this.#cause = cause;
    this.#warned = warned;
  }

  /** Returns the same operations for one reconcile, which cancels them when it is given up. */
  within(cause: WriteCause): ResourceOperations {
    return new ResourceOperations(this.#options, cause, this.#warned);
  }

  /**
   * Writes the objects of a kind that the controller watches: its primaries, or through the event source of that name, or else through the
   * first one of the kind. Throws if there is none.
   */
  of<Resource extends KubernetesObject, Input = WholeObject<Resource>>(
    { definition }: Creatable<Resource, Input>,
    { source }: { readonly source?: string } = {},
  ): KindOperations<Resource, Input> {
    const isPrimary = source === undefined && hasType({ type: this.#options.primary.definition }, definition);
    if (isPrimary) return this.#ofPrimaries<Resource, Input>();
    const { view, client } = source === undefined ? this.#firstOf(definition) : this.#named(definition, source);
    const { sender: own } = this.#options;
    const sender = client === undefined ? own : own.withClient(client);
    return new KindOperations({ definition, cache: view }, { sender, cause: this.#cause });
  }

  /** Puts a finalizer on a primary by a JSON patch, unless it has it or is being deleted; undefined if it is gone. */
  addFinalizer<Primary extends KubernetesObject>(
    primary: Primary,
    { finalizer = this.#options.finalizer, ...options }: FinalizerOptions = {},
  ): Promise<ResourceWrite<Primary> | undefined> {
    return this.#ofPrimaries<Primary>(true).patchOnLatest(primary, {
      ...options,
      isNeeded: (live) => live.metadata.deletionTimestamp === undefined && !hasFinalizer(live, finalizer),
      change: (draft) => changeFinalizers(draft, (present) => [...present, finalizer]),
    });
  }

  /**
   * Puts a finalizer on a primary by server-side apply, unless it has it or is being deleted. An apply states everything that the controller
   * owns: whatever else it applied to the primary is given up by this one.
   */
  async applyFinalizer<Primary extends KubernetesObject>(
    primary: Primary,
    { finalizer = this.#options.finalizer, ...options }: FinalizerOptions = {},
  ): Promise<ResourceWrite<Primary>> {
    const object = latestOf(this.#options.primary.cache, primary);
    const { name, namespace, uid, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined || hasFinalizer(object, finalizer)) return { kind: "unchanged", object };
    const metadata = { name, namespace, uid, finalizers: [finalizer] };
    return this.#ofPrimaries<Primary>(true).apply({ metadata } as unknown as PartialResource<Primary>, options);
  }

  /** Takes a finalizer off a primary, which lets one go that is being deleted; undefined if it is gone. */
  removeFinalizer<Primary extends KubernetesObject>(
    primary: Primary,
    { finalizer = this.#options.finalizer, ...options }: FinalizerOptions = {},
  ): Promise<ResourceWrite<Primary> | undefined> {
    return this.removeFinalizers(primary, [finalizer], options);
  }

  /** Takes finalizers off a primary by one patch; undefined if it is gone. */
  removeFinalizers<Primary extends KubernetesObject>(
    primary: Primary,
    finalizers: readonly string[],
    options: Pick<FinalizerOptions, "mode"> = {},
  ): Promise<ResourceWrite<Primary> | undefined> {
    return this.#ofPrimaries<Primary>(true).patchOnLatest(primary, {
      ...options,
      isNeeded: (live) => finalizers.some((each) => hasFinalizer(live, each)),
      change: (draft) => changeFinalizers(draft, (present) => present.filter((name) => !finalizers.includes(name))),
    });
  }

  /** Changes a primary by a JSON patch, which is made anew on what is there as long as it meets conflicts; undefined if it is gone. */
  patchWithConflictRetry<Primary extends KubernetesObject>(primary: Primary, patch: RetriedPatch<Primary>) {
    return this.#ofPrimaries<Primary>().patchOnLatest(primary, patch);
  }

  // The class of the primaries gives the type. A finalizer is never held back: whoever undoes it, the next reconcile needs it as it should be.
  #ofPrimaries<Primary extends KubernetesObject, Input = WholeObject<Primary>>(
    isUrgent = false,
  ): KindOperations<Primary, Input> {
    const { primary, finalizer, sender } = this.#options;
    return new KindOperations(primary, { sender, cause: this.#cause, finalizer, isUrgent });
  }

  #firstOf(definition: ResourceDefinition): WritableSource {
    const candidates = this.#options.sources.find(definition);
    const first = candidates.find(isWritable);
    if (first === undefined) throw this.#unwatched(definition, candidates[0]);
    const kind = kindNameOf(definition);
    if (candidates.length > 1 && !this.#warned.has(kind)) {
      this.#warned.add(kind);
      const names = candidates.map(({ name }) => name).join(", ");
      const advice = `${first.name} is used; state the source to write through another one`;
      this.#options.logger.warn({ kind, sources: names }, `several event sources watch ${kind}: ${advice}`);
    }
    return first;
  }

  #named(definition: ResourceDefinition, name: string): WritableSource {
    const { sources } = this.#options;
    const kind = kindNameOf(definition);
    const found = sources.get(name);
    if (found === undefined) {
      const names = sources.names().join(", ") || "none";
      throw new Error(`there is no event source "${name}" to write ${kind} through; the event sources are ${names}`);
    }
    if (!hasType(found, definition))
      throw new Error(
        `event source "${name}" is of ${nameOfType(found.type)}, so ${kind} cannot be written through it`,
      );
    if (!isWritable(found)) throw this.#unwatched(definition, found);
    return found;
  }

  #unwatched(definition: ResourceDefinition, unsuitable: NamedSource | undefined): Error {
    const kind = kindNameOf(definition);
    const advice = `register an informer source for ${kind}, or write it with context.client`;
    if (unsuitable !== undefined) {
      const isPart = viewOf(unsuitable) !== undefined;
      const why = isPart ? `keeps only a part of each ${kind}, so none can` : `is no informer, so ${kind} cannot`;
      return new Error(`event source "${unsuitable.name}" ${why} be written through it; ${advice}`);
    }
    const { sources, primary } = this.#options;
    const types = sources.names().flatMap((name) => nameOfType(sources.get(name)?.type) ?? []);
    const watched = [...new Set([kindNameOf(primary.definition), ...types])].join(", ");
    return new Error(`no event source watches ${kind}, only ${watched}; ${advice}`);
  }
}

function changeFinalizers(draft: unknown, change: (finalizers: readonly string[]) => string[]): void {
  const { metadata } = draft as Draft<KubernetesObject>;
  metadata.finalizers = change(metadata.finalizers ?? []);
}

/** Tells whether an object has a finalizer. */
export function hasFinalizer({ metadata }: KubernetesObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true;
}

type WritableSource = NamedSource & { readonly view: ResourceView };

function isWritable(source: NamedSource): source is WritableSource {
  return viewOf(source)?.isPartial === false;
}
