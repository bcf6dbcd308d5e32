// Schemas
export type { JsonValue, Schema, ValidationRule } from "./values/schema.js";

// Texts
export { canonicalTextOf, isMapped, readAddress, type Address } from "./texts/addresses.js";
export { hasFormat, isKnownFormat } from "./texts/formats.js";
export { findPatternProblem, hasMatch } from "./texts/pattern.js";
export { quote } from "./texts/quote.js";
export { RESERVED_WORDS } from "./texts/reserved-words.js";
export { parseVersion, type Version } from "./texts/version.js";
export { canonicalQuantity, compareQuantities, isSameQuantity, parseQuantity } from "./texts/quantity.js";

// Values
export { checkValue, type Place, type SchemaProblem } from "./values/check-value.js";
export { fillDefaults, isRecord, type Definitions } from "./values/fill-defaults.js";
