import type { JsonPatchOperation, JsonValue } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { fieldsAt, type FieldPath } from "../match/field-set.js";
import { resolveField, type LeftField } from "../match/left-behind.js";
import { BEFORE_FIRST_APPLY, isAppliedBy, readWhole } from "./managed-entries.js";
import { isReleased } from "./released-fields.js";
import { onLatest } from "./send/on-latest.js";
import { planJsonPatch, uidTest, type Change } from "./send/plan.js";
import type { Sender, Sent } from "./send/send.js";

/**
 * Removes fields that an apply left behind, unless another manager owns them as well. Fields that could not be removed are remembered for as long
 * as the process lives: after the apply nothing in the object says that they were ours.
 */
export class LeftFields {
  readonly #sender: Sender;
  /** By the uid of the object. */
  readonly #pending = new Map<string, readonly FieldPath[]>();

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  hasAny({ object }: DecodedResource): boolean {
    return this.#pending.size > 0 && this.#pending.has(object.metadata.uid ?? "");
  }

  /** Returns the result of an apply, or of the patch that removes what it left. */
  async removeAfter(write: Change, sent: Sent): Promise<Sent> {
    if (sent.kind === "postponed") return sent;
    const { uid = "" } = sent.entry.object.metadata;
    const left = this.#sender.matcher.leftBehind(write, sent.entry);
    const fields = [...(this.#pending.get(uid) ?? []), ...left.map((each) => each.fields)];
    if (fields.length === 0) return sent;
    this.#pending.set(uid, fields);
    const removed = await this.#remove({ ...write, before: sent.entry }, fields);
    if (removed?.kind !== "postponed") this.#pending.delete(uid);
    return removed ?? sent;
  }

  #remove(write: Change, fields: readonly FieldPath[]): Promise<Sent | undefined> {
    const sender = this.#sender;
    const remove = async (live: DecodedResource): Promise<Sent | undefined> => {
      const state = await readWhole(sender, { ...write, before: live });
      if (state === undefined) return undefined;
      const { object, entries } = state;
      const others = entries.filter((entry) => !isAppliedBy(entry, sender.fieldManager));
      const hasOther = (path: FieldPath) =>
        others.some(
          ({ manager, fieldsV1 = {} }) => manager !== BEFORE_FIRST_APPLY && fieldsAt(fieldsV1, path) !== undefined,
        );
      const find = (path: FieldPath): LeftField | undefined => {
        // Replicas are scaled through a subresource, of which stripped managed fields say nothing.
        const isKept = path.at(-1) === "f:replicas" || isReleased(path, write.released) || hasOther(path);
        return isKept ? undefined : resolveField(object as unknown as JsonValue, path);
      };
      const found = fields.flatMap((path): readonly LeftField[] => {
        const left = find(path);
        if (left === undefined) return [];
        const mirror = write.target.definition.isCustom ? undefined : mirrorOf(path);
        const mirrored = mirror && find(mirror);
        return mirrored?.value === left.value ? [left, mirrored] : [left];
      });
      if (found.length === 0) return undefined;
      const plan = planJsonPatch(object, [uidTest(object.metadata.uid), ...found.flatMap(removal)], false);
      // Whatever was learnt of how the object is stored was learnt with these fields in it.
      sender.matcher.forms.forget(write.target.cache, object.metadata);
      return sender.send({ ...write, plan, content: plan.body, before: live });
    };
    return onLatest(write.before, remove, { sender, target: write.target });
  }
}

// In a PodSpec the API server sets each of these fields to the value of the other one if that is absent, so only both together go.
const MIRRORS: { readonly [element: string]: string } = { "f:serviceAccountName": "f:serviceAccount" };

function mirrorOf(path: FieldPath): FieldPath | undefined {
  const mirror = MIRRORS[path.at(-1) ?? ""];
  return mirror === undefined ? undefined : [...path.slice(0, -1), mirror];
}

function removal({ path, value }: LeftField): JsonPatchOperation[] {
  const pointer = path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return [
    { op: "test", path: pointer, value },
    { op: "remove", path: pointer },
  ];
}
