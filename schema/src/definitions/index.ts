// CustomResourceDefinitions: what kube-apiserver demands of one, and of the objects of its kinds. Not for operators: nothing of it may
// become a part of their bundles.

// Definitions
export { checkDefinition, checkUnchanged, defaultDefinition } from "./definition.js";
export { checkNames, approvalState, approvalTextOf, dns1035Problem, isProtectedGroup } from "./check/check-names.js";
export { checkExpressions, unevaluatedRules } from "./check/check-rules.js";
export { checkStoredVersions, type DefinitionContext } from "./check/check-spec.js";

// Objects
export { brokenRule, wrongType } from "./check/schema-messages.js";
export { checkEmbeddedResources, misfitOfEmbedded, type MetadataRules } from "./schema/embedded-resource.js";
export { evaluateRules } from "./schema/rules.js";
export {
  applyDefaults,
  dropNulls,
  itemSchema,
  memberPathOf,
  memberSchema,
  propertiesOf,
  pruneUnknownFields,
  type StructuralSchema,
} from "./schema/structural.js";
export { validateSchema } from "./schema/validate-schema.js";

// Names, and the addresses of webhooks
export * from "../texts/name-syntax.js";
export { checkClientConfig, checkReviewVersions, REVIEW_VERSIONS } from "./webhook-client.js";

// Messages
export { checkText, problemLinesOf } from "./errors/expression-problem.js";
export type { CheckedText, Variables, VariableType } from "./errors/expression-problem.js";
export * from "./errors/field-error.js";
export { floatText, goFormat, goTypeOf } from "./errors/go-format.js";
export { checkOneOf, checkRequired, checkRequiredOneOf } from "./errors/required-rules.js";

// JSON
export * from "./json.js";
