import type { ImportDeclarationStructure } from "ts-morph";
import { loadLibrary } from "../model/library.js";
import {
  isKubernetes,
  type ControllerModel,
  type EventSourceModel,
  type FormModel,
  type InformerModel,
} from "../model/project-model.js";
import { nameOrThrow, sourceNamesOf, type ControllerNames } from "./controller-names.js";
import { filteredOf } from "./filtered.js";
import type { Statements } from "./source-file.js";

const { StructureKind } = loadLibrary("ts-morph");

type Lines = Statements & string[];

/** Returns the imports of the types of resources that the user declares, which those of the files here refer to. */
export function externalResourceImports(
  { eventSources }: ControllerModel,
  folder: string,
): ImportDeclarationStructure[] {
  return eventSources
    .filter(({ kind }) => kind !== "informer")
    .map((source) => {
      const { file, resource } = sourceNamesOf(source);
      return {
        kind: StructureKind.ImportDeclaration,
        isTypeOnly: true,
        moduleSpecifier: `../../${folder}/event-sources/${file}.js`,
        namedImports: [{ name: "Resource", alias: resource }],
      };
    });
}

/** Returns the types of the event sources: their resources, the user's functions, and what a reconcile sees of them. */
export function sourceTypesOf(controller: ControllerModel, names: ControllerNames): Lines {
  const { eventSources } = controller;
  if (eventSources.length === 0) return [];
  const fields = eventSources.map((source) => {
    const { name, resource } = sourceNamesOf(source);
    return `readonly ${name}: readonly ${resource}[];`;
  });
  return [
    ...eventSources.flatMap((source) => typesOf(source, controller, names)),
    `\n/** What the event sources know of one ${names.primary}. */\nexport interface ${names.sources} {\n${fields.join("\n")}\n}`,
  ];
}

/** Tells whether any event source keeps less than whole objects. */
export function isReduced({ eventSources }: ControllerModel): boolean {
  return eventSources.some((source) => source.kind === "informer" && source.form.kind !== "full");
}

/** Returns what looking resources up by their class gives, where an event source keeps less than whole objects. */
export function lookupTypesOf(controller: ControllerModel, { lookups, primary, resources }: ControllerNames): Lines {
  if (!isReduced(controller)) return [];
  const informers = controller.eventSources.flatMap((source) => (source.kind === "informer" ? [source] : []));
  const reduced = new Set(informers.flatMap(({ resource, form }) => (form.kind === "full" ? [] : [resource])));
  const methods = [...reduced].flatMap((resource) => {
    const className = nameOrThrow(resources, resource).localName;
    const owned = controller.dependents.filter(isKubernetes).some((dependent) => dependent.resource === resource)
      ? [className]
      : [];
    const known = informers.filter((source) => source.resource === resource);
    const type = [...owned, ...known.map((source) => sourceNamesOf(source).resource)].join(" | ");
    return [
      `secondary(type: typeof ${className}, options?: ${ONE_OPTIONS}): ${type} | undefined;`,
      `secondaries(type: typeof ${className}, options?: ${MANY_OPTIONS}): readonly (${type})[];`,
    ];
  });
  const doc = `/** What looking up by class gives of a ${primary}, where event sources keep less than whole objects. */`;
  return [`\n${doc}\nexport interface ${lookups} {\n${methods.join("\n")}\n}`];
}

const ONE_OPTIONS = "{ readonly source?: string; readonly name?: string; readonly namespace?: string }";
const MANY_OPTIONS = "{ readonly source?: string; readonly deduplicated?: boolean }";

/** Returns the types of all filters. */
export function filterTypesOf(controller: ControllerModel, names: ControllerNames): Lines {
  return filteredOf(controller, names).flatMap(({ path, objectType, types }) => [
    "",
    `export type ${types.generic} = (object: ${objectType}) => boolean;`,
    `export type ${types.onUpdate} = (object: ${objectType}, old: ${objectType}) => boolean;`,
    ...(path === "controller"
      ? []
      : [`export type ${types.onDelete} = (object: ${objectType}, isFinalStateUnknown: boolean) => boolean;`]),
  ]);
}

/** Returns the type of the functions that index primaries, if the spec names any. */
export function indexTypesOf({ indexes }: ControllerModel, { index, primary }: ControllerNames): Lines {
  if (indexes === undefined) return [];
  const doc = `/** Returns the values under which an index finds a ${primary}; it must look at nothing else. */`;
  return [`\n${doc}\nexport type ${index} = (primary: ${primary}) => readonly string[];`];
}

/** Tells whether a function of the user's maps objects to primaries. */
export function hasMapper({ eventSources }: ControllerModel): boolean {
  return eventSources.some((source) => source.kind === "informer" && source.mapping.kind === "function");
}

function indexNamesOf({ indexes = {} }: ControllerModel): string {
  const names = Object.keys(indexes).map((name) => JSON.stringify(name));
  return names.length === 0 ? "never" : names.join(" | ");
}

function typesOf(
  source: EventSourceModel,
  controller: ControllerModel,
  { primary, resources }: ControllerNames,
): Lines {
  const types = sourceNamesOf(source);
  const functionType = (name: string, type: string) => `export type ${name} = ${type};`;
  const result = `readonly ${types.resource}[]`;
  switch (source.kind) {
    case "informer": {
      const className = nameOrThrow(resources, source.resource).localName;
      return [
        `\n/** ${docOf(source)} */`,
        functionType(types.resource, keptTypeOf(className, source.form)),
        ...(source.mapping.kind === "function"
          ? [
              `\n/** Returns the keys of the ${primary} objects that one of "${source.name}" concerns. */`,
              functionType(
                types.mapper,
                `(object: ${types.resource}, context: MapperContext<${indexNamesOf(controller)}>) => readonly string[]`,
              ),
            ]
          : []),
        ...(source.primaryToSecondary === undefined
          ? []
          : [
              `\n/** Returns the keys of "${source.name}" that a ${primary} refers to, whether they exist or not. */`,
              functionType(types.primaryMapper, `(primary: ${primary}) => readonly string[]`),
            ]),
      ];
    }
    case "poll":
      return [
        `\nexport type { ${types.resource} };`,
        `\n/** Returns all resources of "${source.name}" by the keys of their ${primary} objects. A missing resource counts as deleted. */`,
        functionType(
          types.fetch,
          `(context: { readonly signal: AbortSignal }) => ${maybe(`ReadonlyMap<string, ${result}>`)}`,
        ),
        idTypeOf(source, primary),
      ];
    case "perPrimaryPoll":
      return [
        `\nexport type { ${types.resource} };`,
        `\n/** Returns all resources of "${source.name}" of a ${primary}. A missing resource counts as deleted. */`,
        functionType(
          types.fetch,
          `(primary: ${primary}, context: { readonly signal: AbortSignal }) => ${maybe(result)}`,
        ),
        idTypeOf(source, primary),
      ];
    case "inbound":
      return [`\nexport type { ${types.resource} };`, idTypeOf(source, primary)];
  }
}

function idTypeOf(source: EventSourceModel, primary: string): string {
  const { idOf, resource } = sourceNamesOf(source);
  return `\n/** Returns the id of a resource of "${source.name}", unique among those of its ${primary}. */\nexport type ${idOf} = (resource: ${resource}) => string;`;
}

function maybe(type: string): string {
  return `${type} | Promise<${type}>`;
}

function docOf({ name, resource: { kind }, form }: InformerModel): string {
  if (form.kind === "full") return `A ${kind} of "${name}", of which everything is kept.`;
  if (form.kind === "metadata") return `A ${kind} of "${name}", of which only the metadata is kept.`;
  return `A ${kind} of "${name}", of which the metadata and what is named here is kept.`;
}

function keptTypeOf(className: string, form: FormModel): string {
  if (form.kind === "full") return className;
  const paths = form.kind === "metadata" ? [] : form.paths;
  return `Kept<${className}, ${paths.length === 0 ? "never" : paths.map((path) => JSON.stringify(path)).join(" | ")}>`;
}
