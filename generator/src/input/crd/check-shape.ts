// The Go type behind a CustomResourceDefinition: which fields it has, and of what type. Schemas have a check of their own.
import { didYouMean, quote } from "../../diagnostic.js";
import { describeValue } from "../yaml/describe-value.js";
import { isRecord } from "../yaml/json.js";
import type { YamlPath } from "../yaml/yaml-document.js";
import { SCHEMA_KEYWORDS, visitSchemasIn } from "./schema/check-schema.js";

/** Something that the API server cannot decode, or drops because it does not know it. */
export interface ShapeProblem {
  readonly kind: "type" | "unknown";
  readonly path: YamlPath;
  readonly message: string;
  readonly hint?: string;
}

type Shape = "string" | "boolean" | "integer" | "any" | { readonly items: Shape } | { readonly fields: Fields };
type Fields = { readonly [field: string]: Shape };

const strings = (...names: string[]): Fields => Object.fromEntries(names.map((name) => [name, "string"]));
const STRINGS: Shape = { items: "string" };

const RULE: Fields = {
  ...strings("rule", "message", "messageExpression", "reason", "fieldPath"),
  optionalOldSelf: "boolean",
};
const VERSION: Fields = {
  ...strings("name", "deprecationWarning"),
  ...{ served: "boolean", storage: "boolean", deprecated: "boolean" },
  schema: { fields: { openAPIV3Schema: "any" } },
  subresources: {
    fields: {
      status: { fields: {} },
      scale: { fields: strings("specReplicasPath", "statusReplicasPath", "labelSelectorPath") },
    },
  },
  additionalPrinterColumns: {
    items: { fields: { ...strings("name", "type", "format", "description", "jsonPath"), priority: "integer" } },
  },
  selectableFields: { items: { fields: strings("jsonPath") } },
};
const CLIENT_CONFIG: Fields = {
  ...strings("url", "caBundle"),
  service: { fields: { ...strings("namespace", "name", "path"), port: "integer" } },
};
const SPEC: Fields = {
  ...strings("group", "scope"),
  names: {
    fields: { ...strings("plural", "singular", "kind", "listKind"), shortNames: STRINGS, categories: STRINGS },
  },
  versions: { items: { fields: VERSION } },
  conversion: {
    fields: {
      strategy: "string",
      webhook: { fields: { clientConfig: { fields: CLIENT_CONFIG }, conversionReviewVersions: STRINGS } },
    },
  },
  preserveUnknownFields: "boolean",
};
const DEFINITION: Fields = {
  ...strings("apiVersion", "kind"),
  metadata: "any",
  spec: { fields: SPEC },
  status: "any",
};

/** Compares a definition with the Go type of one. */
export function checkShape(crd: { readonly [field: string]: unknown }): ShapeProblem[] {
  const problems: ShapeProblem[] = [];
  checkFields(crd, DEFINITION, { path: [], problems });
  return problems;
}

/** Lists the keywords of a schema that no schema has. */
export function findUnknownKeywords(schema: unknown): ShapeProblem[] {
  const problems: ShapeProblem[] = [];
  const visit = (node: unknown, path: (string | number)[]): void => {
    if (!isRecord(node)) return;
    for (const keyword of Object.keys(node))
      if (!SCHEMA_KEYWORDS.includes(keyword))
        problems.push(unknownField(keyword, { path: [...path], known: SCHEMA_KEYWORDS, what: "keyword" }));
    const rules = node["x-kubernetes-validations"];
    if (Array.isArray(rules))
      checkValue(rules, { items: { fields: RULE } }, { path: [...path, "x-kubernetes-validations"], problems });
    visitSchemasIn(node, path, (child) => visit(child, path));
  };
  visit(schema, []);
  return problems;
}

interface Place {
  readonly path: YamlPath;
  readonly problems: ShapeProblem[];
}

function checkValue(value: unknown, shape: Shape, place: Place): void {
  const { path, problems } = place;
  if (value === undefined || value === null || shape === "any") return;
  const fail = (words: string) =>
    void problems.push({ kind: "type", path, message: `must be ${words}, found ${describeValue(value)}` });
  if (shape === "integer") {
    if (!Number.isInteger(value)) fail("an integer");
  } else if (typeof shape === "string") {
    if (typeof value !== shape) fail(shape === "boolean" ? "true or false" : "a string");
  } else if ("items" in shape) {
    if (!Array.isArray(value)) return fail("a list");
    value.forEach((item: unknown, index) => checkValue(item, shape.items, { problems, path: [...path, index] }));
  } else {
    if (!isRecord(value)) return fail("an object");
    checkFields(value, shape.fields, place);
  }
}

function checkFields(object: { readonly [field: string]: unknown }, fields: Fields, { path, problems }: Place): void {
  const known = Object.keys(fields);
  for (const [name, value] of Object.entries(object))
    if (Object.hasOwn(fields, name)) checkValue(value, fields[name]!, { path: [...path, name], problems });
    else problems.push(unknownField(name, { path, known, what: "field" }));
}

interface UnknownField {
  readonly path: YamlPath;
  readonly known: readonly string[];
  readonly what: string;
}

function unknownField(name: string, { path, known, what }: UnknownField): ShapeProblem {
  return {
    kind: "unknown",
    path: [...path, name],
    message: `unknown ${what} ${quote(name)}: kubectl refuses it, and the API server drops it`,
    ...didYouMean(name, known),
  };
}
