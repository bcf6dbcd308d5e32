// Schemas
export type { Definitions, Schema, ValidationRule } from "./values/schema.js";

// Strings
export { MOST_CHARACTERS, printableJson, printableLine, printableText, quote, truncateText } from "./strings/escape.js";
export { hasFormat, isKnownFormat } from "./strings/formats.js";
export { canonicalTextOf, isMapped, readAddress, type Address } from "./strings/ip-address.js";
export {
  findWrongRequirements,
  generateName,
  isLabelKey,
  NAME_CHARACTERS,
  subdomainProblems,
  type LabelRequirement,
} from "./strings/names.js";
export { findPatternProblem, hasMatch } from "./strings/pattern.js";
export { canonicalQuantity, compareQuantities, isSameQuantity, parseQuantity } from "./strings/quantity.js";
export { parseVersion, type Version } from "./strings/semver.js";
export { RESERVED_WORDS } from "./cel/fields.js";

// JSON and patches
export {
  clone,
  deepEqual,
  exactJson,
  int64Json,
  int64Number,
  isJsonObject,
  isTooDeep,
  MAX_DEPTH,
  mayHaveLongIntegers,
  memberOf,
  parseExactJson,
  setMember,
  type JsonObject,
  type JsonValue,
} from "./json/json.js";
export { applyJsonPatch, applyMergePatch, PatchFailure, type PatchOperation } from "./json/patch.js";

// Values
export { checkMetadata, checkValue, type Place, type SchemaProblem } from "./values/check-value.js";
export { findScaleProblems, MAX_REPLICAS, type ScalePaths, type ScaleProblem } from "./values/check-scale.js";
export { fillDefaults } from "./values/fill-defaults.js";
