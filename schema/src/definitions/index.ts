// Validation of CustomResourceDefinitions and of their custom resources, as kube-apiserver does it. Operators must not import this module, so that it
// does not end up in their bundles.

// Definitions
export {
  approvalState,
  approvalTextOf,
  checkDefinition,
  checkNames,
  checkStoredVersions,
  checkUnchanged,
  defaultDefinition,
  isProtectedGroup,
  type DefinitionContext,
} from "./definition.js";
export { checkExpressions, evaluateRules, unevaluatedRules } from "./validation-rules.js";

// Custom resources
export { checkEmbeddedResources, misfitOfEmbedded, type MetadataRules } from "./embedded-resource.js";
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
export { brokenRule, validateSchema, wrongType } from "./validate-schema.js";

// Names, and client configuration of webhooks
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

// Error messages
export { checkText, problemLinesOf, type CheckedText, type Variables, type VariableType } from "./expressions.js";
export * from "./field-error.js";

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
