import {
  type ControllerModel,
  type DependentModel,
  type ExternalDependentModel,
  type ImportedTypeModel,
  type KeptTypeModel,
  type KubernetesDependentModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
} from "../../model/project-model.js";
import { type ControllerNames, dependentNamesOf, inputNameOf, nameOrThrow, sourceNamesOf } from "../names.js";
import { type OutputFile, generatedFile } from "../output-file.js";
import {
  type DocumentedMember,
  type MemberNode,
  type Printed,
  type TypeNode,
  functionOf,
  intersection,
  maybePromise,
  objectOf,
  printAlias,
  printExport,
  printInterface,
  readonlyArrayOf,
  reference,
  typeFrom,
  union,
} from "../print.js";
import { printShapes } from "../resource/emit-resource.js";
import { normaliseObject } from "../resource/shape.js";
import { codegenTypes } from "../runtime-symbols.js";

/** Names of the types of a dependent in the files of its controller. */
interface DependentTypeNames {
  /** Type of the live object or resource; for a bulk dependent, of an item. */
  readonly live: string;
  /** Type of the desired object or resource; for a bulk dependent, of an item. */
  readonly input: string;
  /** Type of its value in `secondary`. */
  readonly secondary: TypeNode;
  /** Return type of `desired`. */
  readonly wanted: TypeNode;
}

/** Returns the types of a dependent. */
export function dependentTypesOf(dependent: DependentModel, { resources }: ControllerNames): DependentTypeNames {
  const { live, input } = isKubernetes(dependent)
    ? objectTypesOf(dependent.resource, resources)
    : typesOfExternal(dependent);
  const isBulk = dependent.bulk !== undefined;
  return {
    live,
    input,
    secondary: isBulk ? reference(codegenTypes.ItemsOf, live) : live,
    wanted: isBulk ? reference(codegenTypes.ItemsOf, input) : input,
  };
}

/** Returns the types of the objects of a kind. Untyped kinds use the types of the runtime. */
export function objectTypesOf(resource: ResourceModel, resources: ControllerNames["resources"]) {
  if (resource.isUntyped === true) return { live: "UntypedResource", input: "UntypedInput" };
  const { localName } = nameOrThrow(resources, resource);
  return { live: localName, input: inputNameOf(localName) };
}

// A resource of an event source has the type of the event source.
function typesOfExternal({ name, external: { source, desiredType } }: ExternalDependentModel) {
  const names = dependentNamesOf({ name });
  const live = source.kind === "eventSource" ? sourceNamesOf(source).resource : names.resource;
  return { live, input: desiredType === undefined ? live : names.draft };
}

/** Returns whether a user function fetches the resources of a dependent. */
export function isFetched({ external: { source } }: ExternalDependentModel): boolean {
  return source.kind === "inbound" ? source.isFetched === true : source.kind !== "eventSource";
}

/** Returns whether a dependent has a file of user code: with `desired`, with the functions of an external dependent, or with its own operations. */
export function hasFile(dependent: DependentModel): boolean {
  return !isKubernetes(dependent) || dependent.mode !== "readOnly";
}

/**
 * Returns the type of the user constant with the own operations of a dependent.
 *
 * In `delete`, `secondary` does not guarantee the dependencies, because they may already be deleted during cleanup.
 */
export function operationTypesOf(dependent: KubernetesDependentModel, names: ControllerNames): Printed[] {
  const types = dependentNamesOf(dependent);
  const { live, input } = dependentTypesOf(dependent, names);
  const arguments_ = { create: [input], update: [input, live], delete: [live] };
  const members = ownOperationsOf(dependent).map((operation) => {
    const secondary = operation === "delete" && dependent.waitsFor.length > 0 ? names.dependents : types.secondary;
    const args = reference(codegenTypes[ARGUMENTS_OF[operation]], names.primary, secondary, ...arguments_[operation]);
    return { head: `readonly ${operation}`, type: functionOf({ args }, maybePromise("void")) };
  });
  if (members.length === 0) return [];
  const doc = `/** Your operations of "${dependent.name}", which replace those of the operator. */`;
  return [printInterface({ name: types.operations, doc, extends: [], members })];
}

/** Argument types of the runtime, by operation. */
const ARGUMENTS_OF = {
  create: "CreateArguments",
  update: "UpdateArguments",
  delete: "DeleteArguments",
} as const;

/** The conditions of a dependent that are user functions, and so can return a detail. */
interface DetailedConditions {
  readonly dependent: string;
  readonly conditions: readonly { readonly condition: string; readonly function: string }[];
}

/** Returns the conditions that are user functions, by dependent. */
export function detailedConditionsOf({ dependents }: ControllerModel): DetailedConditions[] {
  return dependents.flatMap(({ name, conditions }) => {
    const found = Object.entries(conditions).flatMap(([condition, model]) =>
      // `existing` is evaluated for an object, not for the dependent, so results contain no detail of it.
      condition !== "existing" && model.kind === "function" ? [{ condition, function: model.name }] : [],
    );
    return found.length === 0 ? [] : [{ dependent: name, conditions: found }];
  });
}

/** Returns the types of the members of `secondary` that are always present: event sources, and items of bulk dependents. */
export function alwaysThere(
  { eventSources, dependents }: ControllerModel,
  { sources, items }: ControllerNames,
): string[] {
  return [
    ...(eventSources.length > 0 ? [sources] : []),
    ...(dependents.some(({ bulk }) => bulk !== undefined) ? [items] : []),
  ];
}

/** Returns the types of `secondary`: the items of bulk dependents, and all members that a reconciler receives. */
export function dependentsTypesOf(controller: ControllerModel, names: ControllerNames): Printed[] {
  const { dependents, eventSources } = controller;
  const [bulk, single] = [dependents.filter(isBulk), dependents.filter((dependent) => !isBulk(dependent))];
  const sourcesDoc = eventSources.length > 0 ? ", and the resources of its event sources" : "";
  const all = printInterface({
    name: names.dependents,
    doc: `/** The live dependents of one ${names.primary}${sourcesDoc}. */`,
    extends: alwaysThere(controller, names),
    members: single.map((dependent) => memberOf(dependent, names, false)),
  });
  if (bulk.length === 0) return [all];
  const items = printInterface({
    name: names.items,
    doc: `/** The items of the bulk dependents of one ${names.primary}, by key. */`,
    extends: [],
    // The record of items is always present, but may be empty.
    members: bulk.map((dependent) => memberOf(dependent, names, true)),
  });
  return [items, all];
}

/**
 * Returns the type of `secondary` for a dependent, with the members that its dependencies guarantee.
 *
 * The declared interface extends those of its dependencies, so that the size of the generated types grows linearly with the edges of the graph.
 */
export function secondaryTypesOf(dependent: DependentModel, controller: ControllerModel, names: ControllerNames) {
  const { needs, secondary } = dependentNamesOf(dependent);
  const parents = parentsOf(dependent, controller);
  const known = new Set(parents.flatMap(({ waitsFor }) => waitsFor));
  const added = single(dependent.waitsFor, controller).filter(({ name }) => !known.has(name));
  const inherited = parents.map((parent) => dependentNamesOf(parent));
  const [only] = inherited;
  if (added.length === 0 && inherited.length <= 1)
    return { declarations: [], alias: printAlias(secondary, only?.secondary ?? names.dependents) };
  const declaration = printInterface({
    name: needs,
    doc: `/** The dependencies of "${dependent.name}", which exist when it is reconciled. */`,
    extends: inherited.map((parent) => parent.needs),
    members: added.map((other) => memberOf(other, names, true)),
  });
  return { declarations: [declaration], alias: printAlias(secondary, intersection(names.dependents, needs)) };
}

/** Returns the dependencies whose interfaces to extend: each adds a guaranteed dependent that the others do not have. */
function parentsOf({ dependsOn }: DependentModel, controller: ControllerModel): DependentModel[] {
  const candidates = controller.dependents.filter(
    ({ name, waitsFor }) => dependsOn.includes(name) && single(waitsFor, controller).length > 0,
  );
  const parents: DependentModel[] = [];
  for (const candidate of [...candidates].sort((left, right) => right.waitsFor.length - left.waitsFor.length)) {
    const known = new Set(parents.flatMap(({ waitsFor }) => waitsFor));
    if (!single(candidate.waitsFor, controller).every(({ name }) => known.has(name))) parents.push(candidate);
  }
  return parents;
}

function single(named: readonly string[], { dependents }: ControllerModel): DependentModel[] {
  // An object with `mode: once` may be deleted while others depend on it.
  return dependents.filter(
    (dependent) => named.includes(dependent.name) && !isBulk(dependent) && !isCreatedOnce(dependent),
  );
}

function isBulk({ bulk }: DependentModel): boolean {
  return bulk !== undefined;
}

function isCreatedOnce(dependent: DependentModel): boolean {
  return isKubernetes(dependent) && dependent.mode === "once";
}

function memberOf(dependent: DependentModel, names: ControllerNames, isPresent: boolean): MemberNode {
  const { secondary } = dependentTypesOf(dependent, names);
  const { name } = dependent;
  return isPresent
    ? { head: `readonly ${name}`, type: secondary }
    : { head: `readonly ${name}?`, type: union(secondary, "undefined") };
}

/** Functions in the user constant of an external dependent, in the order of their calls. */
type ExternalFunction = "fetch" | "idOf" | "isOwn" | "stateOf" | "desired" | "create" | "update" | "delete";

/** Emits the types of external resources that are defined by a schema. */
export function emitExternalTypes(controller: ControllerModel, { folder }: ControllerNames): OutputFile[] {
  return ownTypesOf(controller).flatMap((dependent) => {
    const { type } = dependent.external;
    if (type.kind !== "schema") return [];
    const { file, resource } = dependentNamesOf(dependent);
    const { root, shapes } = normaliseObject(type.schema, resource);
    const doc = root.doc.length > 0 ? root.doc : [`A resource of "${dependent.name}", as its service reports it.`];
    return [generatedFile(`src/generated/${folder}/external/${file}.ts`, printShapes([...shapes, { ...root, doc }]))];
  });
}

/** Exports the types of external resources for user code, under their names in the files of a controller. */
export function externalDependentExports(controller: ControllerModel, folder: string): Printed[] {
  const resources = ownTypesOf(controller).map((dependent) => {
    const { file, resource } = dependentNamesOf(dependent);
    const { type } = dependent.external;
    if (type.kind === "imported") return typeFrom(moduleOf(type.file), type.name, resource);
    return type.kind === "schema"
      ? typeFrom(`./external/${file}.js`, resource)
      : typeFrom(`../../${folder}/dependents/${file}.js`, "Resource", resource);
  });
  const drafts = draftsOf(controller).map(([draft, { file, name }]) => typeFrom(moduleOf(file), name, draft));
  const kept = keptOf(controller).map(([name, type]) => typeFrom(moduleOf(type.file), type.name, name));
  const symbols = [...resources, ...drafts, ...kept].map((symbol) => ({ ...symbol, isApart: true }));
  return symbols.length === 0 ? [] : [printExport(symbols, true)];
}

// Relative to the folder of a controller in src/generated.
function moduleOf(file: string): string {
  return `../../../${file.replace(/\.ts$/, ".js")}`.replace("../../../src/", "../../");
}

/** Returns the desired types that differ from the resource types, by their names in the files of a controller. */
function draftsOf({ dependents }: ControllerModel): [name: string, type: ImportedTypeModel][] {
  return dependents.flatMap((dependent) => {
    if (isKubernetes(dependent)) return [];
    const { desiredType } = dependent.external;
    return desiredType === undefined ? [] : [[dependentNamesOf(dependent).draft, desiredType]];
  });
}

function keptOf({ dependents }: ControllerModel): [name: string, type: ImportedTypeModel][] {
  return dependents.flatMap((dependent) => {
    const keptType = isKubernetes(dependent) ? undefined : dependent.external.keptType;
    return keptType?.kind === "imported" ? [[dependentNamesOf(dependent).kept, keptType]] : [];
  });
}

// The schema of the kind defines the type of the kept fields, with the id as a string. The runtime ensures that the id is present.
function keptFieldOf(
  { resource, path, isMap }: Extract<KeptTypeModel, { kind: "field" }>,
  names: ControllerNames,
): TypeNode {
  const whole = nameOrThrow(names.resources, resource).localName;
  const field = path.reduce((type, name) => `NonNullable<${type}[${JSON.stringify(name)}]>`, whole);
  return intersection(isMap ? `NonNullable<${field}[string]>` : field, objectOf({ "readonly id": "string" }));
}

/** Returns the type of the user constant with the functions of an external dependent, and the aliases that it requires. */
export function externalTypesOf(
  dependent: ExternalDependentModel,
  names: ControllerNames,
  desired: TypeNode,
): { readonly aliases: Printed[]; readonly declaration: Printed } {
  const types = dependentNamesOf(dependent);
  const { live, input } = dependentTypesOf(dependent, names);
  const { source, capabilities, state, keptType, isSelected } = dependent.external;
  const stateType = union(keptType === undefined ? "string" : types.kept, "undefined");
  const given = objectOf({ ...(state !== undefined && { "readonly state?": stateType }), "readonly token": "string" });
  const args = intersection(types.arguments, given);
  // Dependencies may already be deleted during cleanup.
  const known = reference(codegenTypes.DependentArguments, names.primary, names.dependents);
  const deletionArgs = dependent.waitsFor.length === 0 ? args : intersection(known, given);
  const context = reference(
    codegenTypes.FetchContext,
    names.dependents,
    ...(keptType === undefined ? [] : [types.kept]),
  );
  const functions: { readonly [name in ExternalFunction]: TypeNode | undefined } = {
    fetch:
      source.kind === "poll"
        ? fetchAllOf(live)
        : isFetched(dependent)
          ? functionOf({ primary: names.primary, context }, maybePromise(readonlyArrayOf(live)))
          : undefined,
    // Without a state, the id of the desired resource identifies the resource.
    idOf: functionOf({ resource: state === undefined && input !== live ? union(live, input) : live }, "string"),
    isOwn: isSelected === true ? functionOf({ resource: live, primary: names.primary }, "boolean") : undefined,
    stateOf: keptType === undefined ? undefined : functionOf({ resource: live }, types.kept),
    desired: isReadOnly(dependent) ? undefined : desired,
    create: capabilities.includes("create") ? functionOf({ desired: input, args }, maybePromise(live)) : undefined,
    update: capabilities.includes("update")
      ? functionOf({ desired: input, live, args }, maybePromise(live))
      : undefined,
    delete: capabilities.includes("delete")
      ? functionOf({ live, args: deletionArgs }, maybePromise("void"))
      : undefined,
  };
  const docs = docsOf(dependent, names);
  const members = Object.entries(functions).flatMap(([name, type]): DocumentedMember[] =>
    type === undefined ? [] : [{ head: `readonly ${name}`, type, doc: `/** ${docs[name as ExternalFunction]} */` }],
  );
  const matcher = functionOf({ desired: input, live }, "boolean");
  return {
    aliases: [
      ...(keptType?.kind === "field" ? [printAlias(types.kept, keptFieldOf(keptType, names))] : []),
      ...(dependent.matcher === undefined ? [] : [printAlias(types.matcher, matcher)]),
    ],
    declaration: printInterface({
      name: types.external,
      doc: `/** Your functions for "${dependent.name}". */`,
      extends: [],
      members,
    }),
  };
}

function docsOf(
  { name, bulk, waitsFor, external: { source } }: ExternalDependentModel,
  { primary }: ControllerNames,
): { readonly [each in ExternalFunction]: string } {
  return {
    fetch:
      source.kind === "poll"
        ? `Returns all resources by the keys (namespace/name) of their ${primary} objects. A missing resource counts as deleted.`
        : `Returns all resources of a ${primary}. A missing resource counts as deleted.`,
    idOf: `Returns the id of a resource, unique among those of its ${primary}.`,
    isOwn: `Returns whether a resource of a ${primary} belongs to "${name}". Its event source has resources of other dependents, too.`,
    stateOf: "Returns what is stored about a created resource, with its id as `id`.",
    desired:
      bulk === undefined
        ? `Returns the resource that a ${primary} needs.`
        : `Returns the resources that a ${primary} needs, by keys. Resources that it no longer returns are deleted.`,
    create:
      "Creates the resource and returns it as the service reports it. Called again if it fails, with the same token.",
    update: "Changes the live resource into the desired one and returns it as the service reports it.",
    delete: `Deletes the resource. Must succeed if the resource no longer exists.${
      waitsFor.length === 0 ? "" : " While the primary is being deleted, members of `secondary` may be undefined."
    }`,
  };
}

/** Returns the type of a function that fetches the resources of all primaries, by key. */
export function fetchAllOf(resource: string): TypeNode {
  return functionOf({ context: SIGNAL }, maybePromise(reference("ReadonlyMap", "string", readonlyArrayOf(resource))));
}

/** Type of the context of a function that fetches without a primary. */
export const SIGNAL = objectOf({ "readonly signal": "AbortSignal" });

// A resource of an event source has the type of the event source.
function ownTypesOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((dependent) =>
    isKubernetes(dependent) || dependent.external.source.kind === "eventSource" ? [] : [dependent],
  );
}
