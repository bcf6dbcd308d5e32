// Objects of a dependent that its watch does not show, as another client took their label off while no operator ran, and that nothing names
// any more. Only a list without the label selector finds them.
import { isAbsent, isApiError } from "../../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta } from "../../base/kubernetes-object.js";
import { DEPENDENT_NAME, isOriginal, isWrittenBy, LINK_PROOF, linksOf, provenLinkOf } from "../../base/primary-link.js";
import type { ProofKeys } from "../../base/proof-key.js";
import { isReachable, type ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import { hasName, type KubernetesDependent } from "../definition/workflow-definition.js";
import type { DependentRun } from "./dependent-reconciler.js";
import type { KnownObjects } from "./live-objects.js";

/** How old a list may be: since the start of the operator the watch shows when a label goes, and a reconcile restores it. */
const MAX_AGE_MS = 600_000;
const MOST_ASKED = 1_000;

interface UnlabelledObjectsOptions {
  readonly definition: KubernetesDependent;
  readonly source: KnownObjects;
  readonly controller: string;
  readonly formerNames?: readonly string[] | undefined;
  readonly proofKeys?: ProofKeys | undefined;
  client(): ApiClient;
}

interface Listed {
  readonly begunAt: number;
  /** The few objects that the watch does not show, by the links to their primaries. */
  readonly byLink: ReadonlyMap<string, readonly ObjectMeta[]>;
}

/** Tells whether a request failed because the API server serves a kind in no version: then there are no objects of it. */
export async function isUnserved(
  resource: ResourceDefinition,
  { error, client }: { readonly error: unknown; readonly client: ApiClient },
): Promise<boolean> {
  if (!isApiError(error, 404) || isAbsent(error)) return false;
  return !isReachable(resource, await client.servedVersions(resource));
}

/** Finds, for cleanups, the objects of one dependent that have a proven link to a primary, and no label. */
export class UnlabelledObjects {
  readonly #options: UnlabelledObjectsOptions;
  /** When a list was asked for that begins later than what the cleanup of a primary saw, by uid. */
  readonly #asked = new Map<string, number>();
  #last: Listed | undefined;
  #listing: Promise<unknown> | undefined;

  constructor(options: UnlabelledObjectsOptions) {
    this.#options = options;
  }

  /**
   * Returns the metadata of the objects. The cleanups of many primaries share a list; `isFresh` asks once for one that begins after this call, as
   * the objects could not be restored while `desired` failed.
   */
  async find(run: DependentRun, { isFresh }: { readonly isFresh: boolean }): Promise<readonly ObjectMeta[]> {
    const { primary, context } = run;
    const { uid = "" } = primary.metadata;
    const now = performance.now();
    if (isFresh && !this.#asked.has(uid)) {
      if (this.#asked.size >= MOST_ASKED) this.#asked.clear();
      this.#asked.set(uid, now);
    }
    const after = Math.max(now - MAX_AGE_MS, this.#asked.get(uid) ?? -Infinity);
    while (this.#last === undefined || this.#last.begunAt < after) {
      context.signal.throwIfAborted();
      if (this.#listing === undefined) await this.#list(run);
      // Another cleanup may list just now. If that fails, this one tries it itself.
      else await this.#listing;
    }
    return this.#last.byLink.get(provenLinkOf(primary)) ?? [];
  }

  /** Tells whether an object has a proven link to a primary. */
  async isLinked(run: DependentRun, object: KubernetesObject): Promise<boolean> {
    return (await this.#index(run, [object.metadata])).has(provenLinkOf(run.primary));
  }

  async #list(run: DependentRun): Promise<void> {
    const begunAt = performance.now();
    const listing = this.#listUnseen(run).then((found) => this.#index(run, found));
    this.#listing = listing.then(
      () => {},
      () => {},
    );
    try {
      this.#last = { begunAt, byLink: await listing };
    } finally {
      this.#listing = undefined;
    }
  }

  async #listUnseen(run: DependentRun): Promise<readonly ObjectMeta[]> {
    const { definition, source, client } = this.#options;
    const { resource } = definition;
    const unseen = new Map<string, ObjectMeta>();
    try {
      for (const namespace of this.#namespacesOf(run))
        for await (const page of client().listMetadata(
          { definition: resource },
          { namespace, signal: run.context.signal },
        ))
          for (const { metadata } of page)
            if (this.#isOwn(metadata) && !source.cache.has(keyOf(metadata))) unseen.set(keyOf(metadata), metadata);
    } catch (error) {
      if (!(await isUnserved(resource, { error, client: client() }))) throw error;
    }
    return [...unseen.values()];
  }

  #namespacesOf({ namespaces: ofController }: DependentRun): readonly (string | undefined)[] {
    const { definition, source } = this.#options;
    if (definition.resource.scope === "Cluster") return [undefined];
    if (definition.namespace !== undefined) return [definition.namespace];
    const { namespaces = ofController } = source;
    return namespaces === undefined || namespaces === "all" ? [undefined] : namespaces;
  }

  #isOwn(metadata: ObjectMeta): boolean {
    const { definition, controller, formerNames = [] } = this.#options;
    const isNamed = hasName(definition, metadata.annotations?.[DEPENDENT_NAME]);
    // Another controller may have taken the object over, or another client copied it.
    return isNamed && isWrittenBy(metadata, controller, ...formerNames) !== false && isOriginal(metadata) === true;
  }

  async #index(run: DependentRun, found: readonly ObjectMeta[]): Promise<ReadonlyMap<string, readonly ObjectMeta[]>> {
    const { definition, proofKeys } = this.#options;
    const { namespace, resource } = definition;
    const hasProof = found.some(({ annotations }) => annotations?.[LINK_PROOF] !== undefined);
    const key = hasProof ? await proofKeys?.find() : undefined;
    const byLink = new Map<string, ObjectMeta[]>();
    for (const metadata of found) {
      const { apiVersion, kind } = resource;
      // The garbage collector deletes what has its primary as an owner.
      const links = linksOf(
        { apiVersion, kind, metadata },
        {
          ...{ primary: run.definition, isElsewhere: true, isExclusive: true, key: () => key },
          namespaces: namespace === undefined ? undefined : [namespace],
        },
      );
      for (const link of links) byLink.set(link, [...(byLink.get(link) ?? []), metadata]);
    }
    return byLink;
  }
}
