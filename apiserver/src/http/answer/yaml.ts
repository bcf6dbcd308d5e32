import type { JsonObject } from "../../json.js";
import { yamlLibrary } from "../../yaml-library.js";

// What YAML 1.1 reads as something else than text: kube-apiserver puts it into double quotes, and what is no plain text into single ones.
const OTHER_TYPES =
  /^(?:|<<|~|[yYnN]|null|Null|NULL|true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|[-+]?[\d.][\d_.:eExXobB+-]*[a-fA-F\d]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|\d{4}-\d\d?-\d\d?(?:[Tt ].*)?)$/;
const MERGE = "tag:yaml.org,2002:merge";
// Line breaks of YAML 1.1 and the mark of byte order, which no plain or single-quoted text can hold.
const ESCAPED = /[\u0085\u2028\u2029\ufeff]/g;

/** Returns a value as YAML in the form of kube-apiserver: sorted, without aliases, and quoted so that YAML 1.1 reads the same. */
export function yamlOf(value: JsonObject): string {
  const { Document, visit } = yamlLibrary();
  const document = new Document(value, {
    version: "1.1",
    aliasDuplicateObjects: false,
    sortMapEntries: true,
    // A key "<<" of JSON merges nothing.
    merge: false,
    customTags: (tags) => tags.filter((tag) => typeof tag === "string" || tag.tag !== MERGE),
  });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== "string" || node.value === ".") return;
      if (OTHER_TYPES.test(node.value) || node.value.search(ESCAPED) >= 0 || node.value.includes("\t"))
        node.type = "QUOTE_DOUBLE";
    },
  });
  return document
    .toString({ indentSeq: false, singleQuote: true, lineWidth: 80, minContentWidth: 0 })
    .replace(/^%YAML 1\.1\n---\n/, "")
    .replace(ESCAPED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
