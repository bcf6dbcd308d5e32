import type { ImportedTypeModel, KeptTypeModel } from "../../model/dependent-model.js";
import {
  isKubernetes,
  isReadOnly,
  type ControllerModel,
  type ExternalDependentModel,
} from "../../model/project-model.js";
import { dependentNamesOf, nameOrThrow, type ControllerNames } from "../controller-names.js";
import { dependentTypesOf, isFetched } from "./dependent-types.js";
import { printShapes } from "../resource/emit-resource.js";
import { normaliseObject } from "../resource/normalise.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { printAlias, printExport, printImport, printInterface, type DocumentedMember } from "../print/declarations.js";
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

/** The functions of the user's constant of an external dependent, in the order in which they are called. */
type ExternalFunction = "fetch" | "idOf" | "isOwn" | "stateOf" | "desired" | "create" | "update" | "delete";

/** Emits the types of the external resources of which there is a schema. */
export function emitExternalTypes(controller: ControllerModel, { folder }: ControllerNames): OutputFile[] {
  return ownTypesOf(controller).flatMap((dependent) => {
    const { type } = dependent.external;
    if (type.kind !== "schema") return [];
    const { file, resource } = dependentNamesOf(dependent);
    const { root, shapes } = normaliseObject(type.schema, resource);
    const doc = root.doc.length > 0 ? root.doc : [`A resource of "${dependent.name}", as its service has it.`];
    return [generatedFile(`src/generated/${folder}/external/${file}.ts`, printShapes([...shapes, { ...root, doc }]))];
  });
}

/** Returns the imports of the types of external resources, each by the name that it has in the files of a controller. */
export function externalDependentImports(controller: ControllerModel, folder: string): string[] {
  const importOf = (module: string, name: string, alias: string) => printImport([{ name, alias }], module, true);
  const resources = ownTypesOf(controller).map((dependent) => {
    const { file, resource } = dependentNamesOf(dependent);
    const { type } = dependent.external;
    if (type.kind === "imported") return importOf(moduleOf(type.file), type.name, resource);
    return type.kind === "schema"
      ? importOf(`./external/${file}.js`, resource, resource)
      : importOf(`../../${folder}/dependents/${file}.js`, "Resource", resource);
  });
  const drafts = draftsOf(controller).map(([draft, { file, name }]) => importOf(moduleOf(file), name, draft));
  const kept = keptOf(controller).map(([name, type]) => importOf(moduleOf(type.file), type.name, name));
  return [...resources, ...drafts, ...kept];
}

// From the folder of a controller in src/generated.
function moduleOf(file: string): string {
  return `../../../${file.replace(/\.ts$/, ".js")}`.replace("../../../src/", "../../");
}

/** Returns the desired types that differ from those of resources, by their names in the files of a controller. */
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

// The schema of the kind says what is kept, and that the id is a text; whether that has to be there is for the runtime to say.
function keptFieldOf(
  { resource, path, isMap }: Extract<KeptTypeModel, { kind: "field" }>,
  names: ControllerNames,
): TypeNode {
  const whole = nameOrThrow(names.resources, resource).localName;
  const field = path.reduce((type, name) => `NonNullable<${type}[${JSON.stringify(name)}]>`, whole);
  return intersection(isMap ? `NonNullable<${field}[string]>` : field, objectOf({ "readonly id": "string" }));
}

/** Returns the export of the same types, for the user's files. */
export function externalDependentExports(controller: ControllerModel): string[] {
  const names = [
    ...ownTypesOf(controller).map((dependent) => dependentNamesOf(dependent).resource),
    ...draftsOf(controller).map(([draft]) => draft),
    ...keptOf(controller).map(([kept]) => kept),
  ];
  return names.length === 0 ? [] : [printExport(names, true)];
}

/** Returns the type of the user's constant with the functions that find and change an external resource, and what it needs. */
export function externalTypesOf(
  dependent: ExternalDependentModel,
  names: ControllerNames,
  desired: TypeNode,
): { readonly aliases: string[]; readonly declaration: string } {
  const types = dependentNamesOf(dependent);
  const { live, input } = dependentTypesOf(dependent, names);
  const { source, capabilities, state, keptType, isSelected } = dependent.external;
  const stateType = union(keptType === undefined ? "string" : types.kept, "undefined");
  const given = objectOf({ ...(state !== undefined && { "readonly state?": stateType }), "readonly token": "string" });
  const args = intersection(types.arguments, given);
  // What the dependent waits for may be gone in a cleanup.
  const known = reference("DependentArguments", names.primary, names.dependents);
  const deletionArgs = dependent.waitsFor.length === 0 ? args : intersection(known, given);
  const context = reference("FetchContext", names.dependents, ...(keptType === undefined ? [] : [types.kept]));
  const functions: { readonly [name in ExternalFunction]: TypeNode | undefined } = {
    fetch:
      source.kind === "poll"
        ? fetchAllOf(live)
        : isFetched(dependent)
          ? functionOf({ primary: names.primary, context }, maybePromise(readonlyArrayOf(live)))
          : undefined,
    // Without a state, the id of the desired resource tells which resource is meant.
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
      doc: `/** What the operator calls for "${dependent.name}". */`,
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
    isOwn: `Tells whether a resource of a ${primary} belongs to "${name}". Its event source has resources of other dependents, too.`,
    stateOf: "Returns what is kept of a resource that was created, with its id as `id`.",
    desired:
      bulk === undefined
        ? `Returns the resource that a ${primary} needs.`
        : `Returns the resources that a ${primary} needs, by keys. Resources that it no longer returns are deleted.`,
    create: "Creates the resource and returns it as the service has it. Called again if it fails, with the same token.",
    update: "Changes the live resource into the desired one and returns it as the service has it.",
    delete: `Deletes the resource. Has to succeed if the resource no longer exists.${
      waitsFor.length === 0 ? "" : " While the primary is being deleted, anything may be missing in `secondary`."
    }`,
  };
}

/** Returns the type of a function that fetches the resources of all primaries, by their keys. */
export function fetchAllOf(resource: string): TypeNode {
  return functionOf({ context: SIGNAL }, maybePromise(reference("ReadonlyMap", "string", readonlyArrayOf(resource))));
}

/** What a function that fetches is given besides a primary. */
export const SIGNAL = objectOf({ "readonly signal": "AbortSignal" });

// The resources of an event source have its type.
function ownTypesOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((dependent) =>
    isKubernetes(dependent) || dependent.external.source.kind === "eventSource" ? [] : [dependent],
  );
}
