// What is done about an object that exists though it was to be created: the answer to its creation was lost, the watch is behind, or it
// is somebody else's.
import type { KubernetesObject, ObjectMeta, ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { otherOwnerOf } from "../cluster/primary-link.js";
import { describeObject } from "../cluster/resource-path.js";

/** What to do about an object of the name that does not belong to the same primary. */
export type ExistingPolicy = "refuse" | "adopt";

/** An object that was to be created, and the one that exists. */
export interface ExistingObject {
  readonly definition: ResourceDefinition;
  readonly desired: ObjectRef & Partial<ObjectMeta>;
  readonly live: KubernetesObject;
}

/** Throws if an object must not be taken over, saying why and what to do. */
export function checkAdoption({ definition, desired, live }: ExistingObject, policy: ExistingPolicy | undefined): void {
  const object = describeObject(definition, desired);
  // The conflict that told of it is the runtime's own doing, and would only confuse.
  const fail = (problem: string) => new Error(`${object} ${problem}`);
  const isTerminating = live.metadata.deletionTimestamp !== undefined;
  const other = otherOwnerOf(live.metadata, desired);
  if (other !== undefined) {
    const what = policy === "adopt" ? "cannot be adopted: it" : "exists already and";
    throw fail(`${what} belongs to ${other}; delete it there, or give the dependent another name`);
  }
  if (policy !== "adopt")
    throw fail(
      `exists already and does not belong to this primary; ${isTerminating ? "it is being deleted: wait for that, or " : "delete it, let the dependent adopt it (existing: adopt), or "}` +
        "give the dependent another name",
    );
  if (isTerminating) throw fail("cannot be adopted: it is being deleted; it is created when it is gone");
}
