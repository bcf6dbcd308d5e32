import { describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { clearingPatch } from "./foreign-entries.js";
import { failedAsGone } from "./send/on-latest.js";
import { applicationOf, locked, planApply, planJsonPatch, type Sending } from "./send/plan.js";
import type { Sender } from "./send/send.js";
import type { WriteMethod } from "./write-method.js";

/** Returns the way to write objects by server-side apply. */
export function applyMethod(sender: Sender): WriteMethod {
  // Takes entries of others out of the way of a write; throws its error if that is not why it failed.
  const clear = async (
    error: unknown,
    { target, plan, before, cause, content = plan.body }: Sending & { readonly before: DecodedResource },
  ): Promise<DecodedResource> => {
    const change = clearingPatch(error, { target, desired: content, live: before });
    if (change === undefined) throw error;
    const clearing = planJsonPatch(before.object, change, false);
    const cleared = await sender.send({ target, plan: clearing, before, cause });
    if (cleared.kind === "postponed") throw error;
    const object = describeObject(target.definition, plan.ref);
    const text = `took list entries of others out of ${object}: ${messageOf(error)}`;
    cause?.logger?.warn({ dependent: cause.dependent }, text);
    return cleared.entry;
  };
  return {
    create(target, desired, cause) {
      // An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
      const plan = locked({ ...planApply(target.definition, desired, false), version: "1" });
      return sender.send({ target, plan, before: undefined, cause, content: desired });
    },
    async change(target, desired, { live, isForced, cause }) {
      const asDesired = planApply(target.definition, desired, false);
      if (isForced !== true && sender.matcher.matches(applicationOf(target, asDesired)!, live)) {
        sender.noteMatch(target, asDesired, cause);
        return { kind: "unchanged", entry: live };
      }
      // With the uid an apply neither creates what is gone, nor takes over what somebody else made under the name.
      const metadata = Object.assign({}, desired.metadata, { uid: live.object.metadata.uid });
      const stated = Object.assign({}, desired, { metadata });
      const plan = planApply(target.definition, stated, false);
      const write = { target, plan, before: live, cause, content: desired };
      try {
        return await sender.send(write);
      } catch (error) {
        if (await failedAsGone(error, live.object, { sender, target, cause })) return undefined;
        // Once: what is in the way again is refused again.
        return sender.send({ ...write, before: await clear(error, write) });
      }
    },
  };
}
