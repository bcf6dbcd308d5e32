import type { CollectionTag, ScalarTag } from "yaml";
import type { JsonObject } from "../../json.js";
import { yamlLibrary } from "../../yaml-library.js";
import { foldTexts } from "./fold-yaml.js";

// What YAML 1.1 reads as something else than text: kube-apiserver puts it into double quotes, and what is no plain text into single ones.
const OTHER_TYPES =
  /^(?:|<<|~|[yYnN]|null|Null|NULL|true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|(?=.*\d)[-+]?[\d.][\d_.:eExXobB+-]*[a-fA-F\d]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|\d{4}-\d\d?-\d\d?(?:[Tt ].*)?)$/;
const LAYOUT = { indentSeq: false, singleQuote: true, lineWidth: 0, minContentWidth: 0 } as const;
const MERGE = "tag:yaml.org,2002:merge";
// Line breaks of YAML 1.1 and the mark of byte order, which no plain or single-quoted text can hold.
const ESCAPED = /[\u0085\u2028\u2029\ufeff]/g;

// To the library a dot is a number without digits.
function withoutDot(tag: CollectionTag | ScalarTag): CollectionTag | ScalarTag {
  if (!("test" in tag) || tag.test?.test(".") !== true) return tag;
  return Object.assign({}, tag, { test: new RegExp(`^(?!\\.$)(?:${tag.test.source})`) });
}

/** Returns a value as YAML in the form of kube-apiserver: sorted, without aliases, and quoted so that YAML 1.1 reads the same. */
export function yamlOf(value: JsonObject): string {
  const { Document, stringify, visit } = yamlLibrary();
  const document = new Document(value, {
    version: "1.1",
    aliasDuplicateObjects: false,
    sortMapEntries: true,
    // A key "<<" of JSON merges nothing.
    merge: false,
    customTags: (tags) =>
      tags.flatMap((tag) => (typeof tag === "string" ? tag : tag.tag === MERGE ? [] : withoutDot(tag))),
  });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== "string") return;
      // The library takes the quotes that the text has not.
      if (node.value.includes("'") && stringify(node.value, LAYOUT).startsWith('"')) node.type = "QUOTE_SINGLE";
      if (OTHER_TYPES.test(node.value) || node.value.search(ESCAPED) >= 0 || node.value.includes("\t"))
        node.type = "QUOTE_DOUBLE";
    },
  });
  const text = document.toString(LAYOUT).replace(/^%YAML 1\.1\n---\n/, "");
  return foldTexts(text).replace(ESCAPED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
