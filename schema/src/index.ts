// Schemas
export type { Schema, ValidationRule } from "./values/schema.js";

// Texts
export { canonicalTextOf, isMapped, readAddress, type Address } from "./texts/addresses.js";
export { exactJson, int64Json, int64Number, mayHaveLongIntegers, parseExactJson } from "./texts/exact-json.js";
export { hasFormat, isKnownFormat } from "./texts/formats.js";
export { generateName, NAME_CHARACTERS } from "./texts/generate-name.js";
export { findWrongRequirements, isLabelKey, type LabelRequirement } from "./texts/label-selector.js";
export { findPatternProblem, hasMatch } from "./texts/pattern.js";
export { MOST_CHARACTERS, printableJson, printableLine, printableText, truncateText } from "./texts/printable.js";
export { quote } from "./texts/quote.js";
export { subdomainProblems } from "./texts/name-syntax.js";
export { RESERVED_WORDS } from "./texts/reserved-words.js";
export { parseVersion, type Version } from "./texts/version.js";
export { canonicalQuantity, compareQuantities, isSameQuantity, parseQuantity } from "./texts/quantity.js";

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
} from "./values/json.js";
export { applyJsonPatch, PatchFailure, type PatchOperation } from "./patches/json-patch.js";
export { applyMergePatch } from "./patches/merge-patch.js";

// Values
export { checkMetadata, checkValue, type Place, type SchemaProblem } from "./values/check-value.js";
export { findScaleProblems, MAX_REPLICAS, type ScalePaths, type ScaleProblem } from "./values/check-scale.js";
export { fillDefaults, type Definitions } from "./values/fill-defaults.js";
