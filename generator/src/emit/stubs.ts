import { readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonValue, Schema } from "@gen-operator/runtime/codegen";
import { slashed } from "../diagnostic.js";
import {
  type ConditionModel,
  type ControllerModel,
  type DependentModel,
  type EventSourceModel,
  type ExternalDependentModel,
  type FilterName,
  type InformerModel,
  type KubernetesDependentModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
} from "../model/project-model.js";
import { loadLibrary, reservedWords } from "../model/typescript.js";
import { conditionTypesOf, conditionsOf, filteredOf } from "./controller/conditions.js";
import { dependentTypesOf, hasFile, isFetched } from "./controller/dependent-types.js";
import { needsFunctions } from "./controller/emit-controller.js";
import { type ControllerNames, dependentNamesOf, inputNameOf, kebabCase, nameOrThrow, sourceNamesOf } from "./names.js";
import { type OutputFile, presentFile } from "./output-file.js";
import { printLine } from "./print.js";
import { buildRuntimeSchema } from "./resource/runtime-schema.js";
import { runtimeModule } from "./runtime-symbols.js";

/** A controller, with the names that its files use. */
export interface NamedController {
  readonly controller: ControllerModel;
  readonly names: ControllerNames;
  /** True if the controller calls a reconciler of the user, which exists or is generated as a stub. */
  readonly hasReconciler: boolean;
}

/** A file for the user to fill in. */
interface Stub {
  readonly path: string;
  /** Returns the unformatted text. */
  render(): Promise<string>;
}

/** Emits the stubs of user files. Only missing files have a content, because existing ones are never overwritten. */
export async function emitStubs(
  controllers: readonly NamedController[],
  isMissing: (path: string) => boolean,
): Promise<OutputFile[]> {
  const files = await Promise.all(controllers.map(emitControllerStubs));
  const main = { path: "src/main.ts", render: () => renderMain(controllers) };
  const stubs = [...files.flat(), ...(controllers.length > 0 ? [main] : [])];
  return Promise.all(stubs.map(async (stub) => (isMissing(stub.path) ? formatStub(stub) : presentFile(stub.path))));
}

async function formatStub({ path, render }: Stub): Promise<OutputFile> {
  const { format } = loadLibrary("prettier/standalone");
  const plugins = [loadLibrary("prettier/plugins/babel"), loadLibrary("prettier/plugins/estree")];
  const content = await format(await render(), { parser: "babel-ts", plugins, printWidth: 120 });
  return { path, owner: "user", content };
}

async function renderMain(controllers: readonly NamedController[]): Promise<string> {
  const dependents = controllers.flatMap(({ controller: { dependents: present, removed = [] } }) => [
    ...present.filter(isKubernetes),
    ...removed,
  ]);
  const clusters = new Set(dependents.flatMap(({ cluster }) => cluster ?? []));
  if (clusters.size === 0) return renderTemplate("stubs/main.ts", {});
  const fields = [...clusters].map((name) => {
    const variable = `${kebabCase(name).toUpperCase().replaceAll("-", "_")}_KUBECONFIG`;
    return `${name}: await loadConnection({ kubeconfig: process.env.${variable} ?? "" })`;
  });
  return renderTemplate("stubs/main-with-clusters.ts", { clusters: `{ ${fields.join(", ")} }` });
}

async function emitControllerStubs(named: NamedController): Promise<Stub[]> {
  return [
    ...(await dependentStubs(named)),
    ...(await conditionsStub(named)),
    ...(await matchersStub(named)),
    ...(await filtersStub(named)),
    ...(await indexesStub(named)),
    ...eventSourceStubs(named),
    ...reconcilerStub(named),
    ...testStub(named),
  ];
}

async function conditionsStub({ controller, names }: NamedController): Promise<Stub[]> {
  const file = `src/${names.folder}/conditions.ts`;
  const used = new Map<string, { name: string; type: string; doc: string }[]>();
  for (const dependent of controller.dependents)
    for (const [kind, condition] of conditionsOf(dependent)) {
      if (!isFunction(condition)) continue;
      const doc =
        kind === "existing"
          ? `Decides whether ${dependent.name} adopts the existing object.`
          : `Decides the ${kind} of ${dependent.name}.`;
      const use = { name: dependent.name, type: conditionTypesOf(dependent, kind).condition, doc };
      used.set(condition.name, [...(used.get(condition.name) ?? []), use]);
    }
  if (used.size === 0) return [];
  const imports = new Set<string>();
  const declarations = [...used].map(([condition, uses]) => {
    const dependents = new Set(uses.map(({ name }) => name));
    // A function used by several conditions can only rely on the arguments that all of them have.
    const types = new Set(uses.map(({ type }) => type));
    const isShared = dependents.size > 1 || types.size > 1;
    const [own = ""] = types;
    for (const name of isShared ? [names.primary, names.dependents] : [own]) imports.add(name);
    const type = isShared ? `Condition<${names.primary}, ${names.dependents}>` : own;
    const doc = uses.map((use) => use.doc).join(" ");
    return { replacements: { condition, Condition: type, doc, file }, isShared };
  });
  const texts = await Promise.all(
    declarations.map(({ replacements }) => renderTemplate("stubs/condition.ts", replacements)),
  );
  const head = [
    ...(declarations.some(({ isShared }) => isShared) ? [`import type { Condition } from "${runtimeModule}";`] : []),
    `import type { ${[...imports].sort().join(", ")} } from "../generated/${names.folder}/types.js";`,
  ];
  return [{ path: file, render: async () => [head.join("\n"), ...texts].join("\n\n") }];
}

function isFunction(condition: ConditionModel): condition is ConditionModel & { kind: "function" } {
  return condition.kind === "function";
}

// The test checks the first dependent that only requires the primary and is in the operator's own cluster.
function testStub({ controller, names }: NamedController): Stub[] {
  const { primary, dependents } = controller;
  const objects = dependents.filter(isKubernetes);
  const dependent = objects.find(({ dependsOn, conditions, ...rest }) => {
    const isPlain = rest.bulk === undefined && rest.mode !== "readOnly" && rest.resource.isUntyped !== true;
    const isUnconditional = !conditions.reconcilePrecondition && !conditions.activationCondition;
    return isPlain && rest.cluster === undefined && dependsOn.length === 0 && isUnconditional;
  });
  if (dependent === undefined || controller.workflow?.invocation === "explicit") return [];
  const resource = nameOrThrow(names.resources, dependent.resource).exportName;
  const primaryClass = nameOrThrow(names.resources, primary).exportName;
  const sample = "example";
  const isAlone = objectNameOf(dependent, controller) === "primary.metadata.name";
  const name = isAlone ? sample : `${sample}-${dependentNamesOf(dependent).file}`;
  const namespace = dependent.resource.scope === "Cluster" ? undefined : (dependent.namespace ?? "default");
  const metadata = { name: sample, ...(primary.scope === "Cluster" ? {} : { namespace: "default" }) };
  const crds = [primary, ...objects.map((each) => each.resource)].flatMap(({ crdFile }) => crdFile ?? []);
  const render = () =>
    renderTemplate("stubs/controller.test.ts", {
      Primary: primaryClass,
      Resource: resource,
      Resources: [...new Set([primaryClass, resource])].sort().join(", "),
      controllerName: names.controller,
      crds: JSON.stringify([...new Set(crds)]),
      dependent: dependent.name,
      live: variableFor(dependent.name, [names.controller]),
      name: JSON.stringify(name),
      primary: `${primaryClass}.create(${printLine({ metadata, ...(requiredFieldsOf(primary) ?? {}) })})`,
      ref: printLine({ name, ...(namespace === undefined ? {} : { namespace }) }),
    });
  return [{ path: `test/${names.folder}.test.ts`, render }];
}

/** Identifiers in the test of a controller that a variable must not shadow. */
const IN_TEST = ["assert", "createOperator", "operator", "server", "startApiServer", "test", "undefined", "waitFor"];

// The name of a dependent is not always a valid variable name.
function variableFor(dependent: string, others: readonly string[]): string {
  const isTaken = reservedWords.has(dependent) || [...IN_TEST, ...others].includes(dependent);
  return isTaken ? `${dependent}Object` : dependent;
}

/** Returns the path of the user's reconciler of a controller. */
export function reconcilerPathOf({ folder }: Pick<ControllerNames, "folder">): string {
  return `src/${folder}/reconciler.ts`;
}

/** Returns whether a controller does nothing without a reconciler: the reconciler runs the workflow, or there is no workflow to run. */
export function needsReconciler({ dependents, workflow, settings }: ControllerModel): boolean {
  return dependents.length === 0 || workflow?.invocation === "explicit" || settings.onAllEvents === true;
}

/** Returns the stub of the reconciler, if the controller requires or has one. */
function reconcilerStub({ controller, names, hasReconciler }: NamedController): Stub[] {
  if (!hasReconciler) return [];
  const template = controller.workflow?.invocation === "explicit" ? "explicit-reconciler" : "reconciler";
  const replacements = { Primary: names.primary, controller: names.folder };
  return [{ path: reconcilerPathOf(names), render: () => renderTemplate(`stubs/${template}.ts`, replacements) }];
}

/** Returns the stub of each dependent that requires user functions. */
async function dependentStubs(named: NamedController): Promise<Stub[]> {
  const kinds = await listTemplates("stubs/kinds");
  const { controller, names } = named;
  return controller.dependents.filter(hasFile).map((dependent) => ({
    path: `src/${names.folder}/dependents/${dependentNamesOf(dependent).file}.ts`,
    render: () => (isKubernetes(dependent) ? renderObject(dependent, named, kinds) : renderExternal(dependent, names)),
  }));
}

async function renderObject(
  dependent: KubernetesDependentModel,
  { controller, names }: NamedController,
  kinds: ReadonlySet<string>,
): Promise<string> {
  const { resource, bulk } = dependent;
  const { group, version, kind } = resource;
  const types = dependentNamesOf(dependent);
  const template = `${group === "" ? "core" : group}.${version}.${kind}.ts`;
  const hasOwnTemplate = bulk === undefined && kinds.has(template);
  const required = hasOwnTemplate ? {} : requiredFieldsOf(resource);
  const { input } = dependentTypesOf(dependent, names);
  const general = bulk === undefined ? "stubs/dependent.ts" : "stubs/bulk-dependent.ts";
  const text = await renderTemplate(hasOwnTemplate ? `stubs/kinds/${template}` : general, {
    Dependent: types.desired.slice(0, -"Desired".length),
    Primary: names.primary,
    Resource: input.slice(0, -inputNameOf("").length),
    Kind: kind,
    controller: names.folder,
    objectName: objectNameOf(dependent, controller),
    item: types.file,
    ...{ app: names.folder, component: workloadOf(dependent, controller).name },
    required: required === undefined ? "(() => { throw new Error() })()" : printLine(required),
  });
  return withOperations(withLabels(withMode(withRequired(text, dependent, required), dependent), dependent), dependent);
}

async function withOperations(text: string, dependent: KubernetesDependentModel): Promise<string> {
  const own = ownOperationsOf(dependent);
  if (own.length === 0) return text;
  const types = dependentNamesOf(dependent);
  const constant = await renderConstant("operations", own, { Operations: types.operations });
  const withTypes = text.replace("import type { ", `import type { ${types.operations}, `);
  return [withTypes.trimEnd(), constant].join("\n\n");
}

/** Renders a constant by concatenating the members of several templates. */
async function renderConstant(folder: string, parts: readonly string[], replacements: Replacements): Promise<string> {
  const texts = await Promise.all(parts.map((part) => renderTemplate(`stubs/${folder}/${part}.ts`, replacements)));
  const [first = ""] = texts;
  const members = texts.map((text) => text.slice(text.indexOf("{\n") + 2, text.lastIndexOf("};")));
  return `${first.slice(0, first.indexOf("{\n"))}{\n${members.join("\n")}};`;
}

function withMode(text: string, { mode }: KubernetesDependentModel): string {
  return mode === "createOnly" || mode === "once" ? text.replace("keeps it as returned,", "never updates it,") : text;
}

// The watch of the dependent would not see an object without the labels of its selector.
function withLabels(text: string, { labelSelector = "" }: KubernetesDependentModel): string {
  const labels = labelSelector.split(",").map((each) => /^\s*([^\s!=<>]+)\s*==?\s*([^\s()]*)\s*$/.exec(each)?.slice(1));
  if (!labels.every((each) => each !== undefined)) return text;
  const printed = printLine(Object.fromEntries(labels));
  return text.replace(/metadata: \{ (name\b.*?)(, labels)? \},$/m, (_, name: string, own?: string) =>
    own === undefined
      ? `metadata: { ${name}, labels: ${printed} },`
      : `metadata: { ${name}, labels: { ...labels,${printed.slice(1)} },`,
  );
}

// Insert the fields as text instead of a spread, for the user to fill in.
function withRequired(text: string, { name, resource }: KubernetesDependentModel, required: object | undefined) {
  if (required !== undefined)
    return text.replace(/\.\.\.\{(.*)\},\n/, (_, fields: string) =>
      fields.trim() === "" ? "" : `${fields.trim()},\n`,
    );
  const message = `desired() of the ${resource.kind} "${name}" is not implemented`;
  return text
    .replace(/\(\{ primary \}\): \w+ => \(\{[^]*\n\}\);/, `() => { throw new Error(${JSON.stringify(message)}); };`)
    .replace(/, \w+ \} from/, " } from");
}

const WORKLOADS = new Set(["Deployment", "StatefulSet", "DaemonSet"]);

/** Returns the dependent whose Pods the labels and selectors of a stub refer to: for a Service, the workload that it exposes. */
function workloadOf(dependent: KubernetesDependentModel, { dependents }: ControllerModel): DependentModel {
  if (dependent.resource.kind !== "Service") return dependent;
  const workloads = dependents.filter((each) => isKubernetes(each) && WORKLOADS.has(each.resource.kind));
  return workloads.findLast(({ name }) => dependent.waitsFor.includes(name)) ?? workloads[0] ?? dependent;
}

/** Returns minimal values of the required fields of an object, except its metadata; undefined if there are none. */
export function requiredFieldsOf(resource: ResourceModel): object | undefined {
  const fields = minimalFieldsOf(buildRuntimeSchema(resource));
  if (fields === undefined) return undefined;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = fields;
  if (resource.hasStatusSubresource) delete rest["status"];
  return rest;
}

/** Returns the expression for the name of an object. Two dependents of the same kind must have different names. */
function objectNameOf({ name, resource }: KubernetesDependentModel, { dependents }: ControllerModel): string {
  const isAlone = dependents.filter((other) => isKubernetes(other) && other.resource === resource).length === 1;
  return isAlone ? "primary.metadata.name" : `\`\${primary.metadata.name}-${dependentNamesOf({ name }).file}\``;
}

async function renderExternal(dependent: ExternalDependentModel, names: ControllerNames): Promise<string> {
  const types = dependentNamesOf(dependent);
  const { source, type, desiredType, capabilities, isSelected, state, keptType } = dependent.external;
  const isDeclared = type.kind === "declared" && source.kind !== "eventSource";
  // Only a type that is declared in the same file has known fields.
  const form = isDeclared ? "" : "unknown-";
  const wantedForm = desiredType === undefined ? form : "unknown-";
  const idForm = state === undefined ? wantedForm : form;
  const bulk = dependent.bulk === undefined ? "" : "bulk-";
  const fetches = isFetched(dependent);
  const parts = [
    ...(fetches ? [source.kind === "poll" ? "poll" : "perPrimaryPoll"] : []),
    `${idForm}idOf`,
    ...(isSelected === true ? ["isOwn"] : []),
    ...(keptType === undefined ? [] : ["stateOf"]),
    ...(isReadOnly(dependent) ? [] : [`${wantedForm}${bulk}desired`]),
    ...capabilities,
  ];
  const head = `import type { ${types.external} } from "../../generated/${names.folder}/types.js";`;
  const replacements = { name: dependent.name, Primary: names.primary, External: types.external };
  const resource = isDeclared ? [await renderTemplate("stubs/external/resource.ts", replacements)] : [];
  return [head, ...resource, await renderConstant("external", parts, replacements)].join("\n\n");
}

/** Returns the stub with the matchers, if the spec has any. */
async function matchersStub({ controller, names }: NamedController): Promise<Stub[]> {
  const used = new Map<string, DependentModel[]>();
  for (const dependent of controller.dependents)
    if (dependent.matcher !== undefined)
      used.set(dependent.matcher, [...(used.get(dependent.matcher) ?? []), dependent]);
  if (used.size === 0) return [];
  const typesOf = (dependents: readonly DependentModel[]) =>
    dependents.map((dependent) => dependentNamesOf(dependent).matcher);
  const texts = await Promise.all(
    [...used].map(([matcher, dependents]) =>
      // A function that is used several times must satisfy the types of all uses.
      renderTemplate("stubs/matcher.ts", {
        matcher,
        Matcher: typesOf(dependents).join(" & "),
        names: dependents.map(({ name }) => name).join(", "),
      }),
    ),
  );
  const imports = [...used.values()].flatMap(typesOf).sort().join(", ");
  const head = `import type { ${imports} } from "../generated/${names.folder}/types.js";`;
  return [{ path: `src/${names.folder}/matchers.ts`, render: async () => [head, ...texts].join("\n\n") }];
}

/** Returns the stub with the filters, if the spec has any. */
async function filtersStub({ controller, names }: NamedController): Promise<Stub[]> {
  const used = new Map<string, { types: Set<string>; docs: string[] }>();
  for (const { path, filters, types } of filteredOf(controller, names))
    for (const [key, filter] of Object.entries(filters)) {
      if (filter.kind !== "function") continue;
      const use = used.get(filter.name) ?? { types: new Set(), docs: [] };
      use.types.add(types[key as FilterName]);
      use.docs.push(`Decides ${key} of ${path}: whether the change is reconciled.`);
      used.set(filter.name, use);
    }
  if (used.size === 0) return [];
  const imports = new Set([...used.values()].flatMap(({ types }) => [...types]));
  const file = `src/${names.folder}/filters.ts`;
  const texts = await Promise.all(
    [...used].map(([filter, { types, docs }]) =>
      // A function that is used several times must satisfy the types of all uses.
      renderTemplate("stubs/filter.ts", { filter, Filter: [...types].join(" & "), doc: docs.join(" "), file }),
    ),
  );
  const head = `import type { ${[...imports].sort().join(", ")} } from "../generated/${names.folder}/types.js";`;
  return [{ path: file, render: async () => [head, ...texts].join("\n\n") }];
}

/** Returns the stub with the functions that index primaries, if the spec has any. */
async function indexesStub({ controller, names }: NamedController): Promise<Stub[]> {
  if (controller.indexes === undefined) return [];
  const used = new Set(Object.values(controller.indexes).map(({ name }) => name));
  const doc = `Returns the index values of a ${names.primary}. Use only the ${names.primary} as input.`;
  const file = `src/${names.folder}/indexes.ts`;
  const texts = await Promise.all(
    [...used].map((own) =>
      renderTemplate("stubs/event-sources/mapper.ts", { function: own, Type: names.index, doc, file }),
    ),
  );
  const head = `import type { ${names.index} } from "../generated/${names.folder}/types.js";`;
  return [{ path: file, render: async () => [head, ...texts].join("\n\n") }];
}

/** Returns the stub of each event source that requires user functions. */
function eventSourceStubs({ controller, names }: NamedController): Stub[] {
  return controller.eventSources.filter(needsFunctions).map((source) => ({
    path: `src/${names.folder}/event-sources/${sourceNamesOf(source).file}.ts`,
    render: () => renderSource(source, { names }),
  }));
}

async function renderSource(source: EventSourceModel, { names }: Pick<NamedController, "names">): Promise<string> {
  const { name, ...types } = sourceNamesOf(source);
  if (source.kind === "informer") return renderFunctions(source, names.folder);
  return renderTemplate(`stubs/event-sources/${source.kind}.ts`, {
    name,
    Primary: names.primary,
    Source: types.functions,
    controller: names.folder,
    source: types.source,
  });
}

async function renderFunctions({ name, resource, mapping, primaryToSecondary }: InformerModel, folder: string) {
  const types = sourceNamesOf({ name });
  const file = `src/${folder}/event-sources/${types.file}.ts`;
  const functions = [
    ...(mapping.kind === "function"
      ? [
          {
            function: mapping.name,
            Type: types.mapper,
            doc: `Maps a ${resource.kind} to the keys (namespace/name) of its primaries. Use only the ${resource.kind} and \`primaries\` as input.`,
          },
        ]
      : []),
    ...(primaryToSecondary === undefined
      ? []
      : [
          {
            function: primaryToSecondary.name,
            Type: types.primaryMapper,
            doc: `Returns the keys (namespace/name) of each ${resource.kind} that this primary names, whether or not it exists. Use only the primary and \`secondary\` as input.`,
          },
        ]),
  ];
  const texts = await Promise.all(
    functions.map((replacements) => renderTemplate("stubs/event-sources/mapper.ts", { ...replacements, file })),
  );
  const imports = functions.map(({ Type }) => Type).sort();
  const head = `import type { ${imports.join(", ")} } from "../../generated/${folder}/types.js";`;
  return [head, ...texts].join("\n\n");
}

/**
 * Builds a minimal value of a schema for the user to fill in; undefined if there is none.
 *
 * The value compiles, but may be invalid on the API server: only common patterns are satisfied, and rules are ignored.
 */
export function minimalValueOf(schema: Schema, root: Schema = schema, depth = 0): JsonValue | undefined {
  // A required field that contains itself has no finite value.
  if (depth > 30) return undefined;
  if (schema.$ref !== undefined) {
    const target = root.definitions?.[schema.$ref];
    return target === undefined ? undefined : minimalValueOf(target, root, depth + 1);
  }
  if (schema.default !== undefined) return schema.default;
  const option = schema.enum?.find((value) => value !== null);
  if (option !== undefined) return option;
  if (schema["x-kubernetes-int-or-string"] === true) return 0;
  if (schema.format === "quantity") return "1";
  switch (schema.type) {
    case "string":
      return minimalTextOf(schema);
    case "integer":
    case "number":
      return (schema.minimum ?? 0) + (schema.exclusiveMinimum === true ? 1 : 0);
    case "boolean":
      return false;
    case "array":
      return minimalListOf(schema, root, depth);
    case "object":
      return minimalFieldsOf(schema, root, depth);
    default:
      return {};
  }
}

// Typical values of fields with a pattern: names, numbers, quantities, durations, versions, times, addresses, hashes, and images.
const TEXTS = [
  ...[
    "x",
    "X",
    "a",
    "1",
    "0",
    "1Gi",
    "1s",
    "1h0m0s",
    "1.0",
    "v1",
    "1.0.0",
    "v1.0.0",
    "example.com",
    "https://example.com",
  ],
  ...[
    "2000-01-01T00:00:00Z",
    "2000-01-01",
    "00:00",
    "10.0.0.1",
    "10.0.0.0/8",
    "a/b",
    "/x",
    "* * * * *",
    "a:b",
    "a=b",
    "x@example.com",
  ],
  ...[
    "00000000-0000-0000-0000-000000000000",
    "sha256:" + "0".repeat(64),
    "0".repeat(64),
    "arn:aws:iam::000000000000:role/x",
  ],
];

function minimalTextOf({ pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema): string {
  const shortest = "x".repeat(minLength);
  if (pattern === undefined) return shortest;
  const hasLength = (text: string) => text.length >= minLength && text.length <= maxLength;
  try {
    const expression = new RegExp(pattern, "u");
    return [shortest, ...TEXTS].find((text) => hasLength(text) && expression.test(text)) ?? shortest;
  } catch {
    // JavaScript cannot parse every Go pattern.
    return shortest;
  }
}

function minimalListOf({ items, minItems = 0 }: Schema, root: Schema, depth: number): JsonValue | undefined {
  if (minItems === 0) return [];
  const item = items === undefined ? {} : minimalValueOf(items, root, depth + 1);
  return item === undefined ? undefined : Array.from({ length: minItems }, () => item);
}

/** Builds minimal values of the required fields of an object, except fields with a default. */
export function minimalFieldsOf(
  schema: Schema,
  root: Schema = schema,
  depth = 0,
): { [name: string]: JsonValue } | undefined {
  const implied = schema["x-kubernetes-embedded-resource"] === true ? { apiVersion: "", kind: "", metadata: {} } : {};
  const fields: { [name: string]: JsonValue } = { ...implied };
  for (const name of schema.required ?? []) {
    const field = schema.properties?.[name];
    if (field === undefined || field.default !== undefined) continue;
    const value = minimalValueOf(field, root, depth + 1);
    if (value === undefined) return undefined;
    fields[name] = value;
  }
  return fields;
}

const root = new URL("./", import.meta.resolve("@gen-operator/templates/package.json"));

/** Replacements of the placeholders in a template. `Primary` replaces `__Primary__`. */
export type Replacements = { readonly [placeholder: string]: string };

/** Reads a template and replaces its placeholders. Throws if a placeholder has no replacement, which is a bug. */
export async function renderTemplate(path: string, replacements: Replacements): Promise<string> {
  const text = await readFile(new URL(path, root), "utf8");
  return text.replace(/__([A-Za-z]+?)__/g, (placeholder, name: string) => {
    const value = Object.hasOwn(replacements, name) ? replacements[name] : undefined;
    if (value === undefined)
      throw new Error(`the template ${path} has the placeholder ${placeholder}, which nothing replaces`);
    return value;
  });
}

/** Returns the names of the templates in a folder. */
async function listTemplates(folder: string): Promise<ReadonlySet<string>> {
  return new Set(await readdir(fileURLToPath(new URL(`${folder}/`, root))));
}

/** Returns the paths of all templates below a folder, relative to the root of the templates. */
export async function listTemplatesBelow(folder: string): Promise<readonly string[]> {
  const start = fileURLToPath(root);
  const entries = await readdir(join(start, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return files.map((file) => slashed(relative(start, file))).sort();
}
