export {
  arrayAt,
  canonicalJson,
  clone,
  compareText,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  setMember,
  sortedJson,
  sortedPairs,
  stringAt,
} from "@gen-operator/schema/definitions";
export type { JsonObject, JsonValue, MemberPair } from "@gen-operator/schema/definitions";
