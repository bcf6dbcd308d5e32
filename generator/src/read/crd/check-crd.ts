// Reports the problems that an API server finds in a CustomResourceDefinition, with the validation of the embedded API server, at their positions in
// the file.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { FieldError, JsonObject, MetadataRules } from "@gen-operator/schema/definitions";
import { type Diagnostic, MOST_FOUND, type Rule, didYouMean, quote } from "../../diagnostic.js";
import { packageFile } from "../../package-file.js";
import { describeValue, isRecord } from "../yaml/values.js";
import { type Place, type YamlDocument, type YamlPath, formatPath } from "../yaml/yaml-document.js";
import { SCHEMA_KEYWORDS, visitSchemasIn, withoutNulls } from "./crd-schema.js";
import type * as DefinitionChecker from "./definition-checker.js";
import type * as ExpressionChecker from "./expression-checker.js";
import {
  CRD_EMPTY_OBJECT,
  CRD_FIELD,
  CRD_NAME,
  CRD_RULE,
  CRD_SCHEMA,
  CRD_SUBRESOURCE,
  CRD_UNKNOWN_FIELD,
  UNCHECKED_RULE,
} from "./rules.js";

// Most runs read no new definition, and most definitions contain no expression, so the checkers are loaded on demand. `require` can load ES modules
// since Node.js 20.19.
const require = createRequire(import.meta.url);

/** Loads the validation of definitions. */
function loadDefinitionChecker(): typeof DefinitionChecker {
  return require(fileURLToPath(packageFile("dist/read/crd/definition-checker.js"))) as typeof DefinitionChecker;
}

/** Loads the checks of expressions. */
function loadExpressionChecker(): typeof ExpressionChecker {
  return require(fileURLToPath(packageFile("dist/read/crd/expression-checker.js"))) as typeof ExpressionChecker;
}

/** A definition with its position. */
interface LocatedDefinition {
  readonly crd: { readonly [field: string]: unknown };
  readonly document: YamlDocument;
  /** Path of the definition in the document. */
  readonly root: YamlPath;
}

// Defaults in the metadata of embedded resources are left to the API server.
const METADATA: MetadataRules = { misfitOf: () => undefined, check: () => [] };

/** Returns the problems of a definition that has the right shape: what an API server rejects or drops, and rules that `parse` skips. */
export function findDefinitionProblems({ crd, document, root }: LocatedDefinition): Diagnostic[] {
  const { checkDefinition, defaultDefinition } = loadDefinitionChecker();
  const locate = (path: YamlPath) => document.valueAt([...root, ...path]);
  const unknown = unknownFields(crd).map(({ path, message, hint }): Diagnostic => ({
    ...CRD_UNKNOWN_FIELD.violation,
    message,
    ...document.keyAt([...root, ...path]),
    ...(hint === undefined ? {} : { hint }),
  }));
  const decoded = decode(crd);
  defaultDefinition(decoded);
  const errors = withoutEchoes(checkDefinition(decoded, { metadata: METADATA }));
  const found = errors.flatMap((error): Diagnostic[] => {
    const path = pathIn(decoded, asWritten(error.field));
    const expression = expressionAt(decoded, path);
    const problems = expression === undefined ? [] : compilationProblems(error.message, expression);
    if (problems.length > 0)
      return problems.map(({ offset, message }) => ({
        ...CRD_RULE.violation,
        message: `invalid ${String(path.at(-1))}: ${message}`,
        ...locate(path),
        position: document.characterAt([...root, ...path], offset),
        ...(fieldHint(message, decoded, path) ?? nameHint({ offset, message }, expression ?? "")),
      }));
    return [{ ...ruleOf(path).violation, severity: "error", message: messageOf(error, path), ...locate(path) }];
  });
  return [
    ...[...unknown, ...found, ...(found.length > 0 ? [] : emptyObjects(decoded, locate))],
    ...uncheckedRules(decoded, { document, root, found }),
  ].slice(0, MOST_FOUND);
}

/** Warns about objects whose content the API server prunes: a schema without fields is often meant to preserve everything. */
function emptyObjects(definition: JsonObject, locate: (path: YamlPath) => Place): Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  const visit = (node: unknown, path: (string | number)[], isKept = false): void => {
    if (!isRecord(node)) return;
    const isMetadata = path.length === ROOT_LENGTH + 2 && path.at(-1) === "metadata";
    if (!isMetadata && !isKept && path.length > ROOT_LENGTH && isEmptyObject(node))
      diagnostics.push({
        ...CRD_EMPTY_OBJECT.violation,
        ...locate(path),
        message: `${formatPath(path.slice(-1))} is an object without fields: the API server drops everything in it`,
        hint:
          "declare properties or additionalProperties, or set x-kubernetes-preserve-unknown-fields: true; " +
          "for a CRD that is not yours, accept the warning and give a reason",
      });
    // A list that preserves unknown fields also preserves those of its items.
    const isOpen = node["type"] === "array" && (isKept || node["x-kubernetes-preserve-unknown-fields"] === true);
    visitSchemasIn(node, path, (child) => visit(child, path, isOpen && path.at(-1) === "items"));
  };
  versionsOf(definition).forEach((version, index) => {
    const schema = isRecord(version) && isRecord(version["schema"]) ? version["schema"]["openAPIV3Schema"] : undefined;
    visit(schema, ["spec", "versions", index, "schema", "openAPIV3Schema"]);
  });
  return diagnostics;
}

const ROOT_LENGTH = ["spec", "versions", 0, "schema", "openAPIV3Schema"].length;

function isEmptyObject(node: { readonly [keyword: string]: unknown }): boolean {
  const { type, properties, additionalProperties } = node;
  if (type !== "object" || additionalProperties !== undefined) return false;
  if (node["x-kubernetes-preserve-unknown-fields"] === true || node["x-kubernetes-embedded-resource"] === true)
    return false;
  return !isRecord(properties) || Object.keys(properties).length === 0;
}

interface FoundProblems extends Pick<LocatedDefinition, "document" | "root"> {
  readonly found: readonly Diagnostic[];
}

/** Reports rules with a syntax error, which the API server does not reach if it finds other errors, and valid rules that `parse` skips. */
function uncheckedRules(definition: JsonObject, { document, root, found }: FoundProblems): Diagnostic[] {
  const isFound = new Set(found.map(({ path }) => path));
  const diagnostics: Diagnostic[] = [];
  const check = (expression: string, path: YamlPath): void => {
    const { findExpressionProblem, findSyntaxProblems } = loadExpressionChecker();
    const problem = findExpressionProblem(expression);
    if (problem === undefined) return;
    const place = document.valueAt([...root, ...path]);
    if (place.path !== undefined && isFound.has(place.path)) return;
    const syntax = findSyntaxProblems(expression);
    for (const { offset, message } of syntax)
      diagnostics.push({
        ...{ ...CRD_RULE.violation, message: `invalid ${String(path.at(-1))}: ${message}` },
        ...place,
        position: document.characterAt([...root, ...path], offset),
      });
    // If there are other problems, the API server has not compiled every rule.
    if (syntax.length > 0 || found.length > 0) return;
    const message = `parse does not check this rule: ${problem}`;
    diagnostics.push({ ...UNCHECKED_RULE.violation, message, ...place, hint: UNCHECKED });
  };
  const visit = (node: unknown, path: (string | number)[]): void => {
    if (!isRecord(node)) return;
    const rules = node["x-kubernetes-validations"];
    for (const [index, rule] of (Array.isArray(rules) ? rules : []).entries())
      if (isRecord(rule) && typeof rule["rule"] === "string")
        check(rule["rule"], [...path, "x-kubernetes-validations", index, "rule"]);
    visitSchemasIn(node, path, (child) => visit(child, path));
  };
  versionsOf(definition).forEach((version, index) => {
    const schema = isRecord(version) && isRecord(version["schema"]) ? version["schema"]["openAPIV3Schema"] : undefined;
    visit(schema, ["spec", "versions", index, "schema", "openAPIV3Schema"]);
  });
  return diagnostics;
}

const UNCHECKED = "the API server checks it on every write";

/**
 * Removes errors that the API server reports twice: those of the first version, and those about the total cost of rules that are too expensive
 * themselves.
 */
function withoutEchoes(errors: readonly FieldError[]): FieldError[] {
  const expensive = new Set(
    errors.filter(({ message }) => /^Forbidden: estimated/.test(message)).map(({ field }) => field),
  );
  return errors.filter(
    ({ field, message }) =>
      field !== "spec.version" && !(expensive.has(field) && message.startsWith("Forbidden: contributed to")),
  );
}

function unknownFields(crd: { readonly [field: string]: unknown }): readonly ShapeProblem[] {
  const schemas = versionsOf(crd).flatMap((version, index) => {
    const schema = isRecord(version) && isRecord(version["schema"]) ? version["schema"]["openAPIV3Schema"] : undefined;
    const at = ["spec", "versions", index, "schema", "openAPIV3Schema"];
    return findUnknownKeywords(schema).map((problem) => ({ ...problem, path: [...at, ...problem.path] }));
  });
  return [...checkShape(crd).filter(({ kind }) => kind === "unknown"), ...schemas];
}

function versionsOf({ spec }: { readonly [field: string]: unknown }): readonly unknown[] {
  return isRecord(spec) && Array.isArray(spec["versions"]) ? spec["versions"] : [];
}

/** Returns a definition as the API server decodes it, without keys whose value is null. Schemas are shared with the original. */
function decode(crd: { readonly [field: string]: unknown }): JsonObject {
  const versions = versionsOf(crd).map((version) => {
    if (!isRecord(version) || !isRecord(version["schema"])) return version;
    const schema = { ...version["schema"], openAPIV3Schema: withoutNulls(version["schema"]["openAPIV3Schema"]) };
    return { ...(withoutNullFields(version) as object), schema };
  });
  const spec = isRecord(crd["spec"]) ? crd["spec"] : {};
  const { versions: _versions, ...others } = spec;
  return { ...crd, spec: { ...(withoutNullFields(others) as object), versions } } as unknown as JsonObject;
}

function withoutNullFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullFields);
  if (!isRecord(value)) return value;
  const present = Object.entries(value).filter(([name, member]) => member !== null && name !== "schema");
  return Object.fromEntries(present.map(([name, member]) => [name, withoutNullFields(member)]));
}

/**
 * Paths in messages of the API server that differ from those in a v1 definition, because its internal type has fields for all versions, and for the
 * webhook of a conversion.
 */
const NAMES: readonly (readonly [internal: RegExp, written: string])[] = [
  [/^spec\.validation\b/, "spec.versions[0].schema"],
  [/^spec\.(subresources|additionalPrinterColumns|selectableFields)\b/, "spec.versions[0].$1"],
  [/^spec\.conversion\.webhookClientConfig\b/, "spec.conversion.webhook.clientConfig"],
  [/^spec\.conversion\.conversionReviewVersions\b/, "spec.conversion.webhook.conversionReviewVersions"],
  [/\.JSONPath$/, ".jsonPath"],
];

function asWritten(field: string): string {
  return NAMES.reduce((path, [internal, written]) => path.replace(internal, written), field);
}

/** Parses the path of a field in an error of the API server: `spec.versions[0].schema.openAPIV3Schema.properties[a.b]`. */
function pathIn(definition: JsonObject, field: string): YamlPath {
  const path: (string | number)[] = [];
  let value: unknown = definition;
  let rest = `.${field}`;
  while (rest !== "") {
    const [step, length] = stepIn(value, rest);
    path.push(step);
    value = Array.isArray(value) || isRecord(value) ? (value as { [name: string | number]: unknown })[step] : undefined;
    rest = rest.slice(length);
  }
  return path;
}

function stepIn(value: unknown, rest: string): readonly [step: string | number, length: number] {
  const [index, number = ""] = /^\.?\[(\d+)\]/.exec(rest) ?? [];
  if (Array.isArray(value) && index !== undefined) return [Number(number), index.length];
  // Names may contain dots and brackets, so the longest match wins.
  const steps = Object.keys(isRecord(value) ? value : {})
    .flatMap((name) => [[name, `.${name}`] as const, [name, `[${name}]`] as const])
    .filter(([, text]) => rest.startsWith(text) && /^(?:$|\.|\[)/.test(rest.slice(text.length)))
    .sort(([, one], [, other]) => other.length - one.length);
  if (steps[0] !== undefined) return [steps[0][0], steps[0][1].length];
  const [text, quoted, plain = ""] = /^(?:\[([^\]]*)\]|\.?([^.[]+))/.exec(rest) ?? [rest];
  return [quoted ?? plain, Math.max(text.length, 1)];
}

function ruleOf([, second, , third, ...rest]: YamlPath): Rule {
  if (second === "names" || second === "group" || second === "name") return CRD_NAME;
  if (third === "schema") return rest.includes("x-kubernetes-validations") ? CRD_RULE : CRD_SCHEMA;
  return third === "subresources" ? CRD_SUBRESOURCE : CRD_FIELD;
}

/** Converts the message of an API server error to that of a diagnostic: after the name of the field, in lower case, and without a long value. */
function messageOf({ message }: FieldError, path: YamlPath): string {
  const [start = "", shown = ""] = /^[A-Z][a-z]+ value: (?=[{["])/.exec(message) ?? [];
  const length = start === "" ? 0 : jsonLength(message.slice(start.length)) + shown.length;
  const short = length > MOST_SHOWN ? `${start}${message.slice(start.length + length + 2)}` : message;
  const name = formatPath(path.slice(path.findLastIndex((step) => typeof step === "string")));
  // Errors within a default have no path of their own.
  return `${name}: ${short.charAt(0).toLowerCase()}${short.slice(1).replace(":  in body ", ": ")}`;
}

const MOST_SHOWN = 100;

/** Returns the length of the JSON value at the start of a text. */
function jsonLength(text: string): number {
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:\\[^]|[^"\\])*"|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    if (depth === 0) return index + token.length;
  }
  return text.length;
}

function expressionAt(definition: JsonObject, path: YamlPath): string | undefined {
  if (path.at(-1) !== "rule" && path.at(-1) !== "messageExpression") return undefined;
  const value = valueIn(definition, path);
  return typeof value === "string" ? value : undefined;
}

function valueIn(value: unknown, path: YamlPath): unknown {
  return path.reduce<unknown>(
    (at, step) =>
      typeof at === "object" && at !== null ? (at as { [step: string | number]: unknown })[step] : undefined,
    value,
  );
}

interface CompilationProblem {
  readonly offset: number;
  readonly message: string;
}

/** Parses the errors of the CEL compiler, such as `ERROR: <input>:1:6: undefined field 'y'`, which are followed by the line and a marker. */
function compilationProblems(message: string, expression: string): CompilationProblem[] {
  const lines = expression.split("\n");
  return [...message.matchAll(/^(?:.*compilation failed: )?ERROR: <input>:(\d+):(\d+): (.*)$/gm)].map(
    ([, line = "1", column = "1", words = ""]) => {
      const before = lines.slice(0, Number(line) - 1).reduce((sum, each) => sum + each.length + 1, 0);
      const inLine = [...(lines[Number(line) - 1] ?? "")].slice(0, Math.max(Number(column) - 1, 0)).join("").length;
      return { offset: before + inLine, message: words };
    },
  );
}

/** Returns a suggestion for an undefined field in an expression. */
function fieldHint(message: string, definition: JsonObject, path: YamlPath): { readonly hint: string } | undefined {
  const [, name] = /^undefined field '(.+)'$/.exec(message) ?? [];
  if (name === undefined) return undefined;
  const schema = valueIn(definition, path.slice(0, path.indexOf("x-kubernetes-validations")));
  // A field of another object may have the same name.
  const others = namesIn(schema).filter((each) => each !== name);
  return didYouMean(name, others);
}

/** Returns a suggestion for an undeclared function or variable in an expression. An unknown function is reported at its parenthesis. */
function nameHint({ offset, message }: CompilationProblem, expression: string): { readonly hint: string } | undefined {
  const [, name] = /^undeclared reference to '(.+)' \(in container ''\)$/.exec(message) ?? [];
  if (name === undefined) return undefined;
  const { functions, variables } = loadExpressionChecker().declaredNames(expression);
  return didYouMean(
    name,
    (expression[offset] === "(" ? functions : variables).filter((each) => each !== name),
  );
}

function namesIn(schema: unknown): string[] {
  if (!isRecord(schema)) return [];
  const fields = isRecord(schema["properties"]) ? schema["properties"] : {};
  const inner = [...Object.values(fields), schema["items"], schema["additionalProperties"]];
  return [...Object.keys(fields), ...inner.flatMap(namesIn)];
}

// The fields and types of the Go type CustomResourceDefinition. Schemas are checked separately.

/** A value that the API server cannot decode, or an unknown field that it drops. */
interface ShapeProblem {
  readonly kind: "type" | "unknown";
  readonly path: YamlPath;
  readonly message: string;
  readonly hint?: string;
}

type Shape = "string" | "boolean" | "integer" | "any" | { readonly items: Shape } | { readonly fields: ShapeFields };
type ShapeFields = { readonly [field: string]: Shape };

const strings = (...names: string[]): ShapeFields => Object.fromEntries(names.map((name) => [name, "string"]));
const STRINGS: Shape = { items: "string" };

const RULE: ShapeFields = {
  ...strings("rule", "message", "messageExpression", "reason", "fieldPath"),
  optionalOldSelf: "boolean",
};
const VERSION: ShapeFields = {
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
const CLIENT_CONFIG: ShapeFields = {
  ...strings("url", "caBundle"),
  service: { fields: { ...strings("namespace", "name", "path"), port: "integer" } },
};
const SPEC: ShapeFields = {
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
const DEFINITION: ShapeFields = {
  ...strings("apiVersion", "kind"),
  metadata: "any",
  spec: { fields: SPEC },
  status: "any",
};

/** Compares a definition with its Go type. */
export function checkShape(crd: { readonly [field: string]: unknown }): ShapeProblem[] {
  const problems: ShapeProblem[] = [];
  checkFields(crd, DEFINITION, { path: [], problems });
  return problems;
}

/** Reports unknown keywords in a schema. */
function findUnknownKeywords(schema: unknown): ShapeProblem[] {
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

interface ShapePlace {
  readonly path: YamlPath;
  readonly problems: ShapeProblem[];
}

function checkValue(value: unknown, shape: Shape, place: ShapePlace): void {
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

function checkFields(
  object: { readonly [field: string]: unknown },
  fields: ShapeFields,
  { path, problems }: ShapePlace,
): void {
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
    message: `unknown ${what} ${quote(name)}: kubectl rejects it, and the API server drops it`,
    ...didYouMean(name, known),
  };
}
