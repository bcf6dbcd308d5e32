import { defineRule } from "../diagnostic.js";

export const EMPTY_SPEC = defineRule({
  id: "empty-spec",
  severity: "error",
  page: {
    meaning: "A spec file has no document.",
    remedy: "Write a spec into it, or delete the file.",
    example: "empty-spec",
  },
});

export const EXTERNAL_TYPE = defineRule({
  id: "external-type",
  severity: "error",
  page: {
    meaning: "The type of an external resource cannot be found.",
    remedy: "Export the type from the file that the spec names.",
    example: "external-type",
  },
});

export const KNOWN_KIND = defineRule({
  id: "known-kind",
  severity: "error",
  page: {
    meaning:
      "A kind is described by its name alone, and a schema of it is at hand; or a kind of Kubernetes is asked for from a cluster.",
    remedy: "Write `resource: group/version/Kind`; then it has types.",
    example: "known-kind",
  },
});

export const NO_WORKFLOW = defineRule({
  id: "no-workflow",
  severity: "error",
  page: {
    meaning: "The folder has no workflow.yaml.",
    remedy: "Write a spec, or run `gen-operator init`. `gen-operator types` needs no spec.",
    example: "no-workflow",
  },
});

export const OLD_SPELLING = defineRule({
  id: "old-spelling",
  severity: "error",
  page: {
    meaning: "A field or value of a spec is spelled as an earlier version of the format spelled it.",
    remedy: "Write what the message shows.",
    example: "old-spelling",
  },
});

export const SPEC_NAME = defineRule({
  id: "spec-name",
  severity: "error",
  page: {
    meaning: "A name in a spec cannot be a name in code.",
    remedy: "Use letters and digits, with a small letter first: `configMap`.",
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
    meaning: "A value in a spec has another type than the field.",
    remedy: "Write a value of the type that the message names.",
    example: "wrong-type",
  },
});

export const SPEC_VALUE = defineRule({
  id: "spec-value",
  severity: "error",
  page: {
    meaning: "The field of a spec does not allow its value.",
    remedy: "Write one of the values that the message names.",
    example: "unknown-builtin",
  },
});

export const UNKNOWN_CONTROLLER = defineRule({
  id: "unknown-controller",
  severity: "error",
  page: {
    meaning: "The project has no controller of that name, or several to choose from.",
    remedy: "Name one of those that the message lists.",
  },
});

export const UNKNOWN_FIELD = defineRule({
  id: "unknown-field",
  severity: "error",
  page: {
    meaning: "A spec has a field that does not exist.",
    remedy: "Correct the name of the field, or move it to its place.",
    example: "unknown-field",
  },
});

export const UNKNOWN_KIND = defineRule({
  id: "unknown-kind",
  severity: "error",
  page: {
    meaning: "Neither Kubernetes nor a CRD of the project has the kind.",
    remedy: "Correct the name, or put the CRD into `crds/`.",
    example: "unknown-kind",
  },
});

export const UNREADABLE_CLUSTER = defineRule({
  id: "unreadable-cluster",
  severity: "error",
  page: {
    meaning: "The cluster does not answer the request for its CRDs.",
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
