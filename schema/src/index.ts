// Schemas
export type { Schema, ValidationRule } from "./values/schema.js";

// Texts
export { canonicalTextOf, isMapped, readAddress, type Address } from "./strings/ip-address.js";
export { exactJson, int64Json, int64Number, mayHaveLongIntegers, parseExactJson } from "./json/exact-json.js";
export { hasFormat, isKnownFormat } from "./strings/formats.js";
export { generateName, NAME_CHARACTERS } from "./strings/generate-name.js";
export { findWrongRequirements, isLabelKey, type LabelRequirement } from "./strings/label-selector.js";
export { findPatternProblem, hasMatch } from "./strings/pattern-part.js";
export { MOST_CHARACTERS, printableJson, printableLine, printableText, truncateText } from "./strings/escape.js";
export { quote } from "./strings/quote.js";
export { subdomainProblems } from "./strings/names.js";
export { RESERVED_WORDS } from "./cel/reserved-words.js";
export { parseVersion, type Version } from "./strings/semver.js";
export { canonicalQuantity, compareQuantities, isSameQuantity, parseQuantity } from "./strings/quantity.js";

// JSON, and the patches of it that Kubernetes takes
export {
  clone,
  deepEqual,
  isJsonObject,
  isTooDeep,
  MAX_DEPTH,
  memberOf,
  setMember,
  type JsonObject,
  type JsonValue,
} from "./json/json.js";
export { applyJsonPatch, PatchFailure, type PatchOperation } from "./json/patch.js";
export { applyMergePatch } from "./json/merge-patch.js";

// Values
export { checkMetadata, checkValue, type Place, type SchemaProblem } from "./values/check-value.js";
export { findScaleProblems, MAX_REPLICAS, type ScalePaths, type ScaleProblem } from "./values/check-scale.js";
export { fillDefaults, type Definitions } from "./values/fill-defaults.js";
