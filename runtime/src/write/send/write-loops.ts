// How writes are told apart where loops of them are looked for.
import { hash } from "node:crypto";
import { keyOf, type KubernetesObject, type ObjectRef } from "../../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import type { ObservedWrite } from "../../match/loop-detector.js";
import type { Sending } from "./plan.js";

/** Names the writes of an object, or its status: by its name, so that one which somebody deletes each time is a loop, too. */
export function keyOfLoop(definition: ResourceDefinition, ref: ObjectRef, isStatus = false): string {
  return `${kindNameOf(definition)} ${keyOf(ref)}${isStatus ? " status" : ""}`;
}

/** Returns a write as its loop sees it: with the state of the primary that it follows from. */
export function observedOf({ plan, before, cause }: Sending, content: string): ObservedWrite {
  const { uid = "", generation = 0 } = cause?.primary?.metadata ?? {};
  // A write of the primary itself makes its next generation.
  const isPrimary = !plan.isStatus && before !== undefined && before.object.metadata.uid === uid;
  const isFollowing = plan.isStatus && cause?.followsEvent === true;
  const input = isFollowing ? `${uid} ${generation} events` : `${uid} ${generation}`;
  return { content, input: isPrimary ? uid : input, isFollowing };
}

/** Returns a digest of what is written, without the version that it is made from. */
export function digestOf(content: object): string {
  const { metadata } = content as Partial<KubernetesObject>;
  const hasVersion = metadata?.resourceVersion !== undefined;
  const stated = hasVersion ? { ...content, metadata: { ...metadata, resourceVersion: undefined } } : content;
  return hash("sha1", JSON.stringify(stated), "base64");
}
