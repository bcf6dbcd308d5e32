import {
  type ConditionModel,
  type ControllerModel,
  type DependentModel,
  type EventSourceModel,
  type InformerModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
} from "../../model/project-model.js";
import { schemasOf } from "../../model/schema.js";
import {
  type ControllerNames,
  dependentNamesOf,
  inputNameOf,
  nameOrThrow,
  sourceNamesOf,
  specifierOf,
} from "../names.js";
import { type OutputFile, generatedFile } from "../output-file.js";
import {
  type Printed,
  type TypeNode,
  functionOf,
  intersection,
  joinLines,
  maybePromise,
  objectOf,
  printAlias,
  printExport,
  printInterface,
  printText,
  propertyNameOf,
  readonlyArrayOf,
  reference,
  typeFrom,
  union,
} from "../print.js";
import { statusInputOf } from "../resource/emit-resource.js";
import { codegenTypes } from "../runtime-symbols.js";
import { filteredOf, guardedPrimaryOf, hasOwnDeletionTypes, isAboutDeletionAlone } from "./conditions.js";
import {
  SIGNAL,
  dependentTypesOf,
  dependentsTypesOf,
  detailedConditionsOf,
  externalDependentExports,
  externalTypesOf,
  fetchAllOf,
  objectTypesOf,
  operationTypesOf,
  secondaryTypesOf,
} from "./dependent-types.js";

/** Emits the types of the user's functions: a set for each dependent, and the types of the reconciler. */
export function emitWorkflowTypes(
  controller: ControllerModel,
  names: ControllerNames,
  statusOf: (primary: ResourceModel) => StatusFacts = statusFactsOf,
): OutputFile {
  return generatedFile(`src/generated/${names.folder}/types.ts`, [
    resourceExports(controller, names),
    ...sourceTypesOf(controller, names),
    ...lookupTypesOf(controller, names),
    ...indexTypesOf(controller, names),
    ...filterTypesOf(controller, names),
    ...externalDependentExports(controller, names.folder),
    ...dependentsTypesOf(controller, names),
    ...controller.dependents.flatMap((dependent) => typesOfDependent(dependent, controller, names)),
    ...reconcilerTypesOf(controller, names, statusOf(controller.primary)),
  ]);
}

// Re-export the imported types, so that user code only imports from this file.
function resourceExports(controller: ControllerModel, { resources }: ControllerNames): Printed {
  const classes = [...resources.values()].flatMap((resource) => {
    const { className, localName } = resource;
    const from = specifierOf(resource, "../");
    return [typeFrom(from, className, localName), typeFrom(from, inputNameOf(className), inputNameOf(localName))];
  });
  const untyped = usesUntyped(controller) ? [codegenTypes.UntypedInput, codegenTypes.UntypedResource] : [];
  return printExport([...classes, ...untyped], true);
}

/** Returns whether user functions receive objects of an untyped kind. */
function usesUntyped({ dependents, eventSources }: ControllerModel): boolean {
  return [...dependents, ...eventSources].some((each) => "resource" in each && each.resource.isUntyped === true);
}

/** Returns which of the shared condition types are used. `existing` and a separate deletePostcondition have their own types. */
function usedConditionTypesOf(dependent: DependentModel) {
  const { existing: _existing, deletePostcondition, ...others } = dependent.conditions;
  const isApart = deletePostcondition === undefined || hasOwnDeletionTypes(dependent);
  return usedTypesOf([...Object.values(others), ...(isApart ? [] : [deletePostcondition])]);
}

/** Returns which of the separate types of the deletePostcondition are used. */
function usedDeletionTypesOf(dependent: DependentModel) {
  const { deletePostcondition } = dependent.conditions;
  return usedTypesOf(deletePostcondition === undefined || !hasOwnDeletionTypes(dependent) ? [] : [deletePostcondition]);
}

/** Returns which of the types of the condition `existing` are used. */
function existingTypesOf({ conditions: { existing } }: DependentModel) {
  return usedTypesOf(existing === undefined ? [] : [existing]);
}

/** Returns which types conditions use: functions use both, expressions only the arguments. */
function usedTypesOf(all: readonly ConditionModel[]) {
  const type = all.some(({ kind }) => kind === "function");
  const expression = all.some((each) => each.kind === "when" && each.names.length > 0);
  return { type, arguments: type || expression };
}

function typesOfDependent(dependent: DependentModel, controller: ControllerModel, names: ControllerNames): Printed[] {
  const { primary } = names;
  const types = dependentNamesOf(dependent);
  const { live, wanted } = dependentTypesOf(dependent, names);
  const args = reference(codegenTypes.DependentArguments, primary, types.secondary);
  const known = isAboutDeletionAlone(dependent) ? names.dependents : types.secondary;
  const deletion = usedDeletionTypesOf(dependent);
  const guarded = guardedPrimaryOf(dependent, controller, primary);
  const guard = guarded === undefined ? [] : [guarded];
  const desired = reference(codegenTypes.Desired, primary, types.secondary, wanted, ...guard);
  const used = usedConditionTypesOf(dependent);
  const existing = existingTypesOf(dependent);
  const ofExisting = [primary, types.secondary, live];
  const external = isKubernetes(dependent) ? undefined : externalTypesOf(dependent, names, desired);
  const aliases = [
    printAlias(types.arguments, args),
    ...(dependent.bulk === undefined ? [] : [printAlias(types.items, wanted)]),
    ...(isReadOnly(dependent) || external !== undefined ? [] : [printAlias(types.desired, desired)]),
    ...conditionAliases(used, [types.condition, types.conditionArguments], [primary, known, live]),
    ...conditionAliases(
      deletion,
      [types.deletionCondition, types.deletionArguments],
      [primary, names.dependents, live],
    ),
    ...(existing.arguments
      ? [printAlias(types.existingArguments, reference(codegenTypes.ExistingArguments, ...ofExisting))]
      : []),
    ...(existing.type ? [printAlias(types.existing, reference(codegenTypes.ExistingCondition, ...ofExisting))] : []),
    ...(!isKubernetes(dependent) || dependent.matcher === undefined
      ? []
      : [printAlias(types.matcher, reference(codegenTypes.DependentMatcher, live))]),
    ...(external?.aliases ?? []),
  ];
  const { declarations, alias } = secondaryTypesOf(dependent, controller, names);
  return [
    ...declarations,
    joinLines([alias, ...aliases]),
    ...(isKubernetes(dependent) ? operationTypesOf(dependent, names) : []),
    ...(external === undefined ? [] : [external.declaration]),
  ];
}

function conditionAliases(
  used: ReturnType<typeof usedTypesOf>,
  [condition, args]: readonly [condition: string, arguments_: string],
  [primary, secondary, live]: readonly [primary: string, secondary: string, live: string],
): Printed[] {
  return [
    ...(used.arguments ? [printAlias(args, reference(codegenTypes.ConditionArguments, primary, secondary, live))] : []),
    ...(used.type
      ? [
          printAlias(
            condition,
            reference(codegenTypes.Condition, primary, secondary, "Detail", live),
            "<Detail = never>",
          ),
        ]
      : []),
  ];
}

function reconcilerTypesOf(controller: ControllerModel, names: ControllerNames, facts: StatusFacts): Printed[] {
  const { eventSources, settings, workflow = {} } = controller;
  const { primary } = names;
  const status = statusTypeOf(facts, controller, names);
  const details = detailedConditionsOf(controller).length > 0 ? [names.details] : [];
  const args = reference(codegenTypes.ReconcileArguments, primary, names.dependents, ...details);
  const input = details.length === 0 ? [] : [reference(codegenTypes.PrimaryPatch, primary), ...details];
  const reconciler = reference(codegenTypes.Reconciler, primary, names.dependents, status, ...input);
  const nodes = `keyof ${names.dependents}`;
  const own = eventSources.length > 0 ? reference("Exclude", nodes, `keyof ${names.sources}`) : nodes;
  const run = reference(codegenTypes.WorkflowInvocation, own, ...details);
  const explicit = (type: TypeNode, wrapper: "Explicit" | "ExplicitReconciler") =>
    workflow.invocation === "explicit" ? reference(codegenTypes[wrapper], type, run) : type;
  const whole = explicit(reconciler, "ExplicitReconciler");
  const aliases = [
    printAlias(names.reconcileArguments, explicit(args, "Explicit")),
    printAlias(names.reconciler, settings.onAllEvents ? reference("Omit", whole, '"cleanup"') : whole),
  ];
  return [...(details.length === 0 ? [] : [detailsOf(controller, names)]), joinLines(aliases)];
}

/** The properties of the primary's status on which the types of a controller depend. */
interface StatusFacts {
  readonly isThere: boolean;
  /** Name of the input type of the status, if it differs from the type that is read. */
  readonly input?: string;
}

/** Returns the properties of the status in the schema of a primary. */
export function statusFactsOf(primary: ResourceModel): StatusFacts {
  const input = statusInputOf(primary);
  const isThere = schemasOf(primary.schema, "properties").has("status");
  return { isThere, ...(input === undefined ? {} : { input }) };
}

// A reconciler may omit fields of the status that the API server defaults.
function statusTypeOf(
  { isThere, input }: StatusFacts,
  { primary }: ControllerModel,
  { resources, primary: localName }: ControllerNames,
): TypeNode {
  if (!isThere) return "never";
  if (input === undefined) return reference("NonNullable", `${localName}["status"]`);
  const module = specifierOf(nameOrThrow(resources, primary), "../");
  return `import(${JSON.stringify(module)}).${input}`;
}

function detailsOf(controller: ControllerModel, { details, primary, folder }: ControllerNames): Printed {
  const module = typeFrom(`../../${folder}/conditions.js`, "*", "conditions");
  return printInterface({
    name: details,
    doc: `/** The details that the conditions of a ${primary} return. */`,
    extends: [],
    members: detailedConditionsOf(controller).map(({ dependent, conditions }) => ({
      head: `readonly ${dependent}`,
      type: objectOf(
        Object.fromEntries(
          conditions.map((each) => [
            `readonly ${each.condition}`,
            reference(codegenTypes.DetailOf, { kind: "typeof", module, member: each.function }),
          ]),
        ),
      ),
    })),
  });
}

/** Returns the types of the event sources: their resources, the user functions, and their members in `secondary`. */
function sourceTypesOf(controller: ControllerModel, names: ControllerNames): Printed[] {
  const { eventSources } = controller;
  if (eventSources.length === 0) return [];
  const all = printInterface({
    name: names.sources,
    doc: `/** The resources of the event sources for one ${names.primary}. */`,
    extends: reducedClassesOf(controller).length > 0 ? [reference(codegenTypes.KeepsLess, names.lookups)] : [],
    members: eventSources.map((source) => {
      const { name, resource } = sourceNamesOf(source);
      return { head: `readonly ${name}`, type: readonlyArrayOf(resource) };
    }),
  });
  return [...eventSources.flatMap((source) => typesOfSource(source, controller, names)), all];
}

/** Returns the kinds with an event source that caches only parts of their objects. */
function reducedKindsOf({ eventSources }: ControllerModel): ReadonlySet<ResourceModel> {
  return new Set(
    eventSources.flatMap((each) => (each.kind === "informer" && each.cache.kind !== "full" ? [each.resource] : [])),
  );
}

/** Returns the kinds with a reduced cache that have a class, by which they can be looked up. */
function reducedClassesOf(controller: ControllerModel): ResourceModel[] {
  return [...reducedKindsOf(controller)].filter(({ isUntyped }) => isUntyped !== true);
}

/** Returns the result types of lookups by class, for kinds with an event source that caches only parts of their objects. */
function lookupTypesOf(controller: ControllerModel, { lookups, primary, resources }: ControllerNames): Printed[] {
  const reduced = reducedClassesOf(controller);
  if (reduced.length === 0) return [];
  const informers = controller.eventSources.flatMap((source) => (source.kind === "informer" ? [source] : []));
  const methods = reduced.flatMap((resource) => {
    const className = nameOrThrow(resources, resource).localName;
    const owned = controller.dependents.filter(isKubernetes).some((dependent) => dependent.resource === resource)
      ? [className]
      : [];
    const known = informers.filter((source) => source.resource === resource);
    const type = union(...owned, ...known.map((source) => sourceNamesOf(source).resource));
    const typeOfClass = `typeof ${className}`;
    return [
      {
        ...functionOf({ type: typeOfClass, "options?": ONE_OPTIONS }, union(type, "undefined")),
        head: "secondary",
      },
      { ...functionOf({ type: typeOfClass, "options?": MANY_OPTIONS }, readonlyArrayOf(type)), head: "secondaries" },
    ];
  });
  const doc = `/** The results of lookups by class for a ${primary}, for event sources that do not cache whole objects. */`;
  return [printInterface({ name: lookups, doc, extends: [], members: methods })];
}

const ONE_OPTIONS = objectOf({
  "readonly source?": "string",
  "readonly name?": "string",
  "readonly namespace?": "string",
});
const MANY_OPTIONS = objectOf({ "readonly source?": "string", "readonly deduplicated?": "boolean" });

/** Returns the types of all filters. */
function filterTypesOf(controller: ControllerModel, names: ControllerNames): Printed[] {
  const aliases = filteredOf(controller, names).flatMap(({ path, objectType: object, types }) => [
    printAlias(types.generic, functionOf({ object }, "boolean")),
    printAlias(types.onUpdate, functionOf({ object, old: object }, "boolean")),
    ...(path === "controller"
      ? []
      : [printAlias(types.onDelete, functionOf({ object, isFinalStateUnknown: "boolean" }, "boolean"))]),
  ]);
  return aliases.length === 0 ? [] : [joinLines(aliases)];
}

/** Returns the type of the functions that index primaries; empty if the spec has no indexes. */
function indexTypesOf({ indexes }: ControllerModel, { index, primary }: ControllerNames): Printed[] {
  if (indexes === undefined) return [];
  const doc = `/** Returns the index values of a ${primary}. Use only the ${primary} as input. */`;
  return [joinLines([doc, printAlias(index, functionOf({ primary }, KEYS))])];
}

function indexNamesOf({ indexes = {} }: ControllerModel): TypeNode {
  const names = Object.keys(indexes).map((name) => JSON.stringify(name));
  return names.length === 0 ? "never" : union(...names);
}

const KEYS = readonlyArrayOf("string");

function typesOfSource(
  source: EventSourceModel,
  controller: ControllerModel,
  { dependents, primary, resources, folder }: ControllerNames,
): Printed[] {
  const types = sourceNamesOf(source);
  const documented = (doc: string, name: string, type: TypeNode) =>
    joinLines([`/** ${doc} */`, printAlias(name, type)]);
  // The user's file declares the type of the resources.
  const file = `../../${folder}/event-sources/${types.file}.js`;
  const resource = printExport([typeFrom(file, "Resource", types.resource)], true);
  switch (source.kind) {
    case "informer": {
      const { live } = objectTypesOf(source.resource, resources);
      const context = reference(codegenTypes.MapperContext, indexNamesOf(controller), primary);
      return [
        documented(docOf(source, controller), types.resource, keptTypeOf(live, source, controller)),
        ...(source.mapping.kind === "function"
          ? [
              documented(
                `Maps a resource of "${source.name}" to the keys of its ${primary} objects.`,
                types.mapper,
                functionOf({ object: types.resource, context }, KEYS),
              ),
            ]
          : []),
        ...(source.primaryToSecondary === undefined
          ? []
          : [
              documented(
                `Returns the keys of "${source.name}" that a ${primary} refers to, whether they exist or not.`,
                types.primaryMapper,
                functionOf({ primary, context: objectOf({ "readonly secondary": dependents }) }, KEYS),
              ),
            ]),
      ];
    }
    case "poll":
      return [
        resource,
        functionsOf(source, primary, {
          doc: `Returns all resources by the keys (namespace/name) of their ${primary} objects. A missing resource counts as deleted.`,
          type: fetchAllOf(types.resource),
        }),
      ];
    case "perPrimaryPoll":
      return [
        resource,
        functionsOf(source, primary, {
          doc: `Returns all resources of a ${primary}. A missing resource counts as deleted.`,
          type: functionOf({ primary, context: SIGNAL }, maybePromise(readonlyArrayOf(types.resource))),
        }),
      ];
    case "inbound":
      return [resource, functionsOf(source, primary)];
  }
}

/** Prints the type of the user constant with the functions of an external event source. */
function functionsOf(
  source: EventSourceModel,
  primary: string,
  fetch?: { readonly doc: string; readonly type: TypeNode },
): Printed {
  const { functions, resource } = sourceNamesOf(source);
  const idOf = functionOf({ resource }, "string");
  const members = [
    ...(fetch === undefined ? [] : [{ head: "readonly fetch", type: fetch.type, doc: `/** ${fetch.doc} */` }]),
    {
      head: "readonly idOf",
      type: idOf,
      doc: `/** Returns the id of a resource, unique among those of its ${primary}. */`,
    },
  ];
  const doc = `/** Your functions for the event source "${source.name}". */`;
  return printInterface({ name: functions, doc, extends: [], members });
}

function docOf({ name, resource: { kind }, cache }: InformerModel, { specFile }: ControllerModel): string {
  if (cache.kind === "full") return `A ${kind} from event source "${name}". The whole object is cached.`;
  const kept =
    cache.kind === "metadata" ? "Only its metadata is cached" : "Only its metadata and these fields are cached";
  return `A ${kind} from event source "${name}". ${kept}. To cache more, change eventSources.${name}.cache in ${inComment(specFile)}.`;
}

function keptTypeOf(live: string, { name, resource, cache }: InformerModel, { specFile }: ControllerModel): TypeNode {
  if (cache.kind === "full") return live;
  const stated = cache.kind === "metadata" ? [] : cache.paths;
  const paths = stated.map((path) => JSON.stringify(path));
  const hint = printText(`add it to eventSources.${name}.cache.paths of ${specFile}`);
  return reference(
    codegenTypes.Kept,
    resource.isUntyped === true ? withFields(live, stated) : live,
    paths.length === 0 ? "never" : union(...paths),
    hint,
  );
}

// Cached fields of an untyped object are accessible by name.
function withFields(live: string, paths: readonly string[]): TypeNode {
  const fields = paths.map((path) => [`readonly ${propertyNameOf(path.split(".", 1).join())}?`, "unknown"] as const);
  return fields.length === 0 ? live : intersection(live, objectOf(Object.fromEntries(fields)));
}

function inComment(text: string): string {
  return text.replaceAll("*/", "*\\/");
}
