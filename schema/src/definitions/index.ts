// CustomResourceDefinitions: what kube-apiserver demands of one, and of the objects of its kinds. Not for operators: nothing of it may
// become a part of their bundles.

// Definitions
export { checkDefinition, checkUnchanged, defaultDefinition } from "./definition-part.js";
export { checkNames, approvalState, approvalTextOf, isProtectedGroup } from "./check-names.js";
export { checkExpressions, unevaluatedRules } from "./validation-rules.js";
export { checkStoredVersions, type DefinitionContext } from "./definition.js";

// Objects
export { brokenRule, wrongType } from "./schema-messages.js";
export { checkEmbeddedResources, misfitOfEmbedded, type MetadataRules } from "./embedded-resource.js";
export { evaluateRules } from "./rules.js";
export {
  applyDefaults,
  dropNulls,
  itemSchema,
  memberPathOf,
  memberSchema,
  propertiesOf,
  pruneUnknownFields,
  type StructuralSchema,
} from "./structural-schema.js";
export { validateSchema } from "./validate-schema.js";

// Names, and the addresses of webhooks
export {
  configKeyProblems,
  dns1035Problem,
  dns1035Problems,
  labelNameProblems,
  labelValueProblems,
  pathSegmentProblems,
  portNameProblems,
  qualifiedNameProblems,
  subdomainProblems,
  underscoredProblems,
} from "../strings/names.js";
export { checkClientConfig, checkReviewVersions, REVIEW_VERSIONS } from "./webhook-client.js";

// Messages
export { checkText, problemLinesOf } from "./expressions.js";
export type { CheckedText, Variables, VariableType } from "./expressions.js";
export * from "./field-error.js";
export { floatText, goFormat, goTypeOf } from "./go-format.js";
export { checkOneOf, checkRequired, checkRequiredOneOf } from "./required-rules.js";

// JSON
export {
  arrayAt,
  canonicalJson,
  clone,
  compareText,
  deepEqual,
  isJsonObject as isObject,
  memberOf,
  objectAt,
  setMember,
  sortedJson,
  sortedPairs,
  stringAt,
  type JsonObject,
  type JsonValue,
  type MemberPair,
} from "../json/json.js";
