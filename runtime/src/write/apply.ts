import { isApiError } from "../base/errors.js";
import { isOwnedByFormer, uidOf } from "../base/decoded-resource.js";
import { applyClaiming } from "./claimed-fields.js";
import { applyOverForeign } from "./foreign-members.js";
import { LAST_STATED } from "./last-stated.js";
import { LeftFields } from "./left-fields.js";
import { ownsReleased, releaseFields } from "./released-fields.js";
import { failedAsGone } from "./send/on-latest.js";
import { applicationOf, locked, planApply } from "./send/plan.js";
import type { Sender, Sent } from "./send/send.js";
import type { WriteMethod } from "./write-method.js";

/** Returns the way to write objects by server-side apply. */
export function applyMethod(sender: Sender): WriteMethod {
  const leftFields = new LeftFields(sender);
  return {
    create(target, desired, cause) {
      // An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
      const plan = locked({ ...planApply(target.definition, desired, false), version: "1" });
      return sender.send({ target, plan, before: undefined, cause, content: desired });
    },
    async change(target, desired, options) {
      const { live, isForced, basis, released, cause } = options;
      const asDesired = planApply(target.definition, desired, false);
      // What an earlier version stated in a PUT is not ours yet.
      const wasPut = live.object.metadata.annotations?.[LAST_STATED] !== undefined;
      const isReleasing = released !== undefined && ownsReleased(sender, live, released);
      const isOfFormer = isOwnedByFormer(live, sender.formerFieldManagers);
      const isOwing = wasPut || isReleasing || isOfFormer || leftFields.hasAny(live);
      if (isForced !== true && !isOwing && sender.matcher.matches(applicationOf(target, asDesired)!, live)) {
        sender.noteMatch(target, asDesired, cause);
        return { kind: "unchanged", entry: live };
      }
      const { uid, resourceVersion } = live.object.metadata;
      if (basis !== undefined && basis.version !== resourceVersion) return { kind: "unseen", entry: live };
      // With the uid an apply neither creates what is gone, nor takes over what somebody else made under the name.
      const metadata = Object.assign({}, desired.metadata, { uid }, basis && { resourceVersion });
      const stated = Object.assign({}, desired, { metadata });
      const plan = planApply(target.definition, stated, false);
      const write = { target, plan, before: live, cause, content: desired, released };
      const isFirst = wasPut || isOfFormer || sender.matcher.ownedFields(live, "object") === undefined;
      const send = async (): Promise<Sent | undefined> => {
        try {
          return await (isFirst ? applyClaiming(sender, write) : sender.send(write));
        } catch (error) {
          if (basis !== undefined && isApiError(error, 409)) throw error;
          if (await failedAsGone(error, live.object, { sender, target, cause })) return undefined;
          return applyOverForeign(error, write, sender);
        }
      };
      try {
        if (isReleasing) {
          const without = await releaseFields(sender, write);
          const version = without?.object.metadata.resourceVersion;
          return (
            without && (await this.change(target, desired, { ...options, live: without, basis: basis && { version } }))
          );
        }
        const sent = await send();
        return sent && (await leftFields.removeAfter(write, sent));
      } catch (error) {
        if (basis === undefined || !isApiError(error, 409)) throw error;
        const now = await sender.read(target, desired.metadata, cause?.signal);
        return now === undefined || uidOf(now) !== uid ? undefined : { kind: "unseen", entry: now };
      }
    },
  };
}
