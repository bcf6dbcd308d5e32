import type { ImportDeclarationStructure } from "ts-morph";
import { loadLibrary } from "../model/library.js";
import type { ImportedTypeModel, KeptTypeModel } from "../model/dependent-model.js";
import { isKubernetes, type ControllerModel, type ExternalDependentModel } from "../model/project-model.js";
import { dependentNamesOf, nameOrThrow, type ControllerNames } from "./controller-names.js";
import { dependentTypesOf, isFetched } from "./dependent-types.js";
import { shapesOf } from "./emit-resource.js";
import type { Printers } from "./emit-resource.js";
import { normaliseObject } from "./normalise.js";
import type { OutputFile } from "./output-file.js";
import type { Statements } from "./source-file.js";

const { StructureKind } = loadLibrary("ts-morph");

/** Emits the types of the external resources of which there is a schema. */
export function emitExternalTypes(
  controller: ControllerModel,
  { folder }: ControllerNames,
  { types, source }: Printers,
): Promise<OutputFile[]> {
  const files = ownTypesOf(controller).flatMap((dependent) => {
    const { type } = dependent.external;
    if (type.kind !== "schema") return [];
    const { file, resource } = dependentNamesOf(dependent);
    const { root, shapes } = normaliseObject(type.schema, resource);
    const doc = root.doc.length > 0 ? root.doc : [`A resource of "${dependent.name}", as its service has it.`];
    return [
      source.print(`src/generated/${folder}/external/${file}.ts`, [...shapesOf([...shapes, { ...root, doc }], types)]),
    ];
  });
  return Promise.all(files);
}

/** Returns the imports of the types of external resources, each by the name that it has in the files of a controller. */
export function externalDependentImports(controller: ControllerModel, folder: string): ImportDeclarationStructure[] {
  const importOf = (moduleSpecifier: string, name: string, alias: string): ImportDeclarationStructure => ({
    kind: StructureKind.ImportDeclaration,
    isTypeOnly: true,
    moduleSpecifier,
    namedImports: [name === alias ? { name } : { name, alias }],
  });
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
): string {
  const whole = nameOrThrow(names.resources, resource).localName;
  const field = path.reduce((type, name) => `NonNullable<${type}[${JSON.stringify(name)}]>`, whole);
  return `${isMap ? `NonNullable<${field}[string]>` : field} & { readonly id: string }`;
}

/** Returns the export of the same types, for the user's files. */
export function externalDependentExports(controller: ControllerModel): Statements & string[] {
  const names = [
    ...ownTypesOf(controller).map((dependent) => dependentNamesOf(dependent).resource),
    ...draftsOf(controller).map(([draft]) => draft),
    ...keptOf(controller).map(([kept]) => kept),
  ];
  return names.length === 0 ? [] : [`\nexport type { ${names.sort().join(", ")} };`];
}

/** Returns the types of the functions that find and change an external resource, by their names. */
export function externalFunctionTypesOf(
  dependent: ExternalDependentModel,
  names: ControllerNames,
): [name: string, type: string][] {
  const types = dependentNamesOf(dependent);
  const { live, input } = dependentTypesOf(dependent, names);
  const { source, capabilities, state, keptType, isSelected } = dependent.external;
  const kept =
    state === undefined ? "" : ` & { readonly state?: ${keptType === undefined ? "string" : types.kept} | undefined }`;
  const known = keptType === undefined ? names.dependents : `${names.dependents}, ${types.kept}`;
  const args = `args: ${types.arguments}${kept}`;
  const maybe = (type: string) => `${type} | Promise<${type}>`;
  const all: { readonly [name: string]: string | undefined } = {
    [types.kept]: keptType?.kind === "field" ? keptFieldOf(keptType, names) : undefined,
    [types.fetch]:
      source.kind === "poll"
        ? `(context: { readonly signal: AbortSignal }) => ${maybe(`ReadonlyMap<string, readonly ${live}[]>`)}`
        : isFetched(dependent)
          ? `(primary: ${names.primary}, context: FetchContext<${known}>) => ${maybe(`readonly ${live}[]`)}`
          : undefined,
    // Without a state, the id of the desired resource tells which resource is meant.
    [types.idOf]: `(resource: ${state === undefined && input !== live ? `${live} | ${input}` : live}) => string`,
    [types.isOwn]: isSelected === true ? `(resource: ${live}, primary: ${names.primary}) => boolean` : undefined,
    [types.stateOf]: keptType === undefined ? undefined : `(resource: ${live}) => ${types.kept}`,
    [types.create]: capabilities.includes("create") ? `(desired: ${input}, ${args}) => ${maybe(live)}` : undefined,
    [types.update]: capabilities.includes("update")
      ? `(desired: ${input}, live: ${live}, ${args}) => ${maybe(live)}`
      : undefined,
    [types.delete]: capabilities.includes("delete") ? `(live: ${live}, ${args}) => ${maybe("void")}` : undefined,
    [types.matcher]: dependent.matcher === undefined ? undefined : `(desired: ${input}, live: ${live}) => boolean`,
  };
  return Object.entries(all).flatMap(([name, type]) => (type === undefined ? [] : [[name, type] as [string, string]]));
}

// The resources of an event source have its type.
function ownTypesOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((dependent) =>
    isKubernetes(dependent) || dependent.external.source.kind === "eventSource" ? [] : [dependent],
  );
}
