import {
  isKubernetes,
  type ControllerModel,
  type EventSourceModel,
  type InformerModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { nameOrThrow, sourceNamesOf, type ControllerNames } from "../controller-names.js";
import { objectTypesOf } from "./dependent-types.js";
import { fetchAllOf, SIGNAL } from "./emit-external.js";
import { filteredOf } from "./filtered.js";
import { printText, propertyNameOf } from "../print/print-value.js";
import { printAlias, printExport, printImport, printInterface } from "../print/declarations.js";
import {
  functionOf,
  intersection,
  maybePromise,
  objectOf,
  readonlyArrayOf,
  reference,
  union,
  type TypeNode,
} from "../print/type-node.js";

/** Returns the imports of the types of resources that the user declares, which those of the files here refer to. */
export function externalResourceImports({ eventSources }: ControllerModel, folder: string): string[] {
  return eventSources
    .filter(({ kind }) => kind !== "informer")
    .map((source) => {
      const { file, resource } = sourceNamesOf(source);
      return printImport([{ name: "Resource", alias: resource }], `../../${folder}/event-sources/${file}.js`, true);
    });
}

/** Returns the types of the event sources: their resources, the user's functions, and what a reconcile sees of them. */
export function sourceTypesOf(controller: ControllerModel, names: ControllerNames): string[] {
  const { eventSources } = controller;
  if (eventSources.length === 0) return [];
  const all = printInterface({
    name: names.sources,
    doc: `/** What the event sources know of one ${names.primary}. */`,
    extends: reducedClassesOf(controller).length > 0 ? [`KeepsLess<${names.lookups}>`] : [],
    members: eventSources.map((source) => {
      const { name, resource } = sourceNamesOf(source);
      return { head: `readonly ${name}`, type: readonlyArrayOf(resource) };
    }),
  });
  return [...eventSources.flatMap((source) => typesOf(source, controller, names)), all];
}

/** Returns the kinds of which event sources keep less than whole objects. */
export function reducedKindsOf({ eventSources }: ControllerModel): ReadonlySet<ResourceModel> {
  return new Set(
    eventSources.flatMap((each) => (each.kind === "informer" && each.cache.kind !== "full" ? [each.resource] : [])),
  );
}

/** Returns those of the kinds that can be looked up by their class. */
export function reducedClassesOf(controller: ControllerModel): ResourceModel[] {
  return [...reducedKindsOf(controller)].filter(({ isUntyped }) => isUntyped !== true);
}

/** Returns what looking resources up by their class gives, where an event source keeps less than whole objects. */
export function lookupTypesOf(controller: ControllerModel, { lookups, primary, resources }: ControllerNames): string[] {
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
  const doc = `/** What looking up by class gives of a ${primary}, where event sources keep less than whole objects. */`;
  return [printInterface({ name: lookups, doc, extends: [], members: methods })];
}

const ONE_OPTIONS = objectOf({
  "readonly source?": "string",
  "readonly name?": "string",
  "readonly namespace?": "string",
});
const MANY_OPTIONS = objectOf({ "readonly source?": "string", "readonly deduplicated?": "boolean" });

/** Returns the types of all filters. */
export function filterTypesOf(controller: ControllerModel, names: ControllerNames): string[] {
  const aliases = filteredOf(controller, names).flatMap(({ path, objectType: object, types }) => [
    printAlias(types.generic, functionOf({ object }, "boolean")),
    printAlias(types.onUpdate, functionOf({ object, old: object }, "boolean")),
    ...(path === "controller"
      ? []
      : [printAlias(types.onDelete, functionOf({ object, isFinalStateUnknown: "boolean" }, "boolean"))]),
  ]);
  return aliases.length === 0 ? [] : [aliases.join("\n")];
}

/** Returns the type of the functions that index primaries, if the spec names any. */
export function indexTypesOf({ indexes }: ControllerModel, { index, primary }: ControllerNames): string[] {
  if (indexes === undefined) return [];
  const doc = `/** Returns the values under which an index finds a ${primary}. Use no input but the ${primary}. */`;
  return [`${doc}\n${printAlias(index, functionOf({ primary }, KEYS))}`];
}

/** Tells whether a function of the user's maps objects to primaries. */
export function hasMapper({ eventSources }: ControllerModel): boolean {
  return eventSources.some((source) => source.kind === "informer" && source.mapping.kind === "function");
}

function indexNamesOf({ indexes = {} }: ControllerModel): TypeNode {
  const names = Object.keys(indexes).map((name) => JSON.stringify(name));
  return names.length === 0 ? "never" : union(...names);
}

const KEYS = readonlyArrayOf("string");

function typesOf(
  source: EventSourceModel,
  controller: ControllerModel,
  { dependents, primary, resources }: ControllerNames,
): string[] {
  const types = sourceNamesOf(source);
  const documented = (doc: string, name: string, type: TypeNode) => `/** ${doc} */\n${printAlias(name, type)}`;
  const resource = printExport([types.resource], true);
  switch (source.kind) {
    case "informer": {
      const { live } = objectTypesOf(source.resource, resources);
      const context = reference("MapperContext", indexNamesOf(controller), primary);
      return [
        documented(docOf(source, controller), types.resource, keptTypeOf(live, source, controller)),
        ...(source.mapping.kind === "function"
          ? [
              documented(
                `Returns the keys of the ${primary} objects that one of "${source.name}" concerns.`,
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

/** Prints the type of the user's constant with the functions of a source outside Kubernetes. */
function functionsOf(
  source: EventSourceModel,
  primary: string,
  fetch?: { readonly doc: string; readonly type: TypeNode },
): string {
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
  const doc = `/** What the operator calls for the event source "${source.name}". */`;
  return printInterface({ name: functions, doc, extends: [], members });
}

function docOf({ name, resource: { kind }, cache }: InformerModel, { specFile }: ControllerModel): string {
  if (cache.kind === "full") return `A ${kind} of "${name}", of which everything is kept.`;
  const kept = cache.kind === "metadata" ? "only the metadata is kept" : "the metadata and what is named here is kept";
  return `A ${kind} of "${name}", of which ${kept}. To keep more, change eventSources.${name}.cache of ${inComment(specFile)}.`;
}

function keptTypeOf(live: string, { name, resource, cache }: InformerModel, { specFile }: ControllerModel): TypeNode {
  if (cache.kind === "full") return live;
  const stated = cache.kind === "metadata" ? [] : cache.paths;
  const paths = stated.map((path) => JSON.stringify(path));
  const hint = printText(`add it to eventSources.${name}.cache.paths of ${specFile}`);
  return reference(
    "Kept",
    resource.isUntyped === true ? withFields(live, stated) : live,
    paths.length === 0 ? "never" : union(...paths),
    hint,
  );
}

// What is kept of an object without a schema can be read by its name.
function withFields(live: string, paths: readonly string[]): TypeNode {
  const fields = paths.map((path) => [`readonly ${propertyNameOf(path.split(".", 1).join())}?`, "unknown"] as const);
  return fields.length === 0 ? live : intersection(live, objectOf(Object.fromEntries(fields)));
}

function inComment(text: string): string {
  return text.replaceAll("*/", "*\\/");
}
