// The metadata of a primary that the functions of a controller read, and that makes no new generation when it changes.
import { hash } from "node:crypto";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { ObjectMeta } from "../base/kubernetes-object.js";
import type { PrimaryInput } from "../schedule/schedule-settings.js";

/** Returns a text that is the same as long as the inputs of a controller are. */
export type InputReader = (entry: DecodedResource) => string;

type Member = "labels" | "annotations";
type KeySet = Pick<ReadonlySet<string>, "has">;

// What clients, and the controller itself, keep for themselves. They are inputs only if their keys are named.
const BOOKKEEPING =
  /^(?:kubectl\.kubernetes\.io\/last-applied-configuration$|control-plane\.alpha\.kubernetes\.io\/leader$|gen-operator\.dev\/)/;
const KEYED = /^metadata\.(labels|annotations)(?:\['([^']+)'\])?$/;

/** Tells whether a text names an input; code without types may state anything. */
export function isInput(input: unknown): input is PrimaryInput {
  return typeof input === "string" && (input === "metadata.ownerReferences" || KEYED.test(input));
}

/** Returns the reader of inputs; undefined if there are none. `appliedTo` returns the keys that the controller itself applied to a primary. */
export function inputReaderOf(
  inputs: readonly PrimaryInput[] = [],
  appliedTo: (entry: DecodedResource) => { readonly [member in Member]: KeySet },
): InputReader | undefined {
  if (inputs.length === 0) return undefined;
  const parts = [...new Set(inputs)].sort().map(partOf);
  return (entry) => {
    const applied = appliedTo(entry);
    const text = JSON.stringify(parts.map((read) => read(entry.object.metadata, applied)));
    // One for each primary is kept.
    return text.length <= 32 ? text : hash("sha1", text, "base64");
  };
}

type PartReader = (metadata: ObjectMeta, applied: { readonly [member in Member]: KeySet }) => unknown;

// A value that the controller applied is no news to it. When another client changes the value, it takes the key over.
function partOf(input: PrimaryInput): PartReader {
  const [, member, key] = KEYED.exec(input) ?? [];
  if (member === undefined) return ({ ownerReferences }) => ownerReferences;
  const name = member as Member;
  if (key !== undefined) return (metadata, applied) => (applied[name].has(key) ? undefined : metadata[name]?.[key]);
  return (metadata, applied) =>
    Object.entries(metadata[name] ?? {})
      .filter(([key]) => !BOOKKEEPING.test(key) && !applied[name].has(key))
      .sort(([one], [other]) => (one < other ? -1 : 1));
}
