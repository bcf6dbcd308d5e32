import { isApiError } from "../base/errors.js";
import {
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
} from "../base/kubernetes-object.js";
import { sharesPrimary } from "../base/primary-link.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { genericDifferences, genericMatcher } from "../match/matchers.js";
import { checkAdoption } from "./existing-object.js";
import type { ApplyOptions, ObjectWriter, StatedObject, UntieOptions, WriteTarget, Written } from "./object-writer.js";
import { onLatest } from "./send/on-latest.js";
import { planCreate, planUpdate } from "./send/plan.js";
import { createPostponedError } from "./send/postponed-write.js";
import { untieObject } from "./remove.js";
import { restoreLabel } from "./restore-label.js";
import { withEncodedData } from "./send/secret-data.js";
import { Sender, type DeletionSending, type SenderOptions, type Sending } from "./send/send.js";

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
  readonly #sender: Sender;
  readonly #records = new WeakMap<ResourceView, Map<ObjectKey, PutRecord>>();

  constructor(options: SenderOptions) {
    this.#sender = new Sender(options);
  }

  async apply(target: WriteTarget, stated: StatedObject, options: ApplyOptions): Promise<Written> {
    const { live } = options;
    const desired = withEncodedData(target.definition, stated);
    target.cache.requireWhole(keyOf(desired.metadata));
    if (live !== undefined) return this.#replace(target, { desired, live, options });
    try {
      const { cause } = options;
      const plan = planCreate(target.definition, desired);
      const sent = await this.#sender.send({ target, plan, before: undefined, cause, content: desired });
      if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
      this.#learn(target, desired, sent.entry.object);
      return { kind: "created", entry: sent.entry, verdict: ABSENT };
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      return this.#resume(target, { desired, conflict: error, options });
    }
  }

  delete(target: WriteTarget, live: KubernetesObject, options?: DeletionSending): Promise<boolean> {
    this.#records.get(target.cache)?.delete(keyOf(live.metadata));
    return this.#sender.delete(target, live, options);
  }

  untie(target: WriteTarget, live: DecodedResource, options: UntieOptions): Promise<void> {
    this.#records.get(target.cache)?.delete(keyOf(live.object.metadata));
    return untieObject(target, live, { ...options, sender: this.#sender });
  }

  // The object that is there is ours if the answer to its creation was lost, or the watch is behind.
  async #resume(
    target: WriteTarget,
    { desired, conflict, options }: { desired: StatedObject; conflict: Error; options: ApplyOptions },
  ): Promise<Written> {
    const live = await this.#sender.read(target, desired.metadata);
    if (live === undefined) throw conflict;
    const isOwn = sharesPrimary(desired.metadata, live.object.metadata);
    if (!isOwn) {
      const { definition } = target;
      checkAdoption({ definition, desired: desired.metadata, live: live.object }, options.existing);
    }
    target.cache.put(live);
    const isTerminating = live.object.metadata.deletionTimestamp !== undefined;
    if (isTerminating || (isOwn && options.isOnlyCreated === true)) {
      const { cause } = options;
      const entry = await restoreLabel(this.#sender, target, { live, desired: desired.metadata, cause });
      return { kind: isTerminating ? "terminating" : entry === live ? "unchanged" : "updated", entry };
    }
    const wanted = isOwn ? desired : (options.adoption ?? desired);
    return this.#replace(target, { desired: wanted, live, options: { ...options, isForced: false } });
  }

  async #replace(
    target: WriteTarget,
    { desired, live, options }: { desired: StatedObject; live: DecodedResource; options: ApplyOptions },
  ): Promise<Written> {
    let conflict: unknown;
    const attempt = async (current: DecodedResource): Promise<Written> => {
      if (current !== live) target.cache.put(current);
      if (current.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: current };
      const body = replacementOf(current.object, desired, target.definition);
      // After a conflict somebody else may have made it as desired.
      const isCompared = options.isForced !== true || current !== live;
      if (!isCompared || !this.#isAsDesired(target, body, current.object))
        return this.#put(target, body, { before: current, cause: options.cause, content: desired });
      this.#sender.noteMatch(target, desired.metadata);
      return { kind: "unchanged", entry: current };
    };
    const isConflict = (error: unknown) => isApiError((conflict = error), 409);
    const written = await onLatest(live, attempt, {
      sender: this.#sender,
      target,
      maxAttempts: MAX_ATTEMPTS,
      isConflict,
    });
    // What took its place, or was taken away from the primary, is for the next reconcile, which sees it.
    if (written === undefined) throw conflict;
    return written;
  }

  async #put(
    target: WriteTarget,
    body: StatedObject,
    { before, ...rest }: Pick<Sending, "cause" | "content"> & { readonly before: DecodedResource },
  ): Promise<Written> {
    const { definition } = target;
    const plan = planUpdate(definition, body, false);
    const differences = (limit: number) =>
      genericDifferences({ definition, desired: body, live: before.object }, limit);
    const sent = await this.#sender.send({ ...rest, target, plan, before, differences });
    if (sent.kind === "postponed") return { ...sent, entry: before };
    this.#learn(target, body, sent.entry.object);
    return sent.kind === "unchanged" ? sent : { ...sent, verdict: DIFFERS };
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
