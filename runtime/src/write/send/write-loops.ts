// How writes are told apart where loops of them are looked for.
import { hash } from "node:crypto";
import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import type { ObservedWrite } from "../../match/loop-detector.js";
import type { PlannedWrite, Sending } from "./plan.js";
import type { WriteCause } from "./postponed-write.js";

/** An object, or its status. */
export type WrittenPart = Pick<PlannedWrite, "ref" | "isStatus">;

/** Names the writes of an object for one primary: two in turns are a loop. By its name, so that one which is deleted each time is one, too. */
export function keyOfLoop(definition: ResourceDefinition, { ref, isStatus }: WrittenPart, cause?: WriteCause): string {
  const { uid = "" } = cause?.primary?.metadata ?? {};
  return `${kindNameOf(definition)} ${keyOf(ref)}${isStatus ? " status" : ""} ${uid}`;
}

/** Returns a write as its loop sees it; `input` is what it follows from, such as the generation of the primary. */
export function observedOf({ target, plan, before, cause }: Sending, content: string, input: string): ObservedWrite {
  const { uid } = cause?.primary?.metadata ?? {};
  // A write of the primary itself makes its next generation, and so does one of its status without a subresource.
  const isCounted = !plan.isStatus || !target.definition.hasStatusSubresource;
  const isPrimary = isCounted && before !== undefined && before.object.metadata.uid === uid;
  const { isStatus } = plan;
  return {
    content,
    input: isPrimary ? "" : input,
    isFollowing: isStatus && cause?.followsEvent === true,
    isStatus,
  };
}

/** Returns a digest of what is written, without the version that it is made from. */
export function digestOf(content: object): string {
  const { metadata } = content as Partial<KubernetesObject>;
  const hasVersion = metadata?.resourceVersion !== undefined;
  const stated = hasVersion ? { ...content, metadata: { ...metadata, resourceVersion: undefined } } : content;
  return hash("sha1", JSON.stringify(stated), "base64");
}
