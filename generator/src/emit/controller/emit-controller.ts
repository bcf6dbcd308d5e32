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
  type InformerModel,
  type KubernetesDependentModel,
  type MappingModel,
  type NamePartModel,
  type ReferenceModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
} from "../../model/project-model.js";
import {
  CLASS_PLACE,
  type ControllerNames,
  type ResourceName,
  classNameOf,
  classSymbol,
  dependentNamesOf,
  inputNameOf,
  pascalCase,
  resourceDoc,
  sourceNamesOf,
  specifierOf,
  untypedDoc,
} from "../names.js";
import { type OutputFile, generatedFile } from "../output-file.js";
import {
  type Doc,
  type ImportSymbol,
  type Printed,
  arrayDoc,
  callDoc,
  expressionField,
  field,
  fieldsOf,
  hardline,
  indent,
  intersection,
  joinLines,
  objectDoc,
  printConstant,
  printExport,
  printExportFrom,
  printText,
  readonlyArrayOf,
  reference,
  symbolDoc,
  textField,
  typeDoc,
  typeFrom,
  valueFrom,
} from "../print.js";
import { codegenValues, codegenTypes, declarationValues } from "../runtime-symbols.js";
import {
  type ConditionTypeNames,
  builtinDoc,
  conditionTypesOf,
  conditionsOf,
  filtersDoc,
  isGuarded,
} from "./conditions.js";
import { alwaysThere, dependentTypesOf, isFetched } from "./dependent-types.js";

/** Emits the definition of a controller: its workflow, the user's reconciler if there is one, and the settings and event sources of the spec. */
export function emitController(
  controller: ControllerModel,
  names: ControllerNames,
  hasReconciler: boolean,
  inputs: readonly string[] = [],
): OutputFile {
  const { name, settings } = controller;
  const filters = filtersDoc(controller.filters, ownType(names.primary), names);
  const eventSources = eventSourcesDoc(controller, names);
  const reconciler = valueFrom(`../../${names.folder}/reconciler.js`, "reconciler", "reconciler", PLACES.reconciler);
  const options = [
    ...fieldsOf({ name }),
    textField("workflow", symbolDoc(valueFrom("./workflow.js", names.workflow, names.workflow, PLACES.workflow))),
    ...(hasReconciler ? [symbolDoc(reconciler)] : []),
    ...fieldsOf({ ...settings }),
    ...(inputs.length === 0 ? [] : fieldsOf({ inputs })),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(eventSources === undefined ? [] : [field("eventSources", eventSources)]),
    ...indexesOf(controller, names),
  ];
  const definition: Doc = [symbolDoc(codegenValues.defineController), "(", objectDoc(options, true), ")"];
  const constant = printConstant(names.controller, definition, codegenTypes.ControllerDefinition);
  const sections = [
    ...printInboundSources(controller, names),
    joinLines([`/** The controller of ${names.primary} objects. */`, constant]),
  ];
  return generatedFile(`src/generated/${names.folder}/controller.ts`, sections, {
    sortsNames: (from) => from === TYPES,
  });
}

/** Module of the generated types of the controller. */
const TYPES = "./types.js";

/** Order of the imports in the wiring of a controller: user code before the classes of kinds, generated code after them. */
const PLACES = {
  eventSources: -1000,
  conditions: -51,
  matchers: -49,
  indexes: -40,
  reconciler: -30,
  primary: CLASS_PLACE - 1,
  removed: CLASS_PLACE + 1,
  types: CLASS_PLACE + 10,
  alwaysThere: CLASS_PLACE + 11,
  workflow: CLASS_PLACE + 20,
} as const;

/** Returns the import of a type of the controller. */
function ownType(name: string, place: number = PLACES.types): ImportSymbol {
  return typeFrom(TYPES, name, name, place);
}

/** Prints a member of an imported module of user code. */
function memberDocOf(module: ImportSymbol, ...path: readonly string[]): Doc {
  return [symbolDoc(module), ...path.map((name) => `.${name}`)];
}

function indexesOf({ indexes }: ControllerModel, { folder }: ControllerNames): Doc[] {
  if (indexes === undefined) return [];
  const module = valueFrom(`../../${folder}/indexes.js`, "*", "indexes", PLACES.indexes);
  const fields = Object.entries(indexes).map(([name, own]) => textField(name, memberDocOf(module, own.name)));
  return [field("indexes", objectDoc(fields))];
}

/** Returns the import with the functions of an event source: the module of the user's file, or its constant `source`. */
function sourceModule(source: EventSourceModel, { eventSources }: ControllerModel, folder: string): ImportSymbol {
  const { module, file } = sourceNamesOf(source);
  const name = source.kind === "informer" ? "*" : "source";
  const place = PLACES.eventSources + eventSources.indexOf(source);
  return valueFrom(`../../${folder}/event-sources/${file}.js`, name, module, place);
}

/** Emits the index of the generated code: controllers, classes of kinds, and definitions of untyped kinds. */
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
    ...(controllers.length > 0 ? controllerSections(controllers) : []),
    ["// Resources", ...[...byModule].flatMap(([specifier, names]) => exportsFrom(specifier, names))].join("\n"),
    ...untypedSections(untyped, resources),
  ]);
}

// An untyped kind has no class. It must not change the exported name of a class.
function untypedSections(
  untyped: readonly ResourceModel[],
  resources: ReadonlyMap<ResourceModel, ResourceName>,
): Printed[] {
  const taken = new Set([...resources.values()].flatMap(({ exportName }) => [exportName, inputNameOf(exportName)]));
  return untyped.map((resource) => {
    const { group, version, kind } = resource;
    const own = classNameOf(kind);
    const inGroup = pascalCase(group || "core") + own;
    const names = [own, inGroup, inGroup + pascalCase(version)];
    const name = names.find((each) => !taken.has(each)) ?? `${names[2]}${taken.size}`;
    taken.add(name);
    const doc = `/** ${kind}, which the spec describes without a schema. */`;
    return joinLines([doc, printConstant(name, untypedDoc(resource))]);
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

function controllerSections(controllers: readonly ControllerNames[]): Printed[] {
  const symbols = controllers.map(({ controller, folder }) => valueFrom(`./${folder}/controller.js`, controller));
  const type = readonlyArrayOf(codegenTypes.ControllerDefinition);
  const all = printConstant("controllers", arrayDoc(symbols.map(symbolDoc)), type);
  return [
    joinLines(["// Controllers", printExport(symbols)]),
    joinLines(["/** All controllers of the project. */", all]),
  ];
}

/** Mappers of the runtime by kind of mapping. Other mappings use `primaryToSecondary` or a user function. */
const MAPPERS = { ownerReference: "byOwnerReference", label: "byLabel", annotation: "byAnnotation" } as const;

const FACTORIES = {
  informer: "informerSource",
  poll: "pollingSource",
  perPrimaryPoll: "perPrimaryPollingSource",
  inbound: "cachingInboundSource",
} as const;

/** Returns whether an event source requires user functions. */
export function needsFunctions(source: EventSourceModel): boolean {
  return source.kind !== "informer" || source.mapping.kind === "function" || source.primaryToSecondary !== undefined;
}

/** Prints the `eventSources` of a controller; undefined if it has none. */
function eventSourcesDoc(controller: ControllerModel, names: ControllerNames): Doc | undefined {
  const { eventSources } = controller;
  if (eventSources.length === 0) return undefined;
  const sources = eventSources.map((source) =>
    source.kind === "inbound" ? sourceNamesOf(source).source : sourceDoc(source, controller, names),
  );
  return ["() => ", arrayDoc(sources)];
}

/** Prints inbound event sources as exported constants, because user code pushes resources to them. */
function printInboundSources(controller: ControllerModel, names: ControllerNames): Printed[] {
  return controller.eventSources
    .filter(({ kind }) => kind === "inbound")
    .map((source) => {
      const doc = `/** The event source "${source.name}". Push resources to it to reconcile their primaries. */`;
      return joinLines([doc, printConstant(sourceNamesOf(source).source, sourceDoc(source, controller, names))]);
    });
}

function sourceDoc(source: EventSourceModel, controller: ControllerModel, names: ControllerNames): Doc {
  const module = sourceModule(source, controller, names.folder);
  const options =
    source.kind === "informer" ? informerOptions(source, module, names) : externalSourceOptions(source, module);
  const resource = symbolDoc(ownType(sourceNamesOf(source).resource));
  const factory = [
    symbolDoc(declarationValues[FACTORIES[source.kind]]),
    ...(source.kind === "inbound" ? ["<", resource, ">"] : []),
  ];
  return callDoc(factory, [], [...fieldsOf({ name: source.name }), ...options]);
}

function informerOptions(source: InformerModel, module: ImportSymbol, names: ControllerNames): Doc[] {
  const { namespaces, labelSelector, fieldSelector, maxCachedObjects, activationCondition: activation } = source;
  const filters = filtersDoc(source.filters, ownType(sourceNamesOf(source).resource), names);
  return [
    field("resource", resourceDoc(source.resource, names)),
    ...mapperOf(source, module, names),
    ...(source.primaryToSecondary === undefined
      ? []
      : [textField("primaryToSecondary", memberDocOf(module, source.primaryToSecondary.name))]),
    ...fieldsOf({ namespaces, labelSelector, fieldSelector, cache: cacheValueOf(source.cache), maxCachedObjects }),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(activation === undefined ? [] : [field("activationCondition", builtinDoc(activation, names))]),
  ];
}

function mapperOf({ mapping }: InformerModel, module: ImportSymbol, names: ControllerNames): Doc[] {
  if (mapping.kind === "function") return [textField("mapper", memberDocOf(module, mapping.name))];
  if (!usesMapper(mapping)) return [];
  const keys = mapping.kind === "ownerReference" ? undefined : fieldsOf({ ...mapping.keys });
  const mapper = symbolDoc(declarationValues[MAPPERS[mapping.kind]]);
  return [field("mapper", callDoc(mapper, [symbolDoc(primaryClass(names, PLACES.primary))], keys))];
}

/** Returns whether a mapping uses a mapper of the runtime, which takes the kind of the primary. */
function usesMapper(mapping: MappingModel): mapping is Extract<MappingModel, { kind: keyof typeof MAPPERS }> {
  return Object.hasOwn(MAPPERS, mapping.kind);
}

function cacheValueOf(cache: CacheModel): unknown {
  if (cache.kind === "full") return undefined;
  return cache.kind === "metadata" ? "metadata" : { paths: cache.paths };
}

function externalSourceOptions(source: Exclude<EventSourceModel, InformerModel>, module: ImportSymbol): Doc[] {
  const idOf = textField("idOf", memberDocOf(module, "idOf"));
  if (source.kind === "inbound") return [idOf];
  const { intervalMs, fetchTimeoutMs } = source;
  return [...fieldsOf({ intervalMs, fetchTimeoutMs }), textField("fetch", memberDocOf(module, "fetch")), idOf];
}

/** Emits the wiring of a workflow: a chain of declarations in topological order. */
export function emitWorkflow(controller: ControllerModel, names: ControllerNames): OutputFile {
  const links = controller.dependents.map((dependent) => linkDoc(dependent, controller, names));
  const chain = links.length > 1 ? indent(links.map((link) => [hardline, link])) : links;
  const workflow = printConstant(names.workflow, [startDoc(controller, names), chain]);
  return generatedFile(`src/generated/${names.folder}/workflow.ts`, [
    ...inboundOf(controller).map((dependent) => printInbound(dependent)),
    joinLines([`/** The workflow of ${names.primary} objects. */`, workflow]),
  ]);
}

// Event sources and items of bulk dependents are present in the arguments of every function.
function startDoc(controller: ControllerModel, names: ControllerNames): Doc {
  const { workflow = {}, removed = [] } = controller;
  const always = alwaysThere(controller, names).map((name) => ownType(name, PLACES.alwaysThere));
  const primary = primaryClass(names);
  const types = always.length === 0 ? [] : [primary, intersection(...always)];
  const old = removed.map(({ name, resource, ...stated }) => {
    const kind = field("resource", resourceDoc(resource, names, PLACES.removed));
    return field(name, objectDoc([kind, ...fieldsOf({ ...stated })]));
  });
  const options = [...fieldsOf({ ...workflow }), ...(old.length === 0 ? [] : [field("removed", objectDoc(old))])];
  const start = typeDoc(reference(codegenValues.defineWorkflow, ...types));
  return callDoc(start, [symbolDoc(primary)], options.length === 0 ? undefined : options);
}

/** Returns the import of the primary's class. */
function primaryClass({ primary, resources }: ControllerNames, place: number = CLASS_PLACE): ImportSymbol {
  const name = [...resources.values()].find(({ localName }) => localName === primary);
  if (name === undefined) throw new Error(`the primary ${primary} is no resource of its controller`);
  return classSymbol(name, place);
}

function linkDoc(dependent: DependentModel, controller: ControllerModel, names: ControllerNames): Doc {
  const method = !isKubernetes(dependent) ? ".external" : dependent.ref === undefined ? ".dependent" : ".reference";
  const desired = desiredField(dependent, controller, names);
  const options = isKubernetes(dependent)
    ? objectOptions(dependent, names, desired)
    : externalDependentOptions(dependent, names, desired);
  return [`${method}(${printText(dependent.name)}, `, objectDoc(options, true), ")"];
}

// `guarded` accepts a function with a narrowed primary type, which the conditions guarantee.
function desiredField(dependent: DependentModel, controller: ControllerModel, { folder }: ControllerNames): Doc[] {
  if (isReadOnly(dependent)) return [];
  const own = memberDocOf(moduleOf(dependent, folder), "desired");
  const guarded = [symbolDoc(codegenValues.guarded), "(", own, ")"];
  return [textField("desired", isGuarded(dependent, controller) ? guarded : own)];
}

function objectOptions(dependent: KubernetesDependentModel, names: ControllerNames, desired: readonly Doc[]): Doc[] {
  const { ref, namespace, cluster, eventSource, labelSelector, fieldSelector, resource } = dependent;
  const { existing, heldForCleanup, onImmutable, serverSideApply, fieldManager, released } = dependent;
  const filters = filtersDoc(dependent.filters, ownType(dependentTypesOf(dependent, names).live), names);
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
    ...matcherField("matcher", dependent, names),
    ...operationsOf(dependent, names),
    ...conditionFields(dependent, names),
  ];
}

// Prints an expression whose only argument is the primary.
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

function matcherField(name: string, { matcher }: DependentModel, { folder }: ControllerNames): Doc[] {
  if (matcher === undefined) return [];
  const module = valueFrom(`../../${folder}/matchers.js`, "*", "matchers", PLACES.matchers);
  return [textField(name, memberDocOf(module, matcher))];
}

function operationsOf(dependent: KubernetesDependentModel, { folder }: ControllerNames): Doc[] {
  const { operations = {} } = dependent;
  const parts = CAPABILITIES.filter((each) => operations[each] !== undefined).map((each) => {
    const own = memberDocOf(moduleOf(dependent, folder), "operations", each);
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
  const own = (name: string) => textField(name, memberDocOf(moduleOf(dependent, names.folder), name));
  const facts = fieldsOf({ ...source, isFetched: undefined });
  if (isFetched(dependent)) facts.push(own("fetch"));
  if (source.kind === "inbound") facts.push(textField("channel", dependentNamesOf(dependent).source));
  return [
    field("source", objectDoc(facts)),
    own("idOf"),
    ...(isSelected === true ? [own("isOwn")] : []),
    ...(keptType === undefined ? [] : [own("stateOf")]),
    ...desired,
    ...capabilities.map(own),
    ...stateOf(state, names),
    ...fieldsOf({ onDeleteFailure, creationGraceMs, ...statedOf(dependent) }),
    ...matcherField("matches", dependent, names),
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

// User code pushes resources to the channel, so it is an exported constant.
function printInbound(dependent: ExternalDependentModel): Printed {
  const { source, resource } = dependentNamesOf(dependent);
  const doc = `/** The event source of "${dependent.name}". Push its external resources to it. */`;
  const create = [symbolDoc(declarationValues.createInbound), "<", symbolDoc(ownType(resource)), ">()"];
  return joinLines([doc, printConstant(source, create)]);
}

/** Returns the options that all dependents share, under their names in the runtime. */
function statedOf({ movedFrom, dependsOn, itemsDependOn, bulk, timeoutMs, retry }: DependentModel) {
  return { movedFrom, dependsOn: dependsOn.length > 0 ? dependsOn : undefined, itemsDependOn, bulk, timeoutMs, retry };
}

// Returns the import of the user's file of a dependent. The suffix keeps a dependent called "ready" or "conditions" from clashing with another
// import.
function moduleOf(dependent: DependentModel, folder: string): ImportSymbol {
  const path = `../../${folder}/dependents/${dependentNamesOf(dependent).file}.js`;
  return valueFrom(path, isKubernetes(dependent) ? "*" : "external", `${dependent.name}Dependent`);
}

function conditionFields(dependent: DependentModel, controllerNames: ControllerNames): Doc[] {
  return conditionsOf(dependent).map(([name, condition]) =>
    condition.kind === "builtin"
      ? field(name, builtinDoc(condition, controllerNames))
      : conditionField(name, condition, { types: conditionTypesOf(dependent, name), folder: controllerNames.folder }),
  );
}

function conditionField(
  name: ConditionName,
  condition: Exclude<ConditionModel, BuiltinModel>,
  { types, folder }: { readonly types: ConditionTypeNames; readonly folder: string },
): Doc {
  if (condition.kind === "function") {
    const module = valueFrom(`../../${folder}/conditions.js`, "*", "conditions", PLACES.conditions);
    return textField(name, memberDocOf(module, condition.name));
  }
  const { names, expression } = condition;
  if (names.length === 0) return expressionField(name, "()", expression);
  // The inferred type only has the dependents declared earlier in the chain; the named type has all of them.
  const type = names.includes("secondary") ? [": ", symbolDoc(ownType(types.arguments))] : "";
  return expressionField(name, [`({ ${names.join(", ")} }`, type, ")"], expression);
}
