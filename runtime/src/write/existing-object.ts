import { RetryAfterError } from "../base/errors.js";
import { type KubernetesObject, type ObjectMeta, type ObjectRef, describeObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { otherOwnerOf } from "../base/primary-link.js";

/** What to do about an object of the name that does not belong to the same primary. */
export type ExistingPolicy = "refuse" | "adopt";

const LOOK_AGAIN_AFTER_MS = 10_000;

interface ExistingObject {
  readonly definition: ResourceDefinition;
  readonly desired: ObjectRef & Partial<ObjectMeta>;
  readonly live: KubernetesObject;
}

/** Throws if an object must not be taken over: a lost answer or a late watch hid it, or it is somebody else's. */
export function checkAdoption({ definition, desired, live }: ExistingObject, policy: ExistingPolicy | undefined): void {
  const object = describeObject(definition, desired);
  // The conflict that told of it is the runtime's own doing, and would only confuse.
  const fail = (problem: string) => new Error(`${object} ${problem}`);
  const isTerminating = live.metadata.deletionTimestamp !== undefined;
  // It is tied to nobody who would be told when it is gone.
  const later = (problem: string) => new RetryAfterError(`${object} ${problem}`, LOOK_AGAIN_AFTER_MS);
  const strange = "exists already and does not belong to this primary";
  if (policy !== "adopt" && isTerminating)
    throw later(`${strange}; it is being deleted: wait for that, or give the dependent another name`);
  const other = otherOwnerOf(live.metadata, desired);
  if (other !== undefined) {
    const what = policy === "adopt" ? "cannot be adopted: it" : "exists already and";
    throw fail(`${what} belongs to ${other}; delete it there, or give the dependent another name`);
  }
  const advice = "delete it, let the dependent adopt it (existing: adopt), or give the dependent another name";
  if (policy !== "adopt") throw fail(`${strange}; ${advice}`);
  if (isTerminating) throw later("cannot be adopted: it is being deleted; it is created when it is gone");
}
