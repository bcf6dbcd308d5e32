import { defineRule } from "../../diagnostic.js";

export const CRD_EMPTY_OBJECT = defineRule({
  id: "crd-empty-object",
  severity: "warning",
  acceptedBy: ["controller"],
  page: {
    meaning:
      "The schema of a primary's CRD has an object without fields. It looks as if it took any content, but the API server drops everything in it, and `parse` refuses it.",
    remedy:
      "Declare `properties` or `additionalProperties`. Set `x-kubernetes-preserve-unknown-fields: true` if the object may have any fields.",
    example: "warning-crd-empty-object",
  },
});

export const CRD_FIELD = defineRule({
  id: "crd-field",
  severity: "error",
  page: {
    meaning: "A field of a CRD is missing or has a value that the API server refuses.",
    remedy: "Correct the field, or fetch the CRD again.",
    example: "crd-versions",
  },
});

export const CRD_NAME = defineRule({
  id: "crd-name",
  severity: "error",
  page: {
    meaning: "The name of a CRD is not `<plural>.<group>`, or Kubernetes does not accept a name in the CRD.",
    remedy: "Correct the name.",
    example: "crd-name",
  },
});

export const CRD_RULE = defineRule({
  id: "crd-rule",
  severity: "error",
  page: {
    meaning:
      "The API server refuses a rule of a CRD (`x-kubernetes-validations`): its CEL does not compile or can cost too much, or its message, reason or fieldPath is invalid. It is an error for the CRD of a primary, and a warning for any other.",
    remedy:
      "Correct the rule. Against its cost, add maxItems, maxProperties and maxLength to the lists, maps and strings that it reads.",
    example: "crd-rule",
  },
});

export const CRD_SCHEMA = defineRule({
  id: "crd-schema",
  severity: "error",
  page: {
    meaning:
      "The API server refuses the schema of a CRD: it is not structural, or a default breaks it. It is an error for the CRD of a primary, and a warning for any other.",
    remedy: "Correct the keyword that the message names. A schema has no `$ref`, and a type for every field.",
    example: "crd-structure",
  },
});

export const CRD_SUBRESOURCE = defineRule({
  id: "crd-subresource",
  severity: "varies",
  acceptedBy: ["controller"],
  page: {
    meaning: "A subresource of a CRD is described in a way that the API server refuses or ignores.",
    remedy: "Correct `subresources` of the version.",
    example: "warning-crd-subresource",
  },
});

export const CRD_UNKNOWN_FIELD = defineRule({
  id: "crd-unknown-field",
  severity: "error",
  page: {
    meaning:
      "A CRD has a field, or its schema a keyword, that Kubernetes does not know. The API server drops it, so a misspelt limit limits nothing; kubectl refuses it. It is an error for the CRD of a primary, and a warning for any other.",
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
    meaning: "A file with CRDs is a template of a Helm chart, so it is no YAML before Helm has rendered it.",
    remedy: "Render the chart, `helm template CHART --include-crds`, and take the CRDs of the result.",
    example: "helm-template",
  },
});

export const INEXACT_NUMBER = defineRule({
  id: "inexact-number",
  severity: "warning",
  acceptedBy: ["controller"],
  page: {
    meaning:
      "A default or an enum of a CRD has an integer beyond 2^53. JavaScript has no such number: an operator reads, compares and writes the nearest one that it has.",
    remedy: "Do nothing if the operator never uses the field. Otherwise make the field a string.",
    example: "warning-inexact-number",
  },
});

export const NO_CRDS = defineRule({
  id: "no-crds",
  severity: "error",
  page: {
    meaning: "No file that was given has a CustomResourceDefinition.",
    remedy: "Name files or folders with CRDs.",
  },
});

export const NOT_A_CRD = defineRule({
  id: "not-a-crd",
  severity: "warning",
  page: {
    meaning: "A file among the CRDs holds no CustomResourceDefinition.",
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
      "Do nothing if it is enough that the API server checks the rule. Otherwise rewrite the rule without what the message names.",
    example: "warning-unchecked-rule",
  },
});
