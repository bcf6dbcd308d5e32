import { defineRule } from "../../diagnostic.js";

export const DUPLICATE_DEPENDENT = defineRule({
  id: "duplicate-dependent",
  severity: "error",
  page: {
    meaning: "`dependents` has two entries with the same name.",
    remedy: "Remove one of the two.",
    example: "duplicate-dependent",
  },
});

export const DUPLICATE_KEY = defineRule({
  id: "duplicate-key",
  severity: "error",
  page: {
    meaning: "A YAML map has a key twice, and one of the values would be lost.",
    remedy: "Remove one of the two.",
    example: "duplicate-key",
  },
});

export const YAML_ALIAS = defineRule({
  id: "yaml-alias",
  severity: "error",
  page: {
    meaning: "YAML aliases of the file expand without end, or to too much.",
    remedy: "Repeat the values instead of using aliases.",
    example: "alias-bomb",
  },
});

export const YAML_KEY = defineRule({
  id: "yaml-key",
  severity: "error",
  page: {
    meaning: "A mapping or a list is used as a key.",
    remedy: 'Use a string as the key; an extra "?" or brace turns it into a mapping.',
  },
});

export const YAML_MERGE = defineRule({
  id: "yaml-merge",
  severity: "error",
  page: {
    meaning: "The value of a merge key `<<` is not a map.",
    remedy: "Use an alias of a map, or repeat the values.",
  },
});

export const YAML_NUMBER = defineRule({
  id: "yaml-number",
  severity: "error",
  page: {
    meaning: "A number loses digits, or is not valid in JSON.",
    remedy: "Quote the number, or use one that is valid in JSON.",
  },
});

export const YAML_SCALAR = defineRule({
  id: "yaml-scalar",
  severity: "warning",
  page: {
    meaning: "A scalar has different meanings in YAML 1.1 and YAML 1.2.",
    remedy: "Quote the string, or use `true`, `false` or a decimal number.",
  },
});

export const YAML_SYNTAX = defineRule({
  id: "yaml-syntax",
  severity: "error",
  page: {
    meaning: "The file is not valid YAML, or not valid JSON.",
    remedy: "Correct the line that the message names.",
    example: "yaml-syntax",
  },
});

export const YAML_TAG = defineRule({
  id: "yaml-tag",
  severity: "varies",
  page: {
    meaning: "A YAML tag is not allowed, or kubectl ignores it.",
    remedy: "Remove the tag.",
    example: "when-tag",
  },
});

export const YAML_TEXT = defineRule({
  id: "yaml-text",
  severity: "error",
  page: { meaning: "A string contains characters that cannot be written to a file.", remedy: "Remove the characters." },
});
