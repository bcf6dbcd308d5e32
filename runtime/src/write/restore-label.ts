// What is only created, or is being deleted, must not be written as desired; but without the label no watch shows it.
import type { ObjectMeta } from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL, lacksLabel, OBJECT_KEY } from "../base/primary-link.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { planMergePatch, type Stated } from "./send/plan.js";
import type { WriteCause } from "./send/postponed-write.js";
import type { Sender } from "./send/send.js";

/** An object without its label, and what it should have. */
export interface Unlabelled {
  readonly live: DecodedResource;
  readonly desired: Partial<ObjectMeta>;
  readonly cause?: WriteCause | undefined;
}

/** Puts the label of a controller, and nothing else of what is desired, on an object of that controller; returns its new state. */
export async function restoreLabel(
  sender: Sender,
  target: WriteTarget,
  { live, desired, cause }: Unlabelled,
): Promise<DecodedResource> {
  const { name, namespace, uid } = live.object.metadata;
  if (!lacksLabel(live.object.metadata, desired)) return live;
  const labels = { [CONTROLLER_LABEL]: desired.labels?.[CONTROLLER_LABEL] };
  const annotations = { [OBJECT_KEY]: desired.annotations?.[OBJECT_KEY] };
  const stated = { metadata: { name, namespace, uid, labels, annotations } } as Stated;
  const plan = planMergePatch(target.definition, stated, false);
  // Somebody else may have changed it since it was read: without a state before, its event is told.
  const sent = await sender.send({ target, plan, before: undefined, cause, isUrgent: true });
  return sent.kind === "postponed" ? live : sent.entry;
}
