import type { PrimaryCause } from "../apply/write.js";
import type { Writer } from "../apply/writer.js";
import { type DecodedResource, type KubernetesObject, isTerminating, uidOf } from "../base/kubernetes-object.js";
import { HELD_INDEX, holdFinalizerOf } from "../base/primary-link.js";
import type { KnownObjects } from "../sources/dependent-sources.js";
import type { CleanupHolds, DependentRun, FindRun, HoldRun, Live } from "../workflow/dependent-reconciler.js";
import { type KubernetesDependent, isHeldForCleanup } from "../workflow/workflow-definition.js";
import type { LiveObjects } from "./live-objects.js";

interface FinalizerHoldsOptions {
  readonly definition: KubernetesDependent;
  readonly source: KnownObjects;
  readonly objects: LiveObjects;
  readonly writer: Writer;
  /** The finalizer of the primaries of the controller. */
  readonly finalizer: string;
  causeOf(run: DependentRun): PrimaryCause;
}

/** Keeps objects of one dependent until their primary is cleaned up (`heldForCleanup`), by a finalizer of their own for each primary. */
export class FinalizerHolds implements CleanupHolds {
  readonly #options: FinalizerHoldsOptions;

  constructor(options: FinalizerHoldsOptions) {
    this.#options = options;
  }

  finalizerOf({ metadata }: KubernetesObject): string {
    return holdFinalizerOf(this.#options.finalizer, metadata);
  }

  async hold(run: DependentRun, live: Live): Promise<void> {
    const { definition, writer, causeOf } = this.#options;
    const entry = live as DecodedResource;
    const finalizer = this.finalizerOf(run.primary);
    const isHeld = entry.object.metadata.finalizers?.includes(finalizer) === true;
    if (isTerminating(entry.object)) {
      // The deletion of the primary may have caused that of the object, and its event may be still to come.
      if (isHeld && (await isAlive(run))) await writer.release(this.#target, entry, finalizer, causeOf(run));
    } else if (!isHeld && isHeldForCleanup(definition))
      await writer.hold(this.#target, entry, finalizer, causeOf(run)).catch((error: unknown) => {
        // A patch that was aborted may still be executed, after which the cleanup has to release the object.
        if (run.context.signal.aborted) run.reconcile.onGivenUp?.();
        throw error;
      });
  }

  /** Removes the finalizer from an object whose own deletion ends the need for it. */
  async release(run: DependentRun, live: DecodedResource): Promise<void> {
    const finalizer = this.finalizerOf(run.primary);
    if (live.object.metadata.finalizers?.includes(finalizer) !== true) return;
    await this.#options.writer.release(this.#target, live, finalizer, this.#options.causeOf(run));
  }

  objectsToHold(run: FindRun): readonly KubernetesObject[] {
    const { definition, objects } = this.#options;
    if (!isHeldForCleanup(definition)) return [];
    if (definition.bulk !== undefined) return [...objects.items(run).values()].map(({ object }) => object);
    return [objects.single(run)].flatMap((entry) => entry?.object ?? []);
  }

  hasAny(primary: KubernetesObject): boolean {
    const { cache } = this.#options.source;
    // Few controllers hold objects, and the name of the finalizer is a hash.
    return cache.hasIndexed(HELD_INDEX) && cache.keysByIndex(HELD_INDEX, this.finalizerOf(primary)).size > 0;
  }

  async releaseAll({ primary, context }: HoldRun, needed: Set<string | undefined>): Promise<void> {
    const { definition, source, writer } = this.#options;
    const finalizer = this.finalizerOf(primary);
    const { signal, logger } = context;
    const cause = { signal, logger, primary, dependent: definition.name };
    const { cache } = source;
    const keys = [...cache.keysByIndex(HELD_INDEX, finalizer)];
    // A bounded cache may have evicted it.
    if (keys.some((key) => cache.get(key) === undefined)) await cache.load(keys, { signal });
    for (const entry of cache.byIndex(HELD_INDEX, finalizer)) {
      if (needed.has(uidOf(entry))) continue;
      needed.add(uidOf(entry));
      await writer.release(this.#target, entry, finalizer, cause);
    }
  }

  get #target() {
    const { definition, source } = this.#options;
    return { definition: definition.resource, cache: source.cache };
  }
}

async function isAlive({ primary: { metadata }, reconcile, context }: DependentRun): Promise<boolean> {
  const { name, namespace, uid } = metadata;
  const { definition } = reconcile;
  const now = await context.client.get({ definition }, { name, namespace });
  return now?.metadata.uid === uid && now !== undefined && !isTerminating(now);
}
