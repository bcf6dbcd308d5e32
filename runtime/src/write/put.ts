import { isApiError } from "../base/errors.js";
import { type KubernetesObject, type ObjectMeta, type OwnerReference } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { genericMatcher } from "../match/matchers.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { onLatest } from "./send/on-latest.js";
import { planCreate, planUpdate, type PlannedWrite, type Stated } from "./send/plan.js";
import type { Sender } from "./send/send.js";
import { StoredForms } from "./send/stored-forms.js";
import type { ChangeOptions, WriteMethod, Written } from "./write-method.js";

const MAX_ATTEMPTS = 5;
const DIFFERS = { matches: false, path: "", reason: "is not as desired" } as const;
const matches = genericMatcher();

/**
 * Writes objects by POST and PUT (JOSDK's GenericResourceUpdater).
 *
 * Nothing is known of what is owned, so that what is no longer desired inside of a field stays, unless something else changes: a PUT
 * replaces whole fields.
 */
export class PutMethod implements WriteMethod {
  readonly #sender: Sender;
  readonly #forms = new StoredForms();

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  planCreation(definition: ResourceDefinition, desired: Stated): PlannedWrite {
    return planCreate(definition, desired);
  }

  async change(target: WriteTarget, desired: Stated, { live, isForced, cause }: ChangeOptions): Promise<Written> {
    const { definition } = target;
    let conflict: unknown;
    const attempt = async (before: DecodedResource): Promise<Written> => {
      if (before !== live) target.cache.put(before);
      if (before.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: before };
      const body = replacementOf(before.object, desired, definition);
      // After a conflict somebody else may have made it as desired.
      const isCompared = isForced !== true || before !== live;
      if (isCompared && this.#isAsDesired(target, body, before.object)) {
        this.#sender.noteMatch(target, desired.metadata);
        return { kind: "unchanged", entry: before };
      }
      const plan = planUpdate(definition, body, false);
      const sent = await this.#sender.send({ target, plan, before, cause, content: desired });
      if (sent.kind === "postponed") return sent;
      this.learn(target, body, sent.entry.object);
      return { ...sent, verdict: DIFFERS };
    };
    const isConflict = (error: unknown) => isApiError((conflict = error), 409);
    const options = { sender: this.#sender, target, maxAttempts: MAX_ATTEMPTS, isConflict };
    const written = await onLatest(live, attempt, options);
    // What took its place, or was taken away from the primary, is for the next reconcile, which sees it.
    if (written === undefined) throw conflict;
    return written;
  }

  #isAsDesired(target: WriteTarget, body: Stated, live: KubernetesObject): boolean {
    const { definition } = target;
    const compare = (desired: Stated) =>
      matches({ definition, verb: "update", isStatus: false, desired, live } as const);
    if (compare(body)) return true;
    const isKnown = this.#forms.isKnown({ target, part: "object", desired: body }, () => formOf(body, live));
    return isKnown && compare({ ...live, metadata: body.metadata });
  }

  // The server stores some values in another form, which only a schema tells: without one the same would be sent in every reconcile.
  learn(target: WriteTarget, body: Stated, stored: KubernetesObject): void {
    const isStored = this.#isAsDesired(target, { ...body, metadata: stored.metadata }, stored);
    if (!isStored) this.#forms.remember({ target, part: "object", desired: body }, formOf(body, stored));
  }
}

function formOf(sent: object, stored: object) {
  return { sent: contentOf(sent), stored: contentOf(stored) };
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
  desired: Stated,
  { hasStatusSubresource }: Pick<ResourceDefinition, "hasStatusSubresource">,
): Stated {
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
