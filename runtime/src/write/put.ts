import { isApiError } from "../base/errors.js";
import { groupOf, type KubernetesObject, type ObjectMeta, type OwnerReference } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { genericDifferences, genericMatcher } from "../match/matchers.js";
import { findUnstated, statesContent, withStatement, type StatedKeys } from "./last-stated.js";
import { readWhole } from "./managed-entries.js";
import { withReleased } from "./released-fields.js";
import { NAMED_DIFFERENCES, type WriteTarget } from "./send/apply-matcher.js";
import { onLatest } from "./send/on-latest.js";
import { planCreate, planUpdate, type Sending, type Stated } from "./send/plan.js";
import type { Sender, Sent } from "./send/send.js";
import type { WriteMethod, Written } from "./write-method.js";

const matches = genericMatcher();

/** Returns the way to write by POST and PUT (JOSDK's GenericResourceUpdater). */
export function putMethod(sender: Sender): WriteMethod {
  const { forms } = sender.matcher;
  const isAsDesired = (target: WriteTarget, body: Stated, live: KubernetesObject): boolean => {
    const compare = (desired: Stated) => matches({ ...target, verb: "update", isStatus: false, desired, live });
    if (compare(body)) return true;
    const isKnown = forms.isKnown({ target, part: "object", desired: body }, () => formOf(body, live));
    return isKnown && compare({ ...live, metadata: body.metadata });
  };
  // The server stores some values in another form, which only a schema tells: without one the same would be sent in every reconcile.
  const send = async (sending: Sending): Promise<Sent> => {
    const sent = await sender.send(sending);
    if (sent.kind === "postponed") return sent;
    const { target, cause, plan } = sending;
    const [body, stored] = [plan.body as Stated, sent.entry.object];
    const desired = { ...body, metadata: stored.metadata };
    const differences = genericDifferences({ ...target, desired, live: stored });
    const application = { target, part: "object", desired: body } as const;
    if (differences.length === 0) forms.forget(target.cache, body.metadata);
    else
      forms.learn(application, formOf(body, stored), { differences: differences.slice(0, NAMED_DIFFERENCES), cause });
    return sent;
  };
  return {
    create(target, content, cause) {
      const desired = withStatement(content);
      return send({ target, plan: planCreate(target.definition, desired), before: undefined, cause, content: desired });
    },
    async change(target, content, { live, isForced, basis, released, cause }) {
      const { definition } = target;
      const desired = withStatement(content);
      const attempt = async (before: DecodedResource): Promise<Written> => {
        if (before !== live) target.cache.put(before);
        if (before.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: before };
        const stated = replacementOf(before.object, desired, definition, !statesContent(before.object));
        const body = withReleased(stated, before.object, released);
        // After a conflict somebody else may have made it as desired.
        const isCompared = isForced !== true || before !== live;
        if (isCompared && isAsDesired(target, body, before.object)) {
          sender.noteMatch(target, { ref: desired.metadata, isStatus: false }, cause);
          return { kind: "unchanged", entry: before };
        }
        if (basis !== undefined && basis.version !== before.object.metadata.resourceVersion)
          return { kind: "unseen", entry: before };
        const whole = () => readWhole(sender, { target, before, cause });
        const unstated = await findUnstated(desired.metadata, before, { sender, readWhole: whole });
        const replacement = { ...body, metadata: withoutKeys(body.metadata, unstated) };
        return send({ target, plan: planUpdate(definition, replacement, false), before, cause, content: desired });
      };
      const isConflict = (error: unknown) => isApiError(error, 409);
      return onLatest(live, attempt, { sender, target, maxAttempts: 5, isConflict });
    },
  };
}

function formOf(sent: object, stored: object) {
  return { sent: contentOf(sent), stored: contentOf(stored) };
}

function contentOf(object: object): string {
  const { apiVersion: _1, kind: _2, metadata: _3, status: _4, ...content } = object as Record<string, unknown>;
  return JSON.stringify(content);
}

/** Returns what a PUT sends: what is desired, and the metadata of live besides. Where nothing but metadata is desired, the content stays unless it is ours. */
export function replacementOf(
  live: KubernetesObject,
  desired: Stated,
  { hasStatusSubresource }: Pick<ResourceDefinition, "hasStatusSubresource">,
  keepsContent = true,
): Stated {
  const { metadata: wanted, ...content } = desired;
  const { metadata: known, apiVersion: _1, kind: _2, ...rest } = live as KubernetesObject & { status?: unknown };
  const isLink = keepsContent && Object.keys(content).length === 0;
  const status = !hasStatusSubresource && rest.status !== undefined && { status: rest.status };
  return { ...(isLink ? rest : status), ...content, metadata: mergedMetadata(known, wanted) };
}

/** Returns the metadata of a live object with those that are desired beside or in place of its own. */
export function mergedMetadata(live: ObjectMeta, desired: Partial<ObjectMeta>): ObjectMeta {
  const { ownerReferences: wanted = [] } = desired;
  // An owner that was deleted and made anew under its name is another one, and two cannot both be the controller.
  const isReplaced = (owner: OwnerReference) => wanted.some((each) => isNamesake(owner, each));
  const kept = live.ownerReferences?.filter((owner) => !isReplaced(owner)) ?? [];
  const owners = new Map<string, OwnerReference>([...kept, ...wanted].map((owner) => [owner.uid, owner]));
  const labels = { ...live.labels, ...desired.labels };
  const annotations = { ...live.annotations, ...desired.annotations };
  const finalizers = [...new Set([...(live.finalizers ?? []), ...(desired.finalizers ?? [])])];
  return {
    ...live,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...(finalizers.length > 0 && { finalizers }),
    ...(owners.size > 0 && { ownerReferences: [...owners.values()] }),
  };
}

function withoutKeys(metadata: Stated["metadata"], keys: StatedKeys): Stated["metadata"] {
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  const except = (map: { [key: string]: string } | undefined, names: readonly string[] = []) =>
    map && Object.fromEntries(Object.entries(map).filter(([name]) => !names.includes(name)));
  return {
    ...metadata,
    labels: except(labels, keys.labels),
    annotations: except(annotations, keys.annotations),
    finalizers: finalizers?.filter((name) => keys.finalizers?.includes(name) !== true),
    ownerReferences: ownerReferences?.filter(({ uid }) => keys.owners?.includes(uid) !== true),
  };
}

function isNamesake(a: OwnerReference, b: OwnerReference): boolean {
  return a.uid !== b.uid && a.name === b.name && a.kind === b.kind && groupOf(a.apiVersion) === groupOf(b.apiVersion);
}
