import { labelValueProblems, qualifiedNameProblems } from "../validation/names.js";
import { resourceNameOf } from "../builtin/resource-name.js";
import type { ServedType } from "../builtin/served-type.js";
import type { Selectors } from "../decode/options.js";
import { type FieldError, fieldErrorText, invalidError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { badRequest } from "../errors/status-error.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  compareText,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../json.js";
import { keyOf, keyPrefixOf, metadataOf } from "../object/object-meta.js";
import type { ServedResource } from "../registry/registry.js";

/** A parsed field selector. */
interface FieldSelector {
  matches: (object: JsonObject) => boolean;
  /** The required metadata.name, if the selector sets one. */
  name?: string;
}

/** Parses a label selector; throws a 400 with the message of kube-apiserver if it is invalid. */
export function parseLabelSelector(text: string): (labels: Record<string, string>) => boolean {
  try {
    const requirements = parseRequirements(text);
    return (labels) => requirements.every((requirement) => meetsRequirement(labels, requirement));
  } catch (error) {
    if (error instanceof SelectorSyntaxError) throw badRequest(error.message);
    throw error;
  }
}

function meetsRequirement(labels: Record<string, string>, { key, operator, values }: LabelRequirement): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "in":
    case "=":
    case "==":
      return value !== undefined && values.includes(value);
    case "notin":
    case "!=":
      return value === undefined || !values.includes(value);
    case ">":
    case "<": {
      const [actual, limit] = [parseInt64(value ?? ""), parseInt64(values[0] ?? "")];
      if (actual === undefined || limit === undefined) return false;
      return operator === ">" ? actual > limit : actual < limit;
    }
  }
}

/** Throws a 400 if a selector has a syntax error; the names of fields are not checked. */
export function checkSelectorSyntax({ labelSelector, fieldSelector }: Selectors): void {
  parseLabelSelector(labelSelector);
  termsOf(fieldSelector).forEach((term) => parseTerm(fieldSelector, term));
}

interface FieldTerm {
  field: string;
  isNegated: boolean;
  value: string;
}

/** Parses a field selector for objects of `type`; throws a 400 if it is invalid or a field is not selectable. */
export function parseFieldSelector(text: string, type: ServedType): FieldSelector {
  const terms = termsOf(text).map((term) => parseTerm(text, term));
  const selectable = selectableFieldsOf(type);
  const readers = terms.map(({ field }) => {
    const read = selectable.fields.get(field);
    if (read === undefined) throw badRequest(selectable.unsupported(field));
    return read;
  });
  const named = terms.find(({ field, isNegated }) => field === "metadata.name" && !isNegated);
  return {
    matches: (object) =>
      terms.every(({ value, isNegated }, index) => (readers[index]?.(object) === value) !== isNegated),
    ...(named === undefined ? {} : { name: named.value }),
  };
}

// A backslash escapes a comma.
function termsOf(text: string): string[] {
  return (text.match(/(?:\\[^]|[^,\\]|\\$)+/g) ?? []) as string[];
}

function parseTerm(text: string, term: string): FieldTerm {
  const match = /^((?:\\[^]|[^\\=!]|!(?!=))*?)(!=|==|=)([^]*)$/.exec(term);
  if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
  const [, field = "", operator, value = ""] = match;
  return { field, isNegated: operator === "!=", value: unescaped(value) };
}

function unescaped(value: string): string {
  let result = "";
  for (let index = 0; index < value.length; index++) {
    const character = value[index] as string;
    if (character === "," || character === "=") {
      throw badRequest(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`);
    }
    if (character !== "\\") {
      result += character;
      continue;
    }
    const escaped = value[++index] ?? "";
    if (!["\\", ",", "="].includes(escaped)) {
      throw badRequest(`invalid field selector: invalid escape sequence: \\${escaped}`);
    }
    result += escaped;
  }
  return result;
}

/** The objects that a list, watch, or deletecollection request selects. */
export interface Selection {
  /** The common prefix of the keys. */
  prefix: string;
  /** The key of the object if at most one can be selected. */
  key?: string;
  /** True if a label or field selector applies. */
  isFiltered: boolean;
  /** Evaluates the selectors for an object below the prefix. */
  matches(object: JsonObject): boolean;
}

/** Builds the selection of a namespace, a label selector, and a field selector. */
export function parseSelection(
  resource: ServedResource,
  options: { namespace: string | undefined; labelSelector: string; fieldSelector: string },
): Selection {
  const { namespace, labelSelector, fieldSelector } = options;
  const prefix = keyPrefixOf(namespace);
  if (labelSelector === "" && fieldSelector === "") return { prefix, isFiltered: false, matches: () => true };
  const matchesLabels = parseLabelSelector(labelSelector);
  const fields = parseFieldSelector(fieldSelector, resource.type);
  const isSingle = fields.name !== undefined && (namespace !== undefined || !resource.type.namespaced);
  return {
    prefix,
    ...(isSingle ? { key: keyOf({ namespace, name: fields.name as string }) } : {}),
    isFiltered: true,
    matches: (object) => matchesLabels(labelsOf(object)) && fields.matches(object),
  };
}

function labelsOf(object: JsonObject): Record<string, string> {
  return (objectAt(metadataOf(object), "labels") ?? {}) as Record<string, string>;
}

// The parser of label selectors follows k8s.io/apimachinery/pkg/labels: its tokens, leniency, and error messages.

/** A requirement of a label selector; `exists` and `!` have no values. */
interface LabelRequirement {
  key: string;
  operator: "in" | "notin" | "=" | "==" | "!=" | ">" | "<" | "exists" | "!";
  /** Sorted, without duplicates. */
  values: string[];
}

/** Syntax error of a label selector, with the message of apimachinery. */
class SelectorSyntaxError extends Error {
  override readonly name = "SelectorSyntaxError";
}

interface Token {
  kind: "end" | "identifier" | "in" | "notin" | "=" | "==" | "!=" | ">" | "<" | "!" | "," | "(" | ")";
  text: string;
}

const OPERATORS = ["in", "notin", "=", "==", "!=", ">", "<"] as const;
const TOKEN = /\s*(?:(==|!=|[=!(),<>])|([^\s=!(),<>]+))/y;

/** Parses a label selector into its requirements, all of which must be met. */
function parseRequirements(text: string): LabelRequirement[] {
  const tokens = new TokenReader(tokensOf(text));
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const first = tokens.peek();
    if (first.kind === "end") return requirements;
    if (first.kind !== "identifier" && first.kind !== "!") fail(first, ", expected: !, identifier, or 'end of string'");
    requirements.push(parseRequirementInContext(tokens));
    const separator = tokens.next();
    if (separator.kind === "end") return requirements;
    if (separator.kind !== ",") fail(separator, ", expected: ',' or 'end of string'");
    const following = tokens.peek();
    if (following.kind !== "identifier" && following.kind !== "!") fail(following, ", expected: identifier after ','");
  }
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const [, symbol, word = ""] = match;
    if (symbol !== undefined) tokens.push({ kind: symbol as Token["kind"], text: symbol });
    else tokens.push({ kind: word === "in" || word === "notin" ? word : "identifier", text: word });
  }
  return tokens;
}

/** Reads tokens one by one; `in` and `notin` are identifiers where no operator is expected. */
class TokenReader {
  private readonly tokens: Token[];
  private position = 0;

  constructor(tokens: Token[]) {
    this.tokens = tokens;
  }

  peek(): Token {
    const token = this.raw();
    return token.kind === "in" || token.kind === "notin" ? { kind: "identifier", text: token.text } : token;
  }

  next(): Token {
    const token = this.peek();
    this.position++;
    return token;
  }

  nextOperator(): Token {
    const token = this.raw();
    this.position++;
    return token;
  }

  private raw(): Token {
    return this.tokens[this.position] ?? { kind: "end", text: "" };
  }
}

function parseRequirementInContext(tokens: TokenReader): LabelRequirement {
  try {
    return parseRequirement(tokens);
  } catch (error) {
    if (!(error instanceof SelectorSyntaxError)) throw error;
    throw new SelectorSyntaxError(`unable to parse requirement: ${error.message}`);
  }
}

function parseRequirement(tokens: TokenReader): LabelRequirement {
  const isAbsence = tokens.peek().kind === "!";
  if (isAbsence) tokens.next();
  const key = tokens.next();
  if (key.kind !== "identifier") fail(key, ", expected: identifier");
  rejectProblems(qualifiedNameProblems(key.text), (detail) => invalidError("", key.text, detail));
  if (isAbsence) return { key: key.text, operator: "!", values: [] };
  const following = tokens.peek().kind;
  if (following === "end" || following === ",") return { key: key.text, operator: "exists", values: [] };

  const token = tokens.nextOperator();
  const operator = OPERATORS.find((known) => known === token.kind);
  if (operator === undefined) fail(token, ", expected: in, notin, =, ==, !=, gt, lt");
  const values = operator === "in" || operator === "notin" ? parseValueSet(tokens) : parseExactValue(tokens);
  return checkedRequirement({ key: key.text, operator, values: [...new Set(values)].sort(compareText) });
}

function parseValueSet(tokens: TokenReader): string[] {
  const open = tokens.next();
  if (open.kind !== "(") throw new SelectorSyntaxError(`found '${open.text}' expected: '('`);
  const first = tokens.peek();
  if (first.kind === ")") {
    tokens.next();
    return [""];
  }
  if (first.kind !== "identifier" && first.kind !== ",") fail(first, ", expected: ',', ')' or identifier");
  const values = parseValueList(tokens);
  tokens.next();
  return values;
}

// Starts at a value or comma and stops before the closing parenthesis. A missing value counts as the empty string.
function parseValueList(tokens: TokenReader): string[] {
  const values: string[] = [];
  for (;;) {
    const token = tokens.next();
    const following = tokens.peek();
    if (token.kind === "identifier") {
      values.push(token.text);
      if (following.kind === ")") return values;
      if (following.kind !== ",") fail(following, ", expected: ',' or ')'");
    } else if (token.kind === ",") {
      if (values.length === 0 || following.kind === ")" || following.kind === ",") values.push("");
      if (following.kind === ")") return values;
      if (following.kind === ",") tokens.next();
    } else {
      fail(token, ", expected: ',', or identifier");
    }
  }
}

function parseExactValue(tokens: TokenReader): string[] {
  const following = tokens.peek().kind;
  if (following === "end" || following === ",") return [""];
  const token = tokens.next();
  if (token.kind !== "identifier") fail(token, ", expected: identifier");
  return [token.text];
}

function checkedRequirement(requirement: LabelRequirement): LabelRequirement {
  const { key, operator, values } = requirement;
  const isComparison = operator === ">" || operator === "<";
  const errors: FieldError[] = [];
  values.forEach((value, index) => {
    if (isComparison && parseInt64(value) === undefined) {
      const detail = "for 'Gt', 'Lt' operators, the value must be an integer";
      errors.push(invalidError(`values[${index}]`, value, detail));
    }
  });
  values.forEach((value, index) => {
    const problems = labelValueProblems(value);
    if (problems.length > 0) errors.push(invalidError(`values[${index}][${key}]`, value, problems.join("; ")));
  });
  const texts = [...new Set(errors.map(fieldErrorText))];
  if (texts.length > 0) throw new SelectorSyntaxError(texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`);
  return requirement;
}

function rejectProblems(problems: string[], errorOf: (detail: string) => FieldError): void {
  if (problems.length > 0) throw new SelectorSyntaxError(fieldErrorText(errorOf(problems.join("; "))));
}

/** Parses a decimal 64-bit integer; undefined if the string is not one. */
function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return value === BigInt.asIntN(64, value) ? value : undefined;
}

function fail(token: Token, expectation: string): never {
  throw new SelectorSyntaxError(`found '${token.text}'${expectation}`);
}

/** Returns the value of a selectable field as a string. */
type FieldReader = (object: JsonObject) => string;

/** The selectable fields of a type, and the error message for other fields. */
interface SelectableFields {
  fields: ReadonlyMap<string, FieldReader>;
  unsupported: (field: string) => string;
}

interface FieldLabels {
  /** Paths whose default is "". */
  text?: string[];
  /** Paths whose default is "false" or "0". */
  zero?: Record<string, string>;
  /** Fields that do not map to a single path. */
  computed?: Record<string, FieldReader>;
  /** True if metadata.namespace is not selectable, as for cluster-scoped kinds. */
  hasNoNamespace?: boolean;
  /** Error message for other fields, if it differs from the common one. */
  unsupported?: (field: string) => string;
}

const REFERENCE_FIELDS = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

// Types with registered field labels; all others support only metadata.name and metadata.namespace. Recorded from Kubernetes 1.36.
const FIELD_LABELS: Record<string, FieldLabels> = {
  pods: {
    text: [
      "spec.nodeName",
      "spec.restartPolicy",
      "spec.schedulerName",
      "spec.serviceAccountName",
      "status.phase",
      "status.podIP",
      "status.nominatedNodeName",
    ],
    zero: { "spec.hostNetwork": "false" },
    // `spec.host` is the legacy name of spec.nodeName.
    computed: { "status.podIPs": (object) => podIpsOf(object), "spec.host": pathReader("spec.nodeName", "") },
  },
  events: {
    text: [...REFERENCE_FIELDS.map((field) => `involvedObject.${field}`), "reason", "type"],
    computed: {
      reportingComponent: (object) => textAt(object, ["reportingComponent"]),
      source: (object) => textAt(object, ["source", "component"]) || textAt(object, ["reportingComponent"]),
    },
  },
  "events.events.k8s.io": {
    text: [...REFERENCE_FIELDS.map((field) => `regarding.${field}`), "reason", "type", "reportingController"],
  },
  secrets: { text: ["type"] },
  services: { text: ["spec.clusterIP", "spec.type"] },
  namespaces: { text: ["status.phase"], hasNoNamespace: true },
  nodes: { zero: { "spec.unschedulable": "false" }, hasNoNamespace: true },
  replicationcontrollers: { zero: { "status.replicas": "0" } },
  "jobs.batch": {
    zero: { "status.successful": "0" },
    unsupported: (field) => `field label ${quote(field)} not supported for Job`,
  },
  "resourceslices.resource.k8s.io": {
    text: ["spec.driver", "spec.nodeName"],
    hasNoNamespace: true,
    unsupported: (field) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${field}`,
  },
  "certificatesigningrequests.certificates.k8s.io": { text: ["spec.signerName"], hasNoNamespace: true },
};

/** Returns the selectable fields of a type. */
function selectableFieldsOf(type: ServedType): SelectableFields {
  const labels = type.custom === undefined ? FIELD_LABELS[resourceNameOf(type)] : customLabels(type);
  const fields = new Map<string, FieldReader>([["metadata.name", pathReader("metadata.name", "")]]);
  if (labels?.hasNoNamespace !== true) fields.set("metadata.namespace", pathReader("metadata.namespace", ""));
  for (const path of labels?.text ?? []) fields.set(path, pathReader(path, ""));
  for (const [path, zero] of Object.entries(labels?.zero ?? {})) fields.set(path, pathReader(path, zero));
  for (const [field, read] of Object.entries(labels?.computed ?? {})) fields.set(field, read);
  return { fields, unsupported: (field) => unsupportedText(field, labels) };
}

function unsupportedText(field: string, labels: FieldLabels | undefined): string {
  if (labels === undefined) {
    return `${quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
  }
  return labels.unsupported?.(field) ?? `field label not supported: ${field}`;
}

function customLabels(type: ServedType): FieldLabels {
  const declared = (arrayAt(type.custom?.version, "selectableFields") ?? []).filter(isObject);
  const paths = declared.map((field) => (stringAt(field, "jsonPath") ?? "").replace(/^\./, ""));
  return { text: paths, hasNoNamespace: !type.namespaced };
}

function pathReader(path: string, absent: string): FieldReader {
  const keys = path.split(".");
  return (object) => textAt(object, keys) || absent;
}

function textAt(object: JsonObject, keys: string[]): string {
  let value: JsonValue | undefined = object;
  for (const key of keys) value = isObject(value) ? memberOf(value, key) : undefined;
  return value === undefined || value === null || typeof value === "object" ? "" : String(value);
}

function podIpsOf(object: JsonObject): string {
  const ips = (arrayAt(objectAt(object, "status"), "podIPs") ?? []).filter(isObject);
  return ips.map((ip) => stringAt(ip, "ip") ?? "").join(",");
}
