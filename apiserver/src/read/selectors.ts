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

/** What a field selector asks for. */
interface FieldSelector {
  matches: (object: JsonObject) => boolean;
  /** The name that the selector demands, if it is one. */
  name?: string;
}

/** Reads a label selector; throws a 400 with Kubernetes' words if it cannot be read. */
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

/** Fails with a 400 for selectors that cannot be read, whatever the fields that they name. */
export function checkSelectorSyntax({ labelSelector, fieldSelector }: Selectors): void {
  parseLabelSelector(labelSelector);
  termsOf(fieldSelector).forEach((term) => parseTerm(fieldSelector, term));
}

interface FieldTerm {
  field: string;
  isNegated: boolean;
  value: string;
}

/** Reads a field selector for objects of `type`; throws a 400 if it cannot be read or names a field without index. */
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

// Commas separate terms unless a backslash stands before them.
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

/** The objects that a list, a watch or a deletecollection is about. */
export interface Selection {
  /** The prefix that all their keys have. */
  prefix: string;
  /** The key of the only object that can be selected, if there is one. */
  key?: string;
  /** True when labels or fields narrow the selection. */
  isFiltered: boolean;
  /** True for selected objects among those below the prefix. */
  matches(object: JsonObject): boolean;
}

/** Returns the selection that a namespace and two selectors describe. */
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

// The grammar of label selectors as Kubernetes' own parser reads it, with its tokens, its leniency and its messages.

/** One condition of a selector; `exists` and `!` have no values. */
interface LabelRequirement {
  key: string;
  operator: "in" | "notin" | "=" | "==" | "!=" | ">" | "<" | "exists" | "!";
  /** Sorted, without repetition. */
  values: string[];
}

/** Says that a selector cannot be read; the message is Kubernetes'. */
class SelectorSyntaxError extends Error {
  override readonly name = "SelectorSyntaxError";
}

interface Token {
  kind: "end" | "identifier" | "in" | "notin" | "=" | "==" | "!=" | ">" | "<" | "!" | "," | "(" | ")";
  text: string;
}

const OPERATORS = ["in", "notin", "=", "==", "!=", ">", "<"] as const;
const TOKEN = /\s*(?:(==|!=|[=!(),<>])|([^\s=!(),<>]+))/y;

/** Reads a selector into its requirements, which all have to hold. */
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

/** Hands out tokens; where no operator can stand, `in` and `notin` are ordinary words. */
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

// Stands before a word or comma; stops before the closing parenthesis. Missing words count as the empty value.
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

/** Reads a decimal integer of 64 bits; undefined if the text is none. */
function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return value === BigInt.asIntN(64, value) ? value : undefined;
}

function fail(token: Token, expectation: string): never {
  throw new SelectorSyntaxError(`found '${token.text}'${expectation}`);
}

/** Reads a selectable field of an object as text. */
type FieldReader = (object: JsonObject) => string;

/** The fields that a type's objects can be selected by, and what the server says about all others. */
interface SelectableFields {
  fields: ReadonlyMap<string, FieldReader>;
  unsupported: (field: string) => string;
}

interface FieldLabels {
  /** Paths whose absent values read as "". */
  text?: string[];
  /** Paths whose absent values read as "false" or "0". */
  zero?: Record<string, string>;
  /** Fields that are no path of their own. */
  computed?: Record<string, FieldReader>;
  /** Whether objects have no metadata.namespace to select by. */
  hasNoNamespace?: boolean;
  /** What is said of any other field, unless that is what most types say. */
  unsupported?: (field: string) => string;
}

const REFERENCE_FIELDS = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

// Types that declare field labels; all others know metadata.name and metadata.namespace only. Recorded from 1.36.
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
    // The node has an old name, too.
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

/** Gives the selectable fields of a type. */
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
