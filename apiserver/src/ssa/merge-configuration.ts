import { isObject, type JsonObject } from "../json.js";
import { mergeValues } from "./merge/merge.js";
import { findAtomics } from "./types/atomics.js";
import { checkValue, typedErrorText } from "./types/check-value.js";
import type { MergeType } from "./types/merge-type.js";

/**
 * Merges what a mutating policy constructs into an object, without owners.
 *
 * Throws an Error in the words of kube-apiserver if the configuration does not fit, or would replace a list or a map as a whole.
 */
export function mergeConfiguration(type: MergeType, live: JsonObject, given: JsonObject): JsonObject {
  const config: JsonObject = { ...given, apiVersion: live["apiVersion"] ?? "", kind: live["kind"] ?? "" };
  const fail = (words: string): never => {
    throw new Error(`error applying patch: ${words}`);
  };
  const ofConfig = checkValue(type, config, { allowsDuplicates: false });
  if (ofConfig.length > 0) fail(`failed to convert patch object to typed object: ${typedErrorText(ofConfig)}`);
  const atomics = findAtomics(type, config);
  if (atomics.length > 0)
    fail(`invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(", ")}`);
  const ofLive = checkValue(type, live, { allowsDuplicates: true });
  if (ofLive.length > 0) fail(`failed to convert original object to typed object: ${typedErrorText(ofLive)}`);
  const merged = mergeValues(type, live, config);
  return isObject(merged) ? merged : live;
}
