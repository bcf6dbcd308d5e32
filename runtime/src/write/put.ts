import { isApiError } from "../base/errors.js";
import {
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
} from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { sharesPrimary } from "../base/primary-link.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { Applied } from "../client/write-request.js";
import { checkAdoption } from "./existing-object.js";
import { writeGuarded } from "./guarded-write.js";
import { LoopGuard } from "./loop-guard.js";
import { genericDifferences, genericMatcher } from "../match/matchers.js";
import type {
  ApplyOptions,
  DeletePolicy,
  ObjectWriter,
  StatedObject,
  WriterOptions,
  WriteTarget,
  Written,
} from "./object-writer.js";
import { deleteObject, untieObject } from "./remove.js";
import { withEncodedData } from "./secret-data.js";
import { writeThrough } from "./write-through.js";

/** What was sent, and what the server made of it. */
interface PutRecord {
  readonly sent: string;
  readonly stored: string;
}

const MAX_ATTEMPTS = 5;
const ABSENT = { matches: false, path: "", reason: "does not exist" } as const;
const DIFFERS = { matches: false, path: "", reason: "is not as desired" } as const;
const matches = genericMatcher();

/**
 * Writes objects by POST and PUT, and only those that are not as desired already (JOSDK's GenericResourceUpdater).
 *
 * Nothing is known of what is owned, so that what is no longer desired inside of a field stays, unless something else changes: a PUT
 * replaces whole fields.
 */
export class PutWriter implements ObjectWriter {
  readonly #options: WriterOptions;
  readonly #loops = new LoopGuard();
  readonly #records = new WeakMap<ResourceView, Map<ObjectKey, PutRecord>>();

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  async apply(target: WriteTarget, stated: StatedObject, options: ApplyOptions): Promise<Written> {
    const { live, isForced = false } = options;
    const { definition } = target;
    const desired = withEncodedData(definition, stated);
    target.cache.requireWhole(keyOf(desired.metadata));
    const guarded = { definition, desired };
    const body = live && replacementOf(live.object, desired, definition);
    if (live?.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: live };
    if (live !== undefined && !isForced && this.#isAsDesired(target, body!, live.object)) {
      this.#loops.noteMatch(guarded);
      return { kind: "unchanged", entry: live };
    }
    return writeGuarded(this.#loops, {
      ...guarded,
      live,
      verdict: live === undefined ? ABSENT : DIFFERS,
      send: () =>
        live === undefined
          ? this.#create(target, desired, options)
          : this.#replace(target, { desired, live, options: { ...options, isForced: true } }),
      differences: (limit) =>
        live === undefined ? [] : genericDifferences({ definition, desired: body!, live: live.object }, limit),
    });
  }

  async #create(target: WriteTarget, desired: StatedObject, options: ApplyOptions): Promise<Written> {
    try {
      const entry = await this.#send(target, { verb: "create", body: desired, before: undefined });
      this.#learn(target, desired, entry.object);
      return { kind: "created", entry, verdict: ABSENT };
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      return this.#resume(target, { desired, conflict: error, options });
    }
  }

  delete(target: WriteTarget, live: KubernetesObject, policy: DeletePolicy = {}): Promise<boolean> {
    this.#forget(target, live);
    const { client, fieldManagers } = this.#options;
    return deleteObject(target, live, { ...policy, client: client(), fieldManagers });
  }

  untie(target: WriteTarget, live: DecodedResource, primary: KubernetesObject): Promise<void> {
    this.#forget(target, live.object);
    return untieObject(target, live, { ...this.#options, client: this.#options.client(), primary });
  }

  #forget({ cache, definition }: WriteTarget, { metadata }: KubernetesObject): void {
    this.#records.get(cache)?.delete(keyOf(metadata));
    this.#loops.forget(definition, metadata);
  }

  // The object that is there is ours if the answer to its creation was lost, or the watch is behind.
  async #resume(
    target: WriteTarget,
    { desired, conflict, options }: { desired: StatedObject; conflict: Error; options: ApplyOptions },
  ): Promise<Written> {
    const live = await this.#read(target, desired);
    if (live === undefined) throw conflict;
    const isOwn = sharesPrimary(desired.metadata, live.object.metadata);
    if (!isOwn) {
      const { definition } = target;
      checkAdoption({ definition, desired: desired.metadata, live: live.object }, options.existing);
    }
    target.cache.put(live);
    const isTerminating = live.object.metadata.deletionTimestamp !== undefined;
    if (isOwn && options.isOnlyCreated === true && !isTerminating) return { kind: "unchanged", entry: live };
    const wanted = isOwn ? desired : (options.adoption ?? desired);
    return this.#replace(target, { desired: wanted, live, options: { ...options, isForced: false } });
  }

  async #replace(
    target: WriteTarget,
    { desired, live, options }: { desired: StatedObject; live: DecodedResource; options: ApplyOptions },
  ): Promise<Written> {
    let current = live;
    for (let attempt = 1; ; attempt++) {
      if (current.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: current };
      const body = replacementOf(current.object, desired, target.definition);
      // After a conflict somebody else may have made it as desired.
      const isCompared = options.isForced !== true || attempt > 1;
      if (isCompared && this.#isAsDesired(target, body, current.object)) return { kind: "unchanged", entry: current };
      try {
        const entry = await this.#send(target, { verb: "update", body, before: current });
        this.#learn(target, body, entry.object);
        const isChanged = entry.object.metadata.resourceVersion !== current.object.metadata.resourceVersion;
        return isChanged ? { kind: "updated", entry, verdict: DIFFERS } : { kind: "unchanged", entry };
      } catch (error) {
        if (!isApiError(error, 409) || attempt === MAX_ATTEMPTS) throw error;
        const latest = await this.#read(target, desired);
        // What took its place, or was taken away from the primary, is for the next reconcile, which sees it.
        if (latest === undefined || latest.object.metadata.uid !== current.object.metadata.uid) throw error;
        target.cache.put(latest);
        current = latest;
      }
    }
  }

  #isAsDesired({ definition, cache }: WriteTarget, body: StatedObject, live: KubernetesObject): boolean {
    const compare = (desired: StatedObject) =>
      matches({ definition, verb: "update", isStatus: false, desired, live } as const);
    if (compare(body)) return true;
    const record = this.#records.get(cache)?.get(keyOf(body.metadata));
    const isKnown = record?.sent === contentOf(body) && record.stored === contentOf(live);
    return isKnown && compare({ ...live, metadata: body.metadata });
  }

  // The server stores some values in another form, which only a schema tells: without one the same would be sent in every reconcile.
  #learn(target: WriteTarget, body: StatedObject, stored: KubernetesObject): void {
    const { cache } = target;
    const key = keyOf(body.metadata);
    let records = this.#records.get(cache);
    records?.delete(key);
    if (this.#isAsDesired(target, { ...body, metadata: stored.metadata }, stored)) return;
    if (records === undefined) {
      const created = (records = new Map<ObjectKey, PutRecord>());
      this.#records.set(cache, created);
      cache.onChange(({ kind, key: changed }) => void (kind === "deleted" && created.delete(changed)));
    }
    records.set(key, { sent: contentOf(body), stored: contentOf(stored) });
  }

  async #read({ definition }: WriteTarget, { metadata }: StatedObject): Promise<DecodedResource | undefined> {
    const { name, namespace } = metadata;
    return this.#options.client().getEntry({ definition }, { name, namespace }, this.#options.fieldManagers);
  }

  async #send(
    { definition, cache }: WriteTarget,
    { verb, body, before }: { verb: "create" | "update"; body: StatedObject; before: DecodedResource | undefined },
  ): Promise<DecodedResource> {
    const { client, fieldManager, fieldManagers } = this.#options;
    const { wasCreated: _wasCreated, ...entry } = await writeThrough(cache, {
      key: keyOf(body.metadata),
      isFiltered: true,
      send: (findKnown): Promise<Applied> =>
        client().write({ definition }, { verb, ref: body.metadata, body, fieldManager, fieldManagers, findKnown }),
      before,
      // A PUT states the version that it was made from: another one is its own.
      isOwn: (answer) => answer.object.metadata.resourceVersion !== before?.object.metadata.resourceVersion,
    });
    return entry;
  }
}

function contentOf(object: object): string {
  const { apiVersion: _1, kind: _2, metadata: _3, status: _4, ...content } = object as Record<string, unknown>;
  return JSON.stringify(content);
}

/**
 * Returns what a PUT sends: the metadata of live, with the labels, annotations, finalizers and owners that are desired besides, and the
 * other fields as desired. An object of which nothing but metadata is desired keeps its content.
 */
export function replacementOf(
  live: KubernetesObject,
  desired: StatedObject,
  { hasStatusSubresource }: Pick<ResourceDefinition, "hasStatusSubresource">,
): StatedObject {
  const { metadata: wanted, ...content } = desired;
  const { metadata: known, apiVersion: _1, kind: _2, ...rest } = live as KubernetesObject & { status?: unknown };
  const { status } = rest;
  const isLink = Object.keys(content).length === 0;
  const kept = isLink ? rest : !hasStatusSubresource && status !== undefined ? { status } : {};
  return { ...kept, ...content, metadata: mergedMetadata(known, wanted) };
}

function mergedMetadata(live: ObjectMeta, desired: Partial<ObjectMeta>): ObjectMeta {
  const union = (a: string[] = [], b: string[] = []) => [...new Set([...a, ...b])];
  const { ownerReferences: wanted = [] } = desired;
  // An owner that was deleted and made anew under its name is another one, and two cannot both be the controller.
  const isReplaced = (owner: OwnerReference) => wanted.some((each) => isNamesake(owner, each));
  const kept = live.ownerReferences?.filter((owner) => !isReplaced(owner)) ?? [];
  const owners = new Map<string, OwnerReference>([...kept, ...wanted].map((owner) => [owner.uid, owner]));
  const labels = { ...live.labels, ...desired.labels };
  const annotations = { ...live.annotations, ...desired.annotations };
  const finalizers = union(live.finalizers, desired.finalizers);
  return {
    ...live,
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
    ...(finalizers.length > 0 ? { finalizers } : {}),
    ...(owners.size > 0 ? { ownerReferences: [...owners.values()] } : {}),
  };
}

function isNamesake(a: OwnerReference, b: OwnerReference): boolean {
  const groupOf = ({ apiVersion }: OwnerReference) => apiVersion.replace(/\/?[^/]*$/, "");
  return a.uid !== b.uid && a.name === b.name && a.kind === b.kind && groupOf(a) === groupOf(b);
}
