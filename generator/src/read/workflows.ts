import { readFile } from "node:fs/promises";
import type { ErrorObject, ValidateFunction } from "ajv";
import { type Diagnostic, type Rule, didYouMean, quote } from "../diagnostic.js";
import { packageFile } from "../package-file.js";
import { type Stage, digestOf } from "../stage.js";
import type { ProjectFile } from "./project-files.js";
import { EMPTY_SPEC, OLD_SPELLING, SPEC_NAME, SPEC_REQUIRED, SPEC_TYPE, SPEC_VALUE, UNKNOWN_FIELD } from "./rules.js";
import {
  type AcceptanceSpec,
  CONDITION_NAMES,
  type ConditionWord,
  type ControllerSpec,
  type DependencySpec,
  type DependentSpec,
  type EventSourceSpec,
  type ExternalSpec,
  type ExternalStateSpec,
  type ExtraRuleSpec,
  type MovedSpec,
  type RemovedSpec,
  type WorkflowSettingsSpec,
  type WorkflowSpec,
} from "./workflow-spec.js";
import { parseYaml } from "./yaml/parse-yaml.js";
import { describeValue, isRecord } from "./yaml/values.js";
import type { YamlDocument, YamlPath } from "./yaml/yaml-document.js";

/** The cached contents of a spec file. */
interface SpecOutline {
  /** Valid workflows: the index of the document in the file, and its value. */
  readonly values: readonly (readonly [document: number, value: unknown])[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the workflow specs of a file. If the result for the same text is cached, the file is neither parsed nor checked. */
export async function readWorkflowsOnce({ file, text }: ProjectFile, stage: Stage): Promise<WorkflowFile> {
  const digest = digestOf(file, text);
  const { values, diagnostics } = await stage("spec", (_source: ProjectFile) => [digest], outlineOf)({ file, text });
  let documents: readonly YamlDocument[] | undefined;
  const documentAt = (number: number) => {
    const document = (documents ??= parseYaml(file, text).documents)[number];
    if (document === undefined) throw new Error(`${file} has fewer documents than it had`);
    return document;
  };
  const workflows = values.map(([number, value]) => {
    const inputs = [digest, String(number)];
    return workflowOf(lazyDocument({ file, value }, { inputs, stage, read: () => documentAt(number) }));
  });
  return { workflows, numbers: values.map(([number]) => number), diagnostics };
}

async function outlineOf(source: ProjectFile): Promise<SpecOutline> {
  const { workflows, numbers, diagnostics } = readWorkflows(source, await loadSpecSchema());
  const values = workflows.map(({ document }, index) => [numbers[index] ?? 0, document.value] as const);
  return { values, diagnostics };
}

/** The workflows of a file, and its diagnostics. */
interface WorkflowFile {
  readonly workflows: readonly WorkflowSpec[];
  /** Index of the document of each workflow, starting at 0. Empty documents do not count. */
  readonly numbers: readonly number[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the workflow specs of a file, one per document. */
export function readWorkflows({ file, text }: ProjectFile, checkSpec: CheckSpec): WorkflowFile {
  const { documents, diagnostics: problems } = parseYaml(file, text);
  const diagnostics = [...problems];
  if (documents.length === 0 && problems.length === 0)
    diagnostics.push({
      ...EMPTY_SPEC.violation,
      message: "workflow not found: the file is empty",
      position: { file, line: 1, column: 1 },
    });
  const right = [...documents.entries()].filter(([, document]) => {
    const wrong = isRecord(document.value) ? checkSpec(document) : [notAnObject(document)];
    diagnostics.push(...wrong);
    return wrong.length === 0;
  });
  const workflows = right.map(([, document]) => workflowOf(document));
  return { workflows, numbers: right.map(([number]) => number), diagnostics };
}

function notAnObject(document: YamlDocument): Diagnostic {
  const message = problemWith(document.value, "a workflow");
  return { ...SPEC_TYPE.violation, message, ...document.valueAt([]) };
}

// Shape of a document that the schema has accepted.
interface CheckedSpec {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly primary: string;
    readonly controller?: ControllerSpec;
    readonly workflow?: WorkflowSettingsSpec;
    readonly statusConditions?: "managed";
    readonly dependents?: { readonly [name: string]: StatedDependent };
    readonly removed?: { readonly [name: string]: RemovedSpec };
    readonly moved?: readonly MovedSpec[];
    readonly eventSources?: { readonly [name: string]: EventSourceSpec };
    readonly rbac?: { readonly extra?: readonly ExtraRuleSpec[] };
    readonly accept?: readonly AcceptanceSpec[];
  };
}

/** A dependent in which flags may be set to false, which is their default. */
interface StatedDependent extends Omit<DependentSpec, "bulk" | "dependsOn" | "external"> {
  readonly bulk?: boolean | Exclude<DependentSpec["bulk"], true>;
  readonly dependsOn?: readonly (string | { readonly name: string; readonly optional?: boolean })[];
  readonly external?: Omit<ExternalSpec, "inbound" | "state"> & {
    readonly inbound?: { readonly fetch?: boolean; readonly fetchTimeout?: string };
    readonly state?: Omit<ExternalStateSpec, "perItem"> & { readonly perItem?: boolean };
  };
}

// Removes flags that are false.
function withoutOffFlags({ bulk = false, dependsOn, external, ...dependent }: StatedDependent): DependentSpec {
  return {
    ...dependent,
    ...(bulk === false ? {} : { bulk }),
    ...(dependsOn === undefined ? {} : { dependsOn: dependsOn.map(dependencyOf) }),
    ...(external === undefined ? {} : { external: externalOf(external) }),
  };
}

function dependencyOf(each: NonNullable<StatedDependent["dependsOn"]>[number]): DependencySpec {
  if (typeof each === "string") return each;
  return each.optional === true ? { name: each.name, optional: true } : each.name;
}

function externalOf({ inbound, state, ...external }: NonNullable<StatedDependent["external"]>): ExternalSpec {
  const { fetch = false, ...pushed } = inbound ?? {};
  const { perItem = false, ...kept } = state ?? {};
  return {
    ...external,
    ...(inbound === undefined ? {} : { inbound: { ...pushed, ...(fetch ? { fetch } : {}) } }),
    ...(state === undefined ? {} : { state: { ...kept, ...(perItem ? { perItem } : {}) } }),
  };
}

/** Converts a document that the schema has accepted to a workflow. */
function workflowOf(document: YamlDocument): WorkflowSpec {
  const { metadata, spec } = document.value as CheckedSpec;
  const {
    primary,
    controller = {},
    workflow = {},
    statusConditions,
    dependents = {},
    removed = {},
    eventSources = {},
  } = spec;
  return {
    name: metadata.name,
    ...{ primary, controller, workflow, document },
    ...(statusConditions === undefined ? {} : { statusConditions }),
    dependents: new Map(Object.entries(dependents).map(([name, each]) => [name, withoutOffFlags(each)])),
    removed: new Map(Object.entries(removed)),
    moved: spec.moved ?? [],
    eventSources: new Map(Object.entries(eventSources)),
    extraRules: spec.rbac?.extra ?? [],
    ...(spec.accept === undefined ? {} : { accept: spec.accept }),
  };
}

/** Options of {@link lazyDocument}. */
interface LazyDocumentOptions {
  /** Digest of the file, and index of the document. */
  readonly inputs: readonly string[];
  readonly stage: Stage;
  /** Parses the file. */
  read(): YamlDocument;
}

/** Returns a document whose file is only parsed for positions that are not cached. */
function lazyDocument(
  { file, value }: Pick<YamlDocument, "file" | "value">,
  { inputs, stage, read }: LazyDocumentOptions,
): YamlDocument {
  const inputsOf = (path: YamlPath, offset = 0) => [...inputs, JSON.stringify(path), String(offset)];
  return Object.freeze({
    file,
    value,
    valueAt: stage("place of a value", inputsOf, (path: YamlPath) => read().valueAt(path)),
    keyAt: stage("place of a key", inputsOf, (path: YamlPath) => read().keyAt(path)),
    plainTextAt: (path: YamlPath) => read().plainTextAt(path),
    characterAt: stage("place of a character", inputsOf, (path: YamlPath, offset: number) =>
      read().characterAt(path, offset),
    ),
  });
}

/** Checks a document against the published JSON Schema of workflow specs. */
type CheckSpec = (document: YamlDocument) => Diagnostic[];

/** Keywords that reject a whole value, so that one error per value suffices. */
const VALUE_RULES: ReadonlySet<string> = new Set(["maxLength", "maximum", "minLength", "minimum", "pattern"]);

let loaded: Promise<CheckSpec> | undefined;

/** Loads the JSON Schema and its validator. The result is cached. */
export function loadSpecSchema(): Promise<CheckSpec> {
  return (loaded ??= compileSpecSchema());
}

/** Options of the JSON Schema validator that determine its errors. */
export const VALIDATOR_OPTIONS = { allErrors: true, verbose: true } as const;

/**
 * Returns the compiled JSON Schema. The published package contains the compiled validator instead, because compiling takes longer than checking any
 * spec.
 */
async function loadSpecValidator(): Promise<ValidateFunction> {
  const [{ Ajv }, text] = await Promise.all([
    import("ajv"),
    readFile(packageFile("data/workflow.schema.json"), "utf8"),
  ]);
  return new Ajv({ ...VALIDATOR_OPTIONS, code: { optimize: false } }).compile(JSON.parse(text) as object);
}

async function compileSpecSchema(): Promise<CheckSpec> {
  const validate = await loadSpecValidator();
  return (document) => {
    const { value, diagnostics, pathInText } = replaceOldSpellings(document);
    if (validate(value)) return [...diagnostics];
    const errors = (validate.errors ?? []).filter(isTelling);
    const mistyped = new Set(
      errors.filter(({ keyword }) => keyword === "type").map(({ instancePath }) => instancePath),
    );
    const written: YamlDocument = {
      ...document,
      value,
      valueAt: (path) => document.valueAt(pathInText(path)),
      keyAt: (path) => document.keyAt(pathInText(path)),
    };
    return [
      ...diagnostics,
      ...errors
        .filter(isFirst)
        .filter(({ keyword, instancePath }) => keyword !== "oneOf" || !mistyped.has(instancePath))
        // An error within the value is more specific than the failed oneOf.
        .filter(({ keyword, instancePath }) => keyword !== "oneOf" || !isAround(instancePath, errors))
        .map((error) => diagnosticOf(error, written)),
    ];
  };
}

// Errors within an alternative only repeat that none matches, and propertyNames repeats the errors of the names.
function isTelling({ schemaPath, keyword }: ErrorObject): boolean {
  return keyword !== "propertyNames" && keyword !== "if" && !/\/oneOf\/\d/.test(schemaPath);
}

// Several violated constraints of the same schema are one error.
function isFirst(error: ErrorObject, index: number, errors: readonly ErrorObject[]): boolean {
  const isSame = ({ instancePath, propertyName, parentSchema }: ErrorObject) =>
    instancePath === error.instancePath && propertyName === error.propertyName && parentSchema === error.parentSchema;
  return (
    !VALUE_RULES.has(error.keyword) ||
    errors.findIndex((each) => VALUE_RULES.has(each.keyword) && isSame(each)) === index
  );
}

function isAround(pointer: string, errors: readonly ErrorObject[]): boolean {
  return errors.some(
    ({ instancePath, keyword }) =>
      instancePath.startsWith(`${pointer}/`) || (instancePath === pointer && keyword === "additionalProperties"),
  );
}

function diagnosticOf(error: ErrorObject, document: YamlDocument): Diagnostic {
  const path = pathOfError(error.instancePath, document.value);
  const fail = (rule: Rule<"error">, message: string, place: YamlPath = path): Diagnostic => ({
    ...rule.violation,
    message,
    ...document.valueAt(place),
  });
  const params = error.params as { [name: string]: unknown };
  // The name of the field is invalid, not its value.
  if (error.propertyName !== undefined && error.keyword !== "additionalProperties")
    return {
      ...fail(SPEC_NAME, `invalid name ${quote(error.propertyName)}: must be ${expectedOf(error)}`),
      ...document.keyAt([...path, error.propertyName]),
    };
  switch (error.keyword) {
    case "additionalProperties":
      return unknownField(error, path, document);
    case "required":
      return fail(
        SPEC_REQUIRED,
        `field ${quote(String(params["missingProperty"]))} is required in ${nameOfMember(path)}`,
      );
    case "dependencies":
      return {
        ...fail(
          SPEC_VALUE,
          `field ${quote(String(params["property"]))} requires field ${quote(String(params["deps"]))}`,
        ),
        ...document.keyAt([...path, String(params["property"])]),
      };
    case "uniqueItems": {
      const index = Math.max(Number(params["i"]), Number(params["j"]));
      const { [index]: value } = error.data as readonly unknown[];
      return fail(SPEC_VALUE, `duplicate value${isScalar(value) ? ` ${textOfScalar(value)}` : ""}`, [...path, index]);
    }
    case "type":
      return fail(SPEC_TYPE, problemWith(error.data, expectedOf(error)));
    case "enum":
    case "const": {
      const values = [params["allowedValues"] ?? params["allowedValue"]].flat();
      // Boolean alternatives are not suggested for a string: the difference is in the quotes.
      const allowed = values.filter((value) => typeof value === "string");
      const hint =
        hintForWord(path, error.data) ?? (typeof error.data === "string" ? didYouMean(error.data, allowed) : undefined);
      const expected = titleOf(error) ?? allowed.map(quote).join(" or ");
      return { ...fail(SPEC_VALUE, problemWith(error.data, expected)), ...hint };
    }
    default:
      return fail(SPEC_VALUE, problemWith(error.data, expectedOf(error), foundOf(error.data)));
  }
}

function unknownField(error: ErrorObject, path: YamlPath, document: YamlDocument): Diagnostic {
  const name = String((error.params as { additionalProperty: unknown }).additionalProperty);
  const known = Object.keys((error.parentSchema as { properties?: object }).properties ?? {});
  const hint = hintForKey(path, name, error.data as object) ??
    didYouMean(name, known) ?? {
      hint: known.length === 0 ? "remove it: no fields are allowed here" : `known fields: ${known.join(", ")}`,
    };
  return {
    ...UNKNOWN_FIELD.violation,
    message: `unknown field ${quote(name)} in ${nameOfMember(path)}`,
    ...document.keyAt([...path, name]),
    ...hint,
  };
}

function expectedOf(error: ErrorObject): string {
  return titleOf(error) ?? "another value";
}

function titleOf({ parentSchema }: ErrorObject): string | undefined {
  return (parentSchema as { title?: string }).title;
}

/** Returns the message about a value: `invalid value 0: must be …` for a scalar, and `must be …, found a list` for others. */
function problemWith(value: unknown, expected: string, found = describeValue(value)): string {
  return isScalar(value)
    ? `invalid value ${textOfScalar(value)}: must be ${expected}`
    : `must be ${expected}, found ${found}`;
}

type JsonScalar = string | number | boolean;

function isScalar(value: unknown): value is JsonScalar {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function textOfScalar(value: JsonScalar): string {
  return typeof value === "string" ? quote(value) : String(value);
}

function foundOf(value: unknown): string {
  if (!isRecord(value)) return describeValue(value);
  const fields = Object.keys(value);
  return fields.length === 0 ? "an empty object" : fields.map(quote).join(" and ");
}

function nameOfMember(path: YamlPath): string {
  const last = path.at(-1);
  return last === undefined ? "the workflow" : typeof last === "number" ? `item ${last}` : quote(last);
}

// A JSON pointer does not distinguish indexes from names.
function pathOfError(pointer: string, root: unknown): YamlPath {
  const path: (string | number)[] = [];
  let value = root;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    const step = Array.isArray(value) ? Number(name) : name;
    path.push(step);
    value = (value as { [step: string]: unknown } | undefined)?.[step];
  }
  return path;
}

type Hint = { readonly hint: string };

/** Conditions without arguments. */
const WORDS: readonly ConditionWord[] = ["ready", "bound", "deleted", "crdPresent"];

/** Examples of conditions with arguments. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ["condition", '{ condition: { type: Ready, status: "True" } }'],
  ["fieldEquals", "{ fieldEquals: { path: status.phase, value: Running } }"],
  ["not", "{ not: crdPresent }"],
  ["when", "{ when: primary.spec.enabled === true }"],
  ["function", "{ function: isReady }"],
]);

const EXISTING_EXAMPLE = `{ when: 'live.metadata.annotations?.["example.com/adopt"] === "true"' }`;

/** Returns a hint for a string that is not a condition; undefined if the path does not lead to a condition. */
function hintForWord(path: YamlPath, text: unknown): Hint | undefined {
  const name = conditionAt(path);
  if (name === undefined || typeof text !== "string") return undefined;
  const isWhenOfExisting = name === "existing" && text === "when";
  const example = isWhenOfExisting ? EXISTING_EXAMPLE : EXAMPLES.get(text);
  if (example !== undefined) return { hint: `use ${name}: ${example}` };
  if (name === "existing") return undefined;
  if (path.includes("eventSources")) return didYouMean(text, ["crdPresent"]);
  const meant = didYouMean(text, WORDS);
  if (meant !== undefined) return meant;
  return /^[a-z][A-Za-z0-9]{0,62}$/.test(text)
    ? { hint: `use { function: ${text} } for a function of conditions.ts` }
    : { hint: "use { when: … } for an expression, in quotes if it contains a comma, a brace, a hash or a colon" };
}

/** Returns a hint for an unknown key of a condition; undefined if the path does not lead to a condition. */
function hintForKey(path: YamlPath, key: string, stated: object): Hint | undefined {
  const name = conditionAt(path);
  if (name === undefined) return undefined;
  if (name !== "existing" && key !== "crdPresent" && WORDS.some((word) => word === key))
    return { hint: `use ${name}: ${key}, which takes no arguments` };
  const isSplit = Object.hasOwn(stated, "when");
  return isSplit ? { hint: "quote an expression that contains a comma, a brace, a hash or a colon" } : undefined;
}

function conditionAt(path: YamlPath): string | undefined {
  return [...CONDITION_NAMES, "existing"].find((name) => name === path.at(-1));
}

/** Fields that replace an old field, with their values. */
type Spelling = { readonly [field: string]: unknown };

/** A deprecated spelling of an earlier version of the format. */
interface OldSpelling {
  /** Path of the field; `*` matches any name. */
  readonly at: string;
  /** Returns the replacement of the field. `fields` are all fields of its parent. Undefined if the value is not one of an earlier version. */
  readonly now: (value: unknown, fields: Spelling) => Spelling | undefined;
  /** Returns the hint if the spec alone does not determine the replacement. */
  readonly hint?: (value: unknown) => string | undefined;
}

const REMOVED_DELETIONS: ReadonlyMap<unknown, string> = new Map([
  ["keep", "garbageCollected"],
  ["delete", "ordered"],
  ["orphan", "orphan"],
]);

const maxRetries = (value: unknown) => ({ maxRetries: value });

// Merges two former fields into one.
function deletion(_: unknown, { onDelete, garbageCollected }: Spelling): Spelling {
  if (onDelete === "orphan") return { deletion: "orphan" };
  return { deletion: garbageCollected === false ? "ordered" : "garbageCollected" };
}

function fieldOf(name: string, value: unknown): Spelling | undefined {
  return value === undefined ? undefined : { [name]: value };
}

/** Converts the former `builtin` with its arguments to a condition: a name, or a single key. */
function conditionOf(value: unknown): unknown {
  if (!isRecord(value) || typeof value["builtin"] !== "string") return undefined;
  const { builtin, ...args } = value;
  return Object.keys(args).length === 0 ? builtin : { [builtin]: args };
}

/** Converts the former object form of the primary, with a CRD file or a kind, to a kind. */
function primary(value: unknown): Spelling | undefined {
  if (!isRecord(value)) return undefined;
  const { crd, version = "v1", resource } = value;
  return crd === undefined ? fieldOf("primary", resource) : { primary: `example.com/${String(version)}/Kind` };
}

function primaryHint(value: unknown): string | undefined {
  const crd = isRecord(value) ? value["crd"] : undefined;
  if (typeof crd !== "string") return undefined;
  return `use primary: group/version/Kind, as defined in ${quote(crd)}, for example example.com/v1/WebPage`;
}

function namespaces(value: unknown): Spelling | undefined {
  return Array.isArray(value) && value.includes("*") ? { namespaces: "all" } : undefined;
}

/** Returns the replacement of a flag that only had effect if true. */
function stateIn(place: string) {
  return (value: unknown) => (value === true ? { in: place } : undefined);
}

const OLD_SPELLINGS: readonly OldSpelling[] = [
  { at: "spec.controller.namespaces", now: namespaces },
  {
    at: "spec.status",
    now: (value) => (value === "conditions" ? { statusConditions: "managed" } : undefined),
  },
  { at: "spec.dependents.*.external.state.configMap", now: stateIn("configMap") },
  { at: "spec.dependents.*.external.state.secret", now: stateIn("secret") },
  { at: "spec.primary", now: primary, hint: primaryHint },
  { at: "spec.controller.retry.maxAttempts", now: maxRetries },
  { at: "spec.dependents.*.retry.maxAttempts", now: maxRetries },
  { at: "spec.dependents.*.onDelete", now: deletion },
  { at: "spec.dependents.*.garbageCollected", now: deletion },
  { at: "spec.removed.*.policy", now: (value) => fieldOf("deletion", REMOVED_DELETIONS.get(value)) },
  ...CONDITION_NAMES.map((name) => ({
    at: `spec.dependents.*.${name}`,
    now: (value: unknown) => fieldOf(name, conditionOf(value)),
  })),
];

/** A document in the current spelling. */
interface CurrentSpelling {
  readonly value: unknown;
  /** Diagnostics for old spellings, with their replacements. */
  readonly diagnostics: readonly Diagnostic[];
  /** Converts a path to that in the original text. */
  readonly pathInText: (path: YamlPath) => YamlPath;
}

/** Reports the old spellings in a document, and returns its value with their replacements. */
function replaceOldSpellings(document: YamlDocument): CurrentSpelling {
  const diagnostics: Diagnostic[] = [];
  const origins = new Map<string, YamlPath>();
  let value = document.value;
  for (const { at, now, hint } of OLD_SPELLINGS)
    for (const path of pathsOf(at.split("."), value)) {
      const field = path.at(-1)!;
      const parent = path.slice(0, -1);
      const old = find(value, path);
      const spelling = now(old, find(document.value, parent) as Spelling);
      if (spelling === undefined) continue;
      // Copy before the first change: the value of the document must not be modified.
      if (value === document.value) value = structuredClone(value);
      const fields = find(value, parent) as Record<string, unknown>;
      delete fields[field];
      for (const name of Object.keys(spelling)) origins.set(JSON.stringify([...parent, name]), path);
      // If both spellings are used, the new one takes precedence.
      Object.assign(fields, { ...spelling, ...fields });
      diagnostics.push({
        ...OLD_SPELLING.violation,
        message: `${quote(field)} uses the deprecated spelling of an earlier version`,
        ...document.keyAt(path),
        hint: hint?.(old) ?? `use ${textOfSpelling(spelling)}`,
      });
    }
  return { value, diagnostics, pathInText: (path) => originOf(path, origins) };
}

function originOf(path: YamlPath, origins: ReadonlyMap<string, YamlPath>): YamlPath {
  for (let length = path.length; length > 0; length--) {
    const origin = origins.get(JSON.stringify(path.slice(0, length)));
    if (origin !== undefined) return [...origin, ...path.slice(length)];
  }
  return path;
}

/** Returns the paths in a value that match a pattern. */
function pathsOf([step, ...rest]: readonly string[], value: unknown): string[][] {
  if (step === undefined) return [[]];
  if (!isRecord(value)) return [];
  const fields = step === "*" ? Object.keys(value) : Object.hasOwn(value, step) ? [step] : [];
  return fields.flatMap((field) => pathsOf(rest, value[field]).map((path) => [field, ...path]));
}

function find(value: unknown, path: readonly string[]): unknown {
  return path.reduce((around, step) => (around as Spelling)[step], value);
}

/** Formats fields as a line of YAML, for example `deletion: ordered`. */
function textOfSpelling(fields: Spelling): string {
  return Object.entries(fields)
    .map(([name, value]) => `${scalarText(name)}: ${flowText(value)}`)
    .join(", ");
}

function flowText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${value.map(flowText).join(", ")}]`;
  if (isRecord(value)) return Object.keys(value).length === 0 ? "{}" : `{ ${textOfSpelling(value)} }`;
  return typeof value === "string" ? scalarText(value) : JSON.stringify(value);
}

// Quotes strings that YAML would parse as another type.
function scalarText(text: string): string {
  const isPlain = /^[A-Za-z][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain ? text : quote(text);
}
