import {
  type BuiltinModel,
  CAPABILITIES,
  type CacheModel,
  type ConditionModel,
  type ConditionName,
  type ControllerModel,
  type DependentModel,
  type EventSourceModel,
  type ExpressionModel,
  type ExternalDependentModel,
  type FunctionModel,
  type InformerModel,
  type KubernetesDependentModel,
  type MappingModel,
  type NamePartModel,
  type ReferenceModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
  kindsOf,
} from "../../model/project-model.js";
import {
  type ControllerNames,
  type ResourceName,
  classNameOf,
  dependentNamesOf,
  importClasses,
  inputNameOf,
  pascalCase,
  resourceDoc,
  sourceNamesOf,
  specifierOf,
  untypedDoc,
  untypedValues,
} from "../names.js";
import { type OutputFile, generatedFile } from "../output-file.js";
import {
  type Doc,
  arrayDoc,
  callDoc,
  expressionField,
  field,
  fieldsOf,
  hardline,
  indent,
  intersection,
  objectDoc,
  printConstant,
  printExport,
  printExportFrom,
  printImport,
  printNamespaceImport,
  printText,
  reference,
  textField,
  typeDoc,
} from "../print.js";
import { type EventSourceValue, codegenModule, runtimeModule } from "../runtime-symbols.js";
import {
  type ConditionTypeNames,
  builtinDoc,
  builtinValuesOf,
  conditionTypesOf,
  conditionsOf,
  filteredOf,
  filtersDoc,
  hasFunctions,
  isGuarded,
  kindsIn,
} from "./conditions.js";
import { alwaysThere, dependentTypesOf, hasFile, isFetched } from "./dependent-types.js";

/** Emits the definition of a controller: its workflow, the user's reconciler if there is one, the settings and event sources of the spec. */
export function emitController(
  controller: ControllerModel,
  names: ControllerNames,
  hasReconciler: boolean,
  inputs: readonly string[] = [],
): OutputFile {
  const { name, settings } = controller;
  const filters = filtersDoc(controller.filters, names.primary);
  const eventSources = eventSourcesDoc(controller, names);
  const options = [
    ...fieldsOf({ name }),
    textField("workflow", names.workflow),
    ...(hasReconciler ? ["reconciler"] : []),
    ...fieldsOf({ ...settings }),
    ...(inputs.length === 0 ? [] : fieldsOf({ inputs })),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(eventSources === undefined ? [] : [field("eventSources", eventSources)]),
    ...indexesOf(controller),
  ];
  const runtimeValues = runtimeValuesOf(controller);
  const resources = importedResources(controller);
  const imports = [
    ...(runtimeValues.length > 0 ? [printImport(runtimeValues, runtimeModule)] : []),
    printImport(["defineController", ...untypedValues(resources)], codegenModule),
    printImport(["ControllerDefinition"], codegenModule, true),
    ...userImports(controller, names),
    ...(hasReconciler ? [printImport(["reconciler"], `../../${names.folder}/reconciler.js`)] : []),
    ...importClasses(resources, names),
    ...typeImport(controller, names, resources),
    printImport([names.workflow], "./workflow.js"),
  ];
  const definition: Doc = ["defineController(", objectDoc(options, true), ")"];
  return generatedFile(`src/generated/${names.folder}/controller.ts`, [
    imports.join("\n"),
    ...printInboundSources(controller, names),
    `/** The controller of ${names.primary} objects. */\n${printConstant(names.controller, definition, "ControllerDefinition")}`,
  ]);
}

function indexesOf({ indexes }: ControllerModel): Doc[] {
  if (indexes === undefined) return [];
  return [
    field("indexes", objectDoc(Object.entries(indexes).map(([name, own]) => textField(name, `indexes.${own.name}`)))),
  ];
}

function userImports({ eventSources, filters, indexes }: ControllerModel, { folder }: ControllerNames): string[] {
  const named = eventSources.filter(needsFunctions);
  const usesFilters =
    hasFunctions(filters) || eventSources.some((source) => source.kind === "informer" && hasFunctions(source.filters));
  return [
    ...named.map((source) => {
      const { module, file } = sourceNamesOf(source);
      const path = `../../${folder}/event-sources/${file}.js`;
      return source.kind === "informer"
        ? printNamespaceImport(module, path)
        : printImport([{ name: "source", alias: module }], path);
    }),
    ...(usesFilters ? [printNamespaceImport("filters", `../../${folder}/filters.js`)] : []),
    ...(indexes === undefined ? [] : [printNamespaceImport("indexes", `../../${folder}/indexes.js`)]),
  ];
}

// The classes are values here: mappers need that of the primary, and watches those of event sources.
function importedResources({ eventSources, primary }: ControllerModel): ReadonlySet<ResourceModel> {
  const informers = eventSources.filter((source) => source.kind === "informer");
  return new Set([
    ...(informers.some(({ mapping }) => usesMapper(mapping)) ? [primary] : []),
    ...informers.map(({ resource }) => resource),
    ...informers.flatMap(({ activationCondition: activation }) =>
      activation === undefined ? [] : kindsIn(activation),
    ),
  ]);
}

/** Returns the import of the types that expressions and event sources name, except for imported classes. */
function typeImport(
  controller: ControllerModel,
  names: ControllerNames,
  imported: ReadonlySet<ResourceModel>,
): string[] {
  const filtered = filteredOf(controller, names).filter(
    ({ path, filters }) => !path.startsWith("dependents.") && Object.values(filters).some(namesObjects),
  );
  const types = new Set([
    ...filtered.map(({ objectType }) => objectType),
    ...controller.eventSources.flatMap((source) => (source.kind === "inbound" ? [sourceNamesOf(source).resource] : [])),
  ]);
  if (imported.has(controller.primary)) types.delete(names.primary);
  return types.size > 0 ? [printImport([...types].sort(), "./types.js", true)] : [];
}

function namesObjects(filter: ExpressionModel | FunctionModel): boolean {
  return filter.kind === "when" && filter.names.length > 0;
}

/** Emits the index of all that is generated: the controllers, the classes, and what describes the kinds that have none. */
export function emitIndex(
  controllers: readonly ControllerNames[],
  resources: ReadonlyMap<ResourceModel, ResourceName>,
  untyped: readonly ResourceModel[] = [],
): OutputFile {
  const byModule = new Map<string, ResourceName[]>();
  for (const resource of [...resources.values()].sort(byExportName)) {
    const specifier = specifierOf(resource, "./");
    byModule.set(specifier, [...(byModule.get(specifier) ?? []), resource]);
  }
  return generatedFile("src/generated/index.ts", [
    ...(controllers.length > 0 ? controllerSections(controllers, untypedValues(untyped)) : []),
    ["// Resources", ...[...byModule].flatMap(([specifier, names]) => exportsFrom(specifier, names))].join("\n"),
    ...untypedSections(untyped, resources),
  ]);
}

// A kind that a spec describes by its name has no class, and must not change the name of one.
function untypedSections(
  untyped: readonly ResourceModel[],
  resources: ReadonlyMap<ResourceModel, ResourceName>,
): string[] {
  const taken = new Set([...resources.values()].flatMap(({ exportName }) => [exportName, inputNameOf(exportName)]));
  return untyped.map((resource) => {
    const { group, version, kind } = resource;
    const own = classNameOf(kind);
    const inGroup = pascalCase(group || "core") + own;
    const names = [own, inGroup, inGroup + pascalCase(version)];
    const name = names.find((each) => !taken.has(each)) ?? `${names[2]}${taken.size}`;
    taken.add(name);
    return `/** ${kind}, which the spec describes by its name. */\n${printConstant(name, untypedDoc(resource))}`;
  });
}

function byExportName(left: ResourceName, right: ResourceName): number {
  return left.exportName < right.exportName ? -1 : 1;
}

function exportsFrom(specifier: string, resources: readonly ResourceName[]): string[] {
  const classes = resources.map(({ className, exportName }) => ({ name: className, alias: exportName }));
  const inputs = classes.map(({ name, alias }) => ({ name: inputNameOf(name), alias: inputNameOf(alias) }));
  return [printExportFrom(classes, specifier), printExportFrom(inputs, specifier, true)];
}

function controllerSections(controllers: readonly ControllerNames[], values: readonly string[]): string[] {
  const names = controllers.map(({ controller }) => controller);
  const imports = [
    ...(values.length > 0 ? [printImport([...values], codegenModule)] : []),
    printImport(["ControllerDefinition"], codegenModule, true),
    ...controllers.map(({ controller, folder }) => printImport([controller], `./${folder}/controller.js`)),
  ];
  return [
    imports.join("\n"),
    `// Controllers\n${printExport(names)}`,
    `/** All controllers of the project. */\n${printConstant("controllers", arrayDoc(names), "readonly ControllerDefinition[]")}`,
  ];
}

type RuntimeValue = EventSourceValue | ReturnType<typeof builtinValuesOf>[number];

/** The mappers of the runtime; without one, it asks `primaryToSecondary`. */
const MAPPERS = { ownerReference: "byOwnerReference", label: "byLabel", annotation: "byAnnotation" } as const;

const FACTORIES = {
  informer: "informerSource",
  poll: "pollingSource",
  perPrimaryPoll: "perPrimaryPollingSource",
  inbound: "cachingInboundSource",
} as const;

/** Returns what the event sources of a controller need of the runtime. */
function runtimeValuesOf({ eventSources }: ControllerModel): RuntimeValue[] {
  const used = eventSources.flatMap((source): RuntimeValue[] => [
    FACTORIES[source.kind],
    ...(source.kind === "informer" && usesMapper(source.mapping) ? [MAPPERS[source.mapping.kind]] : []),
    ...(source.kind === "informer" && source.activationCondition !== undefined
      ? builtinValuesOf(source.activationCondition)
      : []),
  ]);
  return [...new Set(used)].sort();
}

/** Tells whether an event source needs functions of the user's. */
export function needsFunctions(source: EventSourceModel): boolean {
  return source.kind !== "informer" || source.mapping.kind === "function" || source.primaryToSecondary !== undefined;
}

/** Prints the `eventSources` of a controller; undefined if it has none. */
function eventSourcesDoc({ eventSources }: ControllerModel, names: ControllerNames): Doc | undefined {
  if (eventSources.length === 0) return undefined;
  const sources = eventSources.map((source) =>
    source.kind === "inbound" ? sourceNamesOf(source).source : sourceDoc(source, names),
  );
  return ["() => ", arrayDoc(sources)];
}

/** Prints the event sources to which the user's code pushes: it has to reach them. */
function printInboundSources({ eventSources }: ControllerModel, names: ControllerNames): string[] {
  return eventSources
    .filter(({ kind }) => kind === "inbound")
    .map((source) => {
      const doc = `/** The event source "${source.name}": what it is given is reconciled. */`;
      return `${doc}\n${printConstant(sourceNamesOf(source).source, sourceDoc(source, names))}`;
    });
}

function sourceDoc(source: EventSourceModel, names: ControllerNames): Doc {
  const options = source.kind === "informer" ? informerOptions(source, names) : externalSourceOptions(source);
  const typeArgument = source.kind !== "inbound" ? "" : `<${sourceNamesOf(source).resource}>`;
  return callDoc(`${FACTORIES[source.kind]}${typeArgument}`, [], [...fieldsOf({ name: source.name }), ...options]);
}

function informerOptions(source: InformerModel, names: ControllerNames): Doc[] {
  const { namespaces, labelSelector, fieldSelector, maxCachedObjects, activationCondition: activation } = source;
  const { module, resource } = sourceNamesOf(source);
  const filters = filtersDoc(source.filters, resource);
  return [
    field("resource", resourceDoc(source.resource, names)),
    ...mapperOf(source, names),
    ...(source.primaryToSecondary === undefined
      ? []
      : [textField("primaryToSecondary", `${module}.${source.primaryToSecondary.name}`)]),
    ...fieldsOf({ namespaces, labelSelector, fieldSelector, cache: cacheValueOf(source.cache), maxCachedObjects }),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(activation === undefined ? [] : [field("activationCondition", builtinDoc(activation, names))]),
  ];
}

function mapperOf(source: InformerModel, { primary }: ControllerNames): Doc[] {
  const { mapping } = source;
  if (mapping.kind === "function") return [textField("mapper", `${sourceNamesOf(source).module}.${mapping.name}`)];
  if (!usesMapper(mapping)) return [];
  const keys = mapping.kind === "ownerReference" ? undefined : fieldsOf({ ...mapping.keys });
  return [field("mapper", callDoc(MAPPERS[mapping.kind], [primary], keys))];
}

/** Tells whether a mapping is one of the runtime's, which have to know the kind of the primary. */
function usesMapper(mapping: MappingModel): mapping is Extract<MappingModel, { kind: keyof typeof MAPPERS }> {
  return Object.hasOwn(MAPPERS, mapping.kind);
}

function cacheValueOf(cache: CacheModel): unknown {
  if (cache.kind === "full") return undefined;
  return cache.kind === "metadata" ? "metadata" : { paths: cache.paths };
}

function externalSourceOptions(source: Exclude<EventSourceModel, InformerModel>): Doc[] {
  const { module } = sourceNamesOf(source);
  const idOf = textField("idOf", `${module}.idOf`);
  if (source.kind === "inbound") return [idOf];
  const { intervalMs, fetchTimeoutMs } = source;
  return [...fieldsOf({ intervalMs, fetchTimeoutMs }), textField("fetch", `${module}.fetch`), idOf];
}

/** Emits the wiring of a workflow: one chain that declares, in an order in which the dependents can be created. */
export function emitWorkflow(controller: ControllerModel, names: ControllerNames): OutputFile {
  const links = controller.dependents.map((dependent) => linkDoc(dependent, controller, names));
  const chain = links.length > 1 ? indent(links.map((link) => [hardline, link])) : links;
  const workflow = printConstant(names.workflow, [startDoc(controller, names), chain]);
  return generatedFile(`src/generated/${names.folder}/workflow.ts`, [
    importsOf(controller, names).join("\n"),
    ...inboundOf(controller).map((dependent) => printInbound(dependent)),
    `/** What ${names.primary} objects depend on. */\n${workflow}`,
  ]);
}

// The event sources and the items of bulk dependents are there in whatever is called with them.
function startDoc(controller: ControllerModel, names: ControllerNames): Doc {
  const { workflow = {}, removed = [] } = controller;
  const always = alwaysThere(controller, names);
  const types = always.length === 0 ? [] : [names.primary, intersection(...always)];
  const old = removed.map(({ name, resource, ...stated }) =>
    field(name, objectDoc([field("resource", resourceDoc(resource, names)), ...fieldsOf({ ...stated })])),
  );
  const options = [...fieldsOf({ ...workflow }), ...(old.length === 0 ? [] : [field("removed", objectDoc(old))])];
  const start = typeDoc(reference("defineWorkflow", ...types));
  return callDoc(start, [names.primary], options.length === 0 ? undefined : options);
}

function linkDoc(dependent: DependentModel, controller: ControllerModel, names: ControllerNames): Doc {
  const method = !isKubernetes(dependent) ? ".external" : dependent.ref === undefined ? ".dependent" : ".reference";
  const desired = desiredField(dependent, controller);
  const options = isKubernetes(dependent)
    ? objectOptions(dependent, names, desired)
    : externalDependentOptions(dependent, names, desired);
  return [`${method}(${printText(dependent.name)}, `, objectDoc(options, true), ")"];
}

// What the conditions guarantee of the primary is stated where the function is used.
function desiredField(dependent: DependentModel, controller: ControllerModel): Doc[] {
  if (isReadOnly(dependent)) return [];
  const own = `${moduleNameOf(dependent)}.desired`;
  return [textField("desired", isGuarded(dependent, controller) ? `guarded(${own})` : own)];
}

function objectOptions(dependent: KubernetesDependentModel, names: ControllerNames, desired: readonly Doc[]): Doc[] {
  const { ref, namespace, cluster, eventSource, labelSelector, fieldSelector, resource } = dependent;
  const { existing, heldForCleanup, onImmutable, serverSideApply, fieldManager, released } = dependent;
  const filters = filtersDoc(dependent.filters, dependentTypesOf(dependent, names).live);
  const usual = cluster === undefined ? "garbageCollected" : "ordered";
  const deletion = dependent.deletion === usual ? undefined : dependent.deletion;
  const placed = { namespace, cluster, eventSource, labelSelector, fieldSelector, deletion };
  const mode = ref === undefined ? dependent.mode : undefined;
  const stated = {
    ...statedOf(dependent),
    ...{ mode, ...placed, existing, heldForCleanup, onImmutable, serverSideApply, fieldManager, released },
  };
  return [
    field("resource", resourceDoc(resource, names)),
    ...(ref === undefined ? [] : [referenceField(ref)]),
    ...desired,
    ...fieldsOf(stated),
    ...(dependent.again === undefined ? [] : [primaryField("again", dependent.again)]),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(dependent.matcher === undefined ? [] : [textField("matcher", `matchers.${dependent.matcher}`)]),
    ...operationsOf(dependent),
    ...conditionFields(dependent, names),
  ];
}

// Of an expression that sees nothing but the primary.
function primaryField(name: string, { names, expression }: ExpressionModel): Doc {
  return expressionField(name, names.length === 0 ? "()" : "({ primary })", expression);
}

function referenceField({ name, namespace }: ReferenceModel): Doc {
  const partField = (part: string, stated: NamePartModel) => {
    if (stated.kind === "constant") return textField(part, printText(stated.text));
    return primaryField(part, stated);
  };
  const parts = [partField("name", name), ...(namespace === undefined ? [] : [partField("namespace", namespace)])];
  return field(
    "ref",
    objectDoc(
      parts,
      [name, namespace].some((part) => part?.kind === "when"),
    ),
  );
}

function operationsOf(dependent: KubernetesDependentModel): Doc[] {
  const { operations = {} } = dependent;
  const parts = CAPABILITIES.filter((each) => operations[each] !== undefined).map((each) => {
    const own = `${moduleNameOf(dependent)}.operations.${each}`;
    return textField(each, operations[each] === "own" ? own : "false");
  });
  return parts.length === 0 ? [] : [field("operations", objectDoc(parts))];
}

function externalDependentOptions(
  dependent: ExternalDependentModel,
  names: ControllerNames,
  desired: readonly Doc[],
): Doc[] {
  const { source, state, keptType, capabilities, isSelected, onDeleteFailure, creationGraceMs } = dependent.external;
  const module = moduleNameOf(dependent);
  const facts = fieldsOf({ ...source, isFetched: undefined });
  if (isFetched(dependent)) facts.push(textField("fetch", `${module}.fetch`));
  if (source.kind === "inbound") facts.push(textField("channel", dependentNamesOf(dependent).source));
  return [
    field("source", objectDoc(facts)),
    textField("idOf", `${module}.idOf`),
    ...(isSelected === true ? [textField("isOwn", `${module}.isOwn`)] : []),
    ...(keptType === undefined ? [] : [textField("stateOf", `${module}.stateOf`)]),
    ...desired,
    ...capabilities.map((capability) => textField(capability, `${module}.${capability}`)),
    ...stateOf(state, names),
    ...fieldsOf({ onDeleteFailure, creationGraceMs, ...statedOf(dependent) }),
    ...(dependent.matcher === undefined ? [] : [textField("matches", `matchers.${dependent.matcher}`)]),
    ...conditionFields(dependent, names),
  ];
}

function stateOf(state: ExternalDependentModel["external"]["state"], names: ControllerNames): Doc[] {
  if (state?.kind !== "resource") return fieldsOf({ state });
  const { resource, ...stated } = state;
  const parts = [...fieldsOf({ ...stated }), field("resource", resourceDoc(resource, names))];
  return [field("state", objectDoc(parts))];
}

function inboundOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((each) => (!isKubernetes(each) && each.external.source.kind === "inbound" ? [each] : []));
}

// The user's code has to reach it, wherever the operator is made.
function printInbound(dependent: ExternalDependentModel): string {
  const { source, resource } = dependentNamesOf(dependent);
  const doc = `/** Takes what there is of "${dependent.name}" outside of Kubernetes, from whatever brings it. */`;
  return `${doc}\n${printConstant(source, `createInbound<${resource}>()`)}`;
}

/** Returns what any dependent may state, in the words of the runtime. */
function statedOf({ movedFrom, dependsOn, itemsDependOn, bulk, timeoutMs, retry }: DependentModel) {
  return { movedFrom, dependsOn: dependsOn.length > 0 ? dependsOn : undefined, itemsDependOn, bulk, timeoutMs, retry };
}

// A name of its own, so that a dependent called "ready" or "conditions" does not clash with an import.
function moduleNameOf({ name }: { readonly name: string }): string {
  return `${name}Dependent`;
}

function conditionFields(dependent: DependentModel, controllerNames: ControllerNames): Doc[] {
  return conditionsOf(dependent).map(([name, condition]) =>
    condition.kind === "builtin"
      ? field(name, builtinDoc(condition, controllerNames))
      : conditionField(name, condition, conditionTypesOf(dependent, name)),
  );
}

function conditionField(
  name: ConditionName,
  condition: Exclude<ConditionModel, BuiltinModel>,
  types: ConditionTypeNames,
): Doc {
  if (condition.kind === "function") return textField(name, `conditions.${condition.name}`);
  const { names, expression } = condition;
  if (names.length === 0) return expressionField(name, "()", expression);
  // The chain knows the dependents before this one; the named type knows all of them.
  const type = names.includes("secondary") ? `: ${types.arguments}` : "";
  return expressionField(name, `({ ${names.join(", ")} }${type})`, expression);
}

function importsOf(controller: ControllerModel, names: ControllerNames): string[] {
  const { dependents } = controller;
  const all = dependents.flatMap((dependent) =>
    conditionsOf(dependent).map(([name, condition]) => ({
      condition,
      type: conditionTypesOf(dependent, name).arguments,
    })),
  );
  const builtins = new Set(
    all.flatMap(({ condition }) => (condition.kind === "builtin" ? builtinValuesOf(condition) : [])),
  );
  const typed = all.filter(({ condition }) => condition.kind === "when" && condition.names.includes("secondary"));
  const inbound = inboundOf(controller).map(dependentNamesOf);
  const importedTypes = new Set([
    ...inbound.map(({ resource }) => resource),
    ...typed.map(({ type }) => type),
    ...alwaysThere(controller, names),
  ]);
  const user = `../../${names.folder}`;
  const resources = writtenResources(controller);
  const functions = {
    conditions: all.some(({ condition }) => condition.kind === "function"),
    filters: dependents.some((dependent) => isKubernetes(dependent) && hasFunctions(dependent.filters)),
    matchers: dependents.some(({ matcher }) => matcher !== undefined),
  };
  const isAnyGuarded = dependents.some((each) => !isReadOnly(each) && isGuarded(each, controller));
  const values = [...builtins, ...(inbound.length > 0 ? ["createInbound"] : [])].sort();
  return [
    ...(values.length > 0 ? [printImport(values, runtimeModule)] : []),
    printImport(["defineWorkflow", ...(isAnyGuarded ? ["guarded"] : []), ...untypedValues(resources)], codegenModule),
    ...Object.entries(functions).flatMap(([file, isUsed]) =>
      isUsed ? [printNamespaceImport(file, `${user}/${file}.js`)] : [],
    ),
    ...dependents.filter(hasFile).map((dependent) => {
      const module = `${user}/dependents/${dependentNamesOf(dependent).file}.js`;
      const alias = moduleNameOf(dependent);
      return isKubernetes(dependent)
        ? printNamespaceImport(alias, module)
        : printImport([{ name: "external", alias }], module);
    }),
    ...importClasses(resources, names),
    ...(importedTypes.size > 0 ? [printImport([...importedTypes], "./types.js", true)] : []),
  ];
}

/** Returns the kinds that the wiring of a workflow names. */
function writtenResources({ primary, dependents, removed = [] }: ControllerModel): ResourceModel[] {
  const asked = dependents.flatMap((each) =>
    conditionsOf(each).flatMap(([, condition]) => (condition.kind === "builtin" ? kindsIn(condition) : [])),
  );
  return [...new Set([primary, ...dependents.flatMap(kindsOf), ...removed.map(({ resource }) => resource), ...asked])];
}
