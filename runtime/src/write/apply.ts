import { type JsonPatchOperation } from "../base/kubernetes-object.js";
import { isApiError } from "../base/errors.js";
import { CONTROLLER_LABEL } from "../base/primary-link.js";
import { uidOf, type DecodedResource } from "../base/decoded-resource.js";
import { objectPath } from "../client/resource-path.js";
import { applyOverForeign } from "./foreign-members.js";
import { failedAsGone, onLatest } from "./send/on-latest.js";
import { applicationOf, locked, planApply, planJsonPatch, uidTest, type Sending } from "./send/plan.js";
import { readManagedFields, type ManagedEntry } from "./send/rivals.js";
import type { Sender } from "./send/send.js";
import type { WriteMethod } from "./write-method.js";

type Change = Sending & { readonly before: DecodedResource };

/** Returns the way to write objects by server-side apply. */
export function applyMethod(sender: Sender): WriteMethod {
  return {
    create(target, desired, cause) {
      // An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
      const plan = locked({ ...planApply(target.definition, desired, false), version: "1" });
      return sender.send({ target, plan, before: undefined, cause, content: desired });
    },
    async change(target, desired, { live, isForced, basis, cause }) {
      const asDesired = planApply(target.definition, desired, false);
      if (isForced !== true && sender.matcher.matches(applicationOf(target, asDesired)!, live)) {
        sender.noteMatch(target, asDesired, cause);
        return { kind: "unchanged", entry: live };
      }
      const { uid, resourceVersion } = live.object.metadata;
      if (basis !== undefined && basis.version !== resourceVersion) return { kind: "unseen", entry: live };
      // With the uid an apply neither creates what is gone, nor takes over what somebody else made under the name.
      const metadata = Object.assign({}, desired.metadata, { uid }, basis && { resourceVersion });
      const stated = Object.assign({}, desired, { metadata });
      const plan = planApply(target.definition, stated, false);
      const write = { target, plan, before: live, cause, content: desired };
      try {
        // What is only tied keeps its content.
        const isFirst = Object.keys(desired).length > 1 && sender.matcher.ownedFields(live, "object") === undefined;
        // The claim changes the version: the apply has to be computed from the object as it is then.
        const claimed = isFirst ? await claimFields(sender, write) : undefined;
        if (claimed !== undefined && basis !== undefined) return { kind: "unseen", entry: claimed };
        return await sender.send(write);
      } catch (error) {
        if (basis !== undefined && isApiError(error, 409)) {
          const now = await sender.read(target, desired.metadata, cause?.signal);
          return now === undefined || uidOf(now) !== uid ? undefined : { kind: "unseen", entry: now };
        }
        if (await failedAsGone(error, live.object, { sender, target, cause })) return undefined;
        return applyOverForeign(error, write, sender);
      }
    },
  };
}

// An apply removes nothing of what the same manager wrote by PUT, nor of what the controller applied that had the object before. So the first
// one takes their entry of the managed fields over (kubectl does that, too: csaupgrade).
async function claimFields(
  sender: Sender,
  { target, before: live, cause }: Change,
): Promise<DecodedResource | undefined> {
  const { client, fieldManager } = sender;
  const claim = async ({ object }: DecodedResource) => {
    const { uid, labels } = object.metadata;
    const entries = await readManagedFields(client, objectPath(target.definition, object.metadata), cause?.signal);
    const isFormer = ({ manager, operation, subresource }: ManagedEntry) =>
      subresource === undefined &&
      (manager === fieldManager ? operation === "Update" : manager === labels?.[CONTROLLER_LABEL]);
    const value = entries.find(isFormer);
    if (value === undefined) return undefined;
    const path = `/metadata/managedFields/${entries.indexOf(value)}`;
    const claimed = { ...value, manager: fieldManager, operation: "Apply" };
    const change = [uidTest(uid), { op: "test", path, value }, { op: "replace", path, value: claimed }];
    const plan = planJsonPatch(object, change as JsonPatchOperation[], false);
    const sent = await sender.send({ target, plan, before: { object }, cause, isUrgent: true });
    return sent.kind === "postponed" ? undefined : sent.entry;
  };
  return onLatest(live, claim, { sender, target });
}
