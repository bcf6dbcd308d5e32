import { defineRule } from "../diagnostic.js";

export const EMPTY_SPEC = defineRule({
  id: "empty-spec",
  severity: "error",
  page: {
    meaning: "A spec file is empty.",
    remedy: "Add a spec to it, or delete the file.",
    example: "empty-spec",
  },
});

export const EXTERNAL_TYPE = defineRule({
  id: "external-type",
  severity: "error",
  page: {
    meaning: "The type of an external resource is not found.",
    remedy: "Export the type from the file that the spec refers to.",
    example: "external-type",
  },
});

export const KNOWN_KIND = defineRule({
  id: "known-kind",
  severity: "error",
  page: {
    meaning:
      "A kind is described in the spec although its schema is known, or a built-in kind is requested from a cluster.",
    remedy: "Use `resource: group/version/Kind`, so that the kind has types.",
    example: "known-kind",
  },
});

export const NO_WORKFLOW = defineRule({
  id: "no-workflow",
  severity: "error",
  page: {
    meaning: "The folder has no workflow.yaml.",
    remedy: "Add a spec, or run `gen-operator init`. `gen-operator types` needs no spec.",
    example: "no-workflow",
  },
});

export const OLD_SPELLING = defineRule({
  id: "old-spelling",
  severity: "error",
  page: {
    meaning: "A field or value of a spec uses the deprecated spelling of an earlier version.",
    remedy: "Use the spelling that the message shows.",
    example: "old-spelling",
  },
});

export const SPEC_NAME = defineRule({
  id: "spec-name",
  severity: "error",
  page: {
    meaning: "A name in a spec is not valid in code.",
    remedy: "Use letters and digits, with a lower-case letter first: `configMap`.",
    example: "dependent-name",
  },
});

export const SPEC_REQUIRED = defineRule({
  id: "spec-required",
  severity: "error",
  page: { meaning: "A spec lacks a required field.", remedy: "Add the field.", example: "missing-field" },
});

export const SPEC_TYPE = defineRule({
  id: "spec-type",
  severity: "error",
  page: {
    meaning: "A value in a spec has the wrong type.",
    remedy: "Use a value of the type that the message names.",
    example: "wrong-type",
  },
});

export const SPEC_VALUE = defineRule({
  id: "spec-value",
  severity: "error",
  page: {
    meaning: "A value in a spec is invalid.",
    remedy: "Use a value that the message allows.",
    example: "unknown-builtin",
  },
});

export const UNKNOWN_CONTROLLER = defineRule({
  id: "unknown-controller",
  severity: "error",
  page: {
    meaning: "The controller is not found, or the project has several and none is selected.",
    remedy: "Use one of the names that the message lists.",
  },
});

export const UNKNOWN_FIELD = defineRule({
  id: "unknown-field",
  severity: "error",
  page: {
    meaning: "A spec has a field that does not exist.",
    remedy: "Correct the name of the field, or move it to the right place.",
    example: "unknown-field",
  },
});

export const UNKNOWN_KIND = defineRule({
  id: "unknown-kind",
  severity: "error",
  page: {
    meaning: "Neither Kubernetes nor a CRD of the project has the kind.",
    remedy: "Correct the name, or add the CRD to `crds/`.",
    example: "unknown-kind",
  },
});

export const UNREADABLE_CLUSTER = defineRule({
  id: "unreadable-cluster",
  severity: "error",
  page: {
    meaning: "The CRDs of the cluster cannot be read.",
    remedy: "Check the kubeconfig and the context: `kubectl get crds`.",
  },
});

export const UNREADABLE_FILE = defineRule({
  id: "unreadable-file",
  severity: "error",
  page: {
    meaning: "A file is missing, is not a regular file, or is not UTF-8 text.",
    remedy: "Correct the path or the file.",
    example: "crd-binary",
  },
});
