import { defineRule } from "../../diagnostic.js";

export const CRD_EMPTY_OBJECT = defineRule({
  id: "crd-empty-object",
  severity: "warning",
  acceptedBy: ["controller"],
  page: {
    meaning:
      "The schema of a primary's CRD has an object without fields. It looks as if it allowed any content, but the API server drops everything in it, and `parse` rejects it.",
    remedy:
      "Declare `properties` or `additionalProperties`. Set `x-kubernetes-preserve-unknown-fields: true` if the object may have any fields.",
    example: "warning-crd-empty-object",
  },
});

export const CRD_FIELD = defineRule({
  id: "crd-field",
  severity: "error",
  page: {
    meaning: "A field of a CRD is missing or has a value that the API server rejects.",
    remedy: "Correct the field, or fetch the CRD again.",
    example: "crd-versions",
  },
});

export const CRD_NAME = defineRule({
  id: "crd-name",
  severity: "error",
  page: {
    meaning: "The name of a CRD is not `<plural>.<group>`, or a name in the CRD is not valid in Kubernetes.",
    remedy: "Correct the name.",
    example: "crd-name",
  },
});

export const CRD_RULE = defineRule({
  id: "crd-rule",
  severity: "error",
  page: {
    meaning:
      "The API server rejects a rule of a CRD (`x-kubernetes-validations`): its CEL does not compile or can cost too much, or its message, reason or fieldPath is invalid. It is an error for the CRD of a primary, and a warning for any other.",
    remedy:
      "Correct the rule. To reduce its cost, add maxItems, maxProperties and maxLength to the lists, maps and strings that it reads.",
    example: "crd-rule",
  },
});

export const CRD_SCHEMA = defineRule({
  id: "crd-schema",
  severity: "error",
  page: {
    meaning:
      "The API server rejects the schema of a CRD: it is not structural, or a default violates it. It is an error for the CRD of a primary, and a warning for any other.",
    remedy:
      "Correct the keyword that the message names. A schema must not contain `$ref`, and must set a type for every field.",
    example: "crd-structure",
  },
});

export const CRD_SUBRESOURCE = defineRule({
  id: "crd-subresource",
  severity: "varies",
  acceptedBy: ["controller"],
  page: {
    meaning: "A subresource of a CRD is defined in a way that the API server rejects or ignores.",
    remedy: "Correct `subresources` of the version.",
    example: "warning-crd-subresource",
  },
});

export const CRD_UNKNOWN_FIELD = defineRule({
  id: "crd-unknown-field",
  severity: "error",
  page: {
    meaning:
      "A CRD has a field, or its schema a keyword, that Kubernetes does not know. The API server drops it, so a misspelled limit has no effect; kubectl rejects it. It is an error for the CRD of a primary, and a warning for any other.",
    remedy: "Correct the name, or remove the field.",
    example: "crd-unknown-field",
  },
});

export const CRD_VERSION = defineRule({
  id: "crd-version",
  severity: "error",
  page: {
    meaning: "The document is not a CustomResourceDefinition of apiextensions.k8s.io/v1.",
    remedy: "Convert the CRD to v1.",
    example: "crd-v1beta1",
  },
});

export const HELM_TEMPLATE = defineRule({
  id: "helm-template",
  severity: "error",
  page: {
    meaning: "A file with CRDs is a template of a Helm chart, which is not YAML until Helm renders it.",
    remedy: "Render the chart with `helm template CHART --include-crds`, and use the CRDs of the result.",
    example: "helm-template",
  },
});

export const INEXACT_NUMBER = defineRule({
  id: "inexact-number",
  severity: "warning",
  acceptedBy: ["controller"],
  page: {
    meaning:
      "A default or an enum of a CRD contains an integer beyond 2^53, which JavaScript rounds: an operator reads, compares and writes the nearest number.",
    remedy: "Do nothing if the operator never uses the field. Otherwise make the field a string.",
    example: "warning-inexact-number",
  },
});

export const NO_CRDS = defineRule({
  id: "no-crds",
  severity: "error",
  page: {
    meaning: "None of the files contains a CustomResourceDefinition.",
    remedy: "Use files or folders with CRDs.",
  },
});

export const NOT_A_CRD = defineRule({
  id: "not-a-crd",
  severity: "warning",
  page: {
    meaning: "A file among the CRDs contains no CustomResourceDefinition.",
    remedy: "Move the file elsewhere.",
    example: "not-a-crd",
  },
});

export const UNCHECKED_RULE = defineRule({
  id: "unchecked-rule",
  severity: "warning",
  acceptedBy: ["controller"],
  page: {
    meaning: "A rule of a CRD (`x-kubernetes-validations`) uses CEL that `parse` of the class cannot evaluate.",
    remedy:
      "Do nothing if it is enough that the API server checks the rule. Otherwise rewrite the rule without the part that the message names.",
    example: "warning-unchecked-rule",
  },
});
