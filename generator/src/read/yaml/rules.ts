import { defineRule } from "../../diagnostic.js";

export const DUPLICATE_DEPENDENT = defineRule({
  id: "duplicate-dependent",
  severity: "error",
  page: {
    meaning: "`dependsOn` names a dependent twice.",
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
    remedy: "Write the values out.",
    example: "alias-bomb",
  },
});

export const YAML_KEY = defineRule({
  id: "yaml-key",
  severity: "error",
  page: {
    meaning: "A mapping or a list stands where a key has to be.",
    remedy: 'Give the key as a text; a "?" or a brace too many makes a mapping of it.',
  },
});

export const YAML_MERGE = defineRule({
  id: "yaml-merge",
  severity: "error",
  page: { meaning: "A merge key `<<` has no map.", remedy: "Refer to a map, or write the values out." },
});

export const YAML_NUMBER = defineRule({
  id: "yaml-number",
  severity: "error",
  page: {
    meaning: "A number loses digits, or JSON has no such number.",
    remedy: "Quote the number, or write one that JSON has.",
  },
});

export const YAML_SCALAR = defineRule({
  id: "yaml-scalar",
  severity: "warning",
  page: {
    meaning: "A scalar means one thing in YAML 1.1 and another in YAML 1.2.",
    remedy: "Quote the text, or write `true`, `false` or a decimal number.",
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
  page: { meaning: "A text has characters that no file can hold.", remedy: "Remove the characters." },
});
