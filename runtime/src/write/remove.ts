import type { JsonPatchOperation, KubernetesObject } from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL, LINK_ANNOTATIONS } from "../base/primary-link.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { onLatest } from "./send/on-latest.js";
import { planJsonPatch, uidTest } from "./send/plan.js";
import type { WriteCause } from "./send/postponed-write.js";
import type { Sender } from "./send/send.js";

/** What an object is untied from. */
export interface UntieOptions {
  readonly primary: KubernetesObject;
  readonly cause?: WriteCause | undefined;
}

/**
 * Takes off an object what ties it to a primary, and leaves it alone otherwise: a JSON patch, so that neither the content nor what others
 * manage changes. Nothing happens if it is gone, or was made anew.
 */
export async function untieObject(
  target: WriteTarget,
  live: DecodedResource,
  { primary, cause, sender }: UntieOptions & { readonly sender: Sender },
): Promise<void> {
  const untie = async (before: DecodedResource) => {
    const change = untyingOperations(before.object, primary.metadata.uid);
    if (change.length === 0) return;
    const plan = planJsonPatch(before.object, change, false);
    await sender.send({ target, plan, before, cause, isUrgent: true });
  };
  await onLatest(live, untie, { sender, target });
  sender.forget(target, live.object);
}

/** Returns the operations that take owner references of an owner, and the label and annotations of a dependent, off an object. */
export function untyingOperations({ metadata }: KubernetesObject, owner: string | undefined): JsonPatchOperation[] {
  const removed = (path: string, test: JsonPatchOperation): JsonPatchOperation[] => [test, { op: "remove", path }];
  const removedFrom = (member: "annotations" | "labels", name: string) => {
    const value = metadata[member]?.[name];
    const path = `/metadata/${member}/${name.replaceAll("/", "~1")}`;
    return value === undefined ? [] : removed(path, { op: "test", path, value });
  };
  const annotations = LINK_ANNOTATIONS.flatMap((name) => removedFrom("annotations", name));
  // From the last to the first, so that the places of those before stay right.
  const owners = [...(metadata.ownerReferences ?? []).entries()].reverse().flatMap(([index, { uid }]) => {
    const path = `/metadata/ownerReferences/${index}`;
    return uid === owner ? removed(path, { op: "test", path: `${path}/uid`, value: uid }) : [];
  });
  const operations = [...annotations, ...removedFrom("labels", CONTROLLER_LABEL), ...owners];
  return operations.length === 0 ? [] : [uidTest(metadata.uid), ...operations];
}
