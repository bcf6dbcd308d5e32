import type { ImportDeclarationStructure } from "ts-morph";
import {
  isKubernetes,
  isReadOnly,
  kindsOf,
  type ConditionModel,
  type ControllerModel,
  type DependentModel,
  type ExternalDependentModel,
  type KubernetesDependentModel,
  type ResourceModel,
} from "../model/project-model.js";
import { CAPABILITIES } from "../model/dependent-model.js";
import { loadLibrary } from "../model/library.js";
import { conditionsOf } from "./conditions-of.js";
import { dependentNamesOf, nameOrThrow, type ControllerNames, type DependentNames } from "./controller-names.js";
import { alwaysThere, CAPABILITY_FUNCTIONS, dependentTypesOf, hasFile, isFetched } from "./dependent-types.js";
import { hasFunctions, renderFilters } from "./filtered.js";
import type { OutputFile } from "./output-file.js";
import { printLine } from "./print-value.js";
import { builtinConditions, codegenModule, runtimeModule } from "./runtime-symbols.js";
import type { SourcePrinter } from "./source-file.js";

const { StructureKind, VariableDeclarationKind } = loadLibrary("ts-morph");

/** Emits the wiring of a workflow: one chain that declares, in an order in which the dependents can be created. */
export function emitWorkflow(
  controller: ControllerModel,
  names: ControllerNames,
  source: SourcePrinter,
): Promise<OutputFile> {
  const links = controller.dependents.map((dependent) => renderLink(dependent, names));
  return source.print(`src/generated/${names.folder}/workflow.ts`, [
    ...importsOf(controller, names),
    ...inboundOf(controller).map((dependent) => renderInbound(dependent)),
    {
      kind: StructureKind.VariableStatement,
      isExported: true,
      declarationKind: VariableDeclarationKind.Const,
      leadingTrivia: `\n/** What ${names.primary} objects depend on. */\n`,
      declarations: [
        {
          name: names.workflow,
          initializer: `defineWorkflow${typeArgumentsOf(controller, names)}(${argumentsOf(controller, names)})${links.join("")}`,
        },
      ],
    },
  ]);
}

// The event sources and the items of bulk dependents are there in whatever is called with them.
function typeArgumentsOf(controller: ControllerModel, names: ControllerNames): string {
  const always = alwaysThere(controller, names);
  return always.length === 0 ? "" : `<${names.primary}, ${always.join(" & ")}>`;
}

function argumentsOf({ workflow = {}, removed = [] }: ControllerModel, names: ControllerNames): string {
  const old = removed.map(
    ({ name, resource, ...stated }) =>
      `${name}: { ${[`resource: ${renderResource(resource, names)}`, ...renderStated(stated)].join(", ")} }`,
  );
  const options = [...renderStated({ ...workflow }), ...(old.length === 0 ? [] : [`removed: { ${old.join(", ")} }`])];
  return options.length === 0 ? names.primary : `${names.primary}, { ${options.join(", ")} }`;
}

function renderLink(dependent: DependentModel, names: ControllerNames): string {
  return isKubernetes(dependent) ? renderDependent(dependent, names) : renderExternal(dependent, names);
}

function renderDependent(dependent: KubernetesDependentModel, names: ControllerNames): string {
  const { mode, namespace, cluster, eventSource, labelSelector, fieldSelector, resource } = dependent;
  const { onDelete, existing, serverSideApply, fieldManager } = dependent;
  const filters = renderFilters(dependent.filters, dependentTypesOf(dependent, names).live);
  // Where no owner reference leads, false is what the builder takes for granted.
  const garbageCollected = dependent.garbageCollected || cluster !== undefined ? undefined : false;
  const placed = { namespace, cluster, eventSource, labelSelector, fieldSelector, garbageCollected };
  const stated = {
    ...statedOf(dependent),
    ...{ mode, ...placed, onDelete, existing, serverSideApply, fieldManager },
  };
  const options = [
    `resource: ${renderResource(resource, names)}`,
    ...(hasFile(dependent) ? [`desired: ${moduleNameOf(dependent)}.desired`] : []),
    ...renderStated(stated),
    ...(filters === undefined ? [] : [`filters: ${filters}`]),
    ...(dependent.matcher === undefined ? [] : [`matcher: matchers.${dependent.matcher}`]),
    ...renderOperations(dependent),
    ...renderConditions(dependent),
  ];
  return `\n.dependent(${JSON.stringify(dependent.name)}, {\n${options.join(",\n")} })`;
}

function renderOperations(dependent: KubernetesDependentModel): string[] {
  const { operations = {} } = dependent;
  const parts = CAPABILITIES.filter((each) => operations[each] !== undefined).map((each) => {
    const own = `${moduleNameOf(dependent)}.${CAPABILITY_FUNCTIONS[each]}`;
    return `${each}: ${operations[each] === "own" ? own : "false"}`;
  });
  return parts.length === 0 ? [] : [`operations: { ${parts.join(", ")} }`];
}

function renderExternal(dependent: ExternalDependentModel, names: ControllerNames): string {
  const { source, state, keptType, capabilities, isSelected, onDeleteFailure } = dependent.external;
  const module = moduleNameOf(dependent);
  const facts = Object.entries(source).flatMap(([name, value]) =>
    name === "isFetched" ? [] : [`${name}: ${printLine(value)}`],
  );
  if (isFetched(dependent)) facts.push(`fetch: ${module}.fetch`);
  if (source.kind === "inbound") facts.push(`channel: ${dependentNamesOf(dependent).source}`);
  const options = [
    `source: { ${facts.join(", ")} }`,
    `idOf: ${module}.idOf`,
    ...(isSelected === true ? [`isOwn: ${module}.isOwn`] : []),
    ...(keptType === undefined ? [] : [`stateOf: ${module}.stateOf`]),
    ...(isReadOnly(dependent) ? [] : [`desired: ${module}.desired`]),
    ...capabilities.map((capability) => `${capability}: ${module}.${CAPABILITY_FUNCTIONS[capability]}`),
    ...renderState(state, names),
    ...renderStated({ onDeleteFailure, ...statedOf(dependent) }),
    ...(dependent.matcher === undefined ? [] : [`matches: matchers.${dependent.matcher}`]),
    ...renderConditions(dependent),
  ];
  return `\n.external(${JSON.stringify(dependent.name)}, {\n${options.join(",\n")} })`;
}

function renderState(state: ExternalDependentModel["external"]["state"], names: ControllerNames): string[] {
  if (state?.kind !== "resource") return renderStated({ state });
  const { resource, ...stated } = state;
  const parts = [...renderStated(stated), `resource: ${renderResource(resource, names)}`];
  return [`state: { ${parts.join(", ")} }`];
}

function inboundOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((each) => (!isKubernetes(each) && each.external.source.kind === "inbound" ? [each] : []));
}

// The user's code has to reach it, wherever the operator is made.
function renderInbound(dependent: ExternalDependentModel): string {
  const { source, resource } = dependentNamesOf(dependent);
  const doc = `/** Takes what there is of "${dependent.name}" outside of Kubernetes, from whatever brings it. */`;
  return `\n${doc}\nexport const ${source} = createInbound<${resource}>();`;
}

/** Returns what any dependent may state, in the words of the runtime. */
function statedOf({ dependsOn, itemsDependOn, bulk, timeoutMs, retry }: DependentModel) {
  return { dependsOn: dependsOn.length > 0 ? dependsOn : undefined, itemsDependOn, bulk, timeoutMs, retry };
}

function renderStated(stated: { readonly [name: string]: unknown }): string[] {
  return Object.entries(stated).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${printLine(value)}`],
  );
}

function renderResource(resource: ResourceModel, { resources }: ControllerNames): string {
  if (resource.isUntyped !== true) return nameOrThrow(resources, resource).localName;
  const { group, version, kind, plural, scope } = resource;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return `untypedResource(${printLine({ apiVersion, kind, plural, scope })})`;
}

// A name of its own, so that a dependent called "ready" or "conditions" does not clash with an import.
function moduleNameOf({ name }: { readonly name: string }): string {
  return `${name}Dependent`;
}

function renderConditions(dependent: DependentModel): string[] {
  const types = dependentNamesOf(dependent);
  return conditionsOf(dependent).map(([name, condition]) => `${name}: ${renderCondition(condition, types)}`);
}

function renderCondition(condition: ConditionModel, { conditionArguments }: DependentNames): string {
  if (condition.kind === "builtin") {
    const name = builtinConditions[condition.name];
    return condition.arguments === undefined ? name : `${name}(${condition.arguments.map(printLine).join(", ")})`;
  }
  if (condition.kind === "function") return `conditions.${condition.name}`;
  const { names, expression } = condition;
  if (names.length === 0) return `() => (\n${expression}\n)`;
  // The chain knows the dependents before this one; the named type knows all of them.
  const type = names.includes("secondary") ? `: ${conditionArguments}` : "";
  // On lines of its own, so that a comment at its end ends there. The formatter removes needless brackets.
  return `({ ${names.join(", ")} }${type}) => (\n${expression}\n)`;
}

function importsOf(controller: ControllerModel, names: ControllerNames): ImportDeclarationStructure[] {
  const { dependents } = controller;
  const all = dependents.flatMap((dependent) =>
    conditionsOf(dependent).map(([, condition]) => ({ condition, types: dependentNamesOf(dependent) })),
  );
  const builtins = new Set(
    all.flatMap(({ condition }) => (condition.kind === "builtin" ? [builtinConditions[condition.name]] : [])),
  );
  const typed = all.filter(({ condition }) => condition.kind === "when" && condition.names.includes("secondary"));
  const inbound = inboundOf(controller).map(dependentNamesOf);
  const importedTypes = new Set([
    ...inbound.map(({ resource }) => resource),
    ...typed.map(({ types }) => types.conditionArguments),
    ...alwaysThere(controller, names),
  ]);
  const user = `../../${names.folder}`;
  const resources = writtenResources(controller);
  const isUntyped = resources.some((resource) => resource.isUntyped === true);
  const functions = {
    conditions: all.some(({ condition }) => condition.kind === "function"),
    filters: dependents.some((dependent) => isKubernetes(dependent) && hasFunctions(dependent.filters)),
    matchers: dependents.some(({ matcher }) => matcher !== undefined),
  };
  return [
    ...(builtins.size > 0 || inbound.length > 0
      ? [named(runtimeModule, [...builtins, ...(inbound.length > 0 ? ["createInbound"] : [])].sort())]
      : []),
    named(codegenModule, ["defineWorkflow", ...(isUntyped ? ["untypedResource"] : [])]),
    ...Object.entries(functions).flatMap(([file, isUsed]) => (isUsed ? [namespace(`${user}/${file}.js`, file)] : [])),
    ...dependents
      .filter(hasFile)
      .map((dependent) =>
        namespace(`${user}/dependents/${dependentNamesOf(dependent).file}.js`, moduleNameOf(dependent)),
      ),
    ...resources
      .filter((resource) => resource.isUntyped !== true)
      .map((resource) => nameOrThrow(names.resources, resource))
      .map(({ className, localName, module }) => ({
        ...named(`../${module}.js`, []),
        namedImports: [{ name: className, ...(className === localName ? {} : { alias: localName }) }],
      })),
    ...(importedTypes.size > 0 ? [{ ...named("./types.js", [...importedTypes]), isTypeOnly: true }] : []),
  ];
}

/** Returns the kinds that the wiring of a workflow names. */
function writtenResources({ primary, dependents, removed = [] }: ControllerModel): ResourceModel[] {
  return [...new Set([primary, ...dependents.flatMap(kindsOf), ...removed.map(({ resource }) => resource)])];
}

function named(moduleSpecifier: string, namedImports: string[]): ImportDeclarationStructure {
  return { kind: StructureKind.ImportDeclaration, moduleSpecifier, namedImports };
}

function namespace(moduleSpecifier: string, namespaceImport: string): ImportDeclarationStructure {
  return { kind: StructureKind.ImportDeclaration, moduleSpecifier, namespaceImport };
}
