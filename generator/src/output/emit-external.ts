import type { ImportDeclarationStructure } from "ts-morph";
import { loadLibrary } from "../model/library.js";
import { isKubernetes, type ControllerModel, type ExternalDependentModel } from "../model/project-model.js";
import { dependentNamesOf, type ControllerNames } from "./controller-names.js";
import { dependentTypesOf } from "./dependent-types.js";
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
    const doc = root.doc.length > 0 ? root.doc : [`One of "${dependent.name}", as it is outside of Kubernetes.`];
    return [
      source.print(`src/generated/${folder}/external/${file}.ts`, [...shapesOf([...shapes, { ...root, doc }], types)]),
    ];
  });
  return Promise.all(files);
}

/** Returns the imports of the types of external resources, each by the name that it has in the files of a controller. */
export function externalDependentImports(controller: ControllerModel, folder: string): ImportDeclarationStructure[] {
  return ownTypesOf(controller).map((dependent) => {
    const { file, resource } = dependentNamesOf(dependent);
    const { type } = dependent.external;
    const [moduleSpecifier, name] =
      type.kind === "declared"
        ? [`../../${folder}/dependents/${file}.js`, "Resource"]
        : type.kind === "schema"
          ? [`./external/${file}.js`, resource]
          : [`../../../${type.file.replace(/\.ts$/, ".js")}`, type.name];
    return {
      kind: StructureKind.ImportDeclaration,
      isTypeOnly: true,
      moduleSpecifier,
      namedImports: [name === resource ? { name } : { name, alias: resource }],
    };
  });
}

/** Returns the export of the same types, for the user's files. */
export function externalDependentExports(controller: ControllerModel): Statements & string[] {
  const names = ownTypesOf(controller).map((dependent) => dependentNamesOf(dependent).resource);
  return names.length === 0 ? [] : [`\nexport type { ${names.sort().join(", ")} };`];
}

/** Returns the types of the functions that find and change an external resource, by their names. */
export function externalFunctionTypesOf(
  dependent: ExternalDependentModel,
  names: ControllerNames,
): [name: string, type: string][] {
  const types = dependentNamesOf(dependent);
  const { live } = dependentTypesOf(dependent, names);
  const { source, capabilities, state } = dependent.external;
  const kept = state === undefined ? "" : " & { readonly state?: string | undefined }";
  const args = `args: ${types.arguments}${kept}`;
  const maybe = (type: string) => `${type} | Promise<${type}>`;
  const all: { readonly [name: string]: string | undefined } = {
    [types.fetch]:
      source.kind === "poll"
        ? `(context: { readonly signal: AbortSignal }) => ${maybe(`ReadonlyMap<string, readonly ${live}[]>`)}`
        : source.kind === "perPrimaryPoll"
          ? `(primary: ${names.primary}, context: FetchContext<${names.dependents}>) => ${maybe(`readonly ${live}[]`)}`
          : undefined,
    [types.idOf]: `(resource: ${live}) => string`,
    [types.create]: capabilities.includes("create") ? `(desired: ${live}, ${args}) => ${maybe(live)}` : undefined,
    [types.update]: capabilities.includes("update")
      ? `(desired: ${live}, live: ${live}, ${args}) => ${maybe(live)}`
      : undefined,
    [types.delete]: capabilities.includes("delete") ? `(live: ${live}, ${args}) => ${maybe("void")}` : undefined,
    [types.matcher]: dependent.matcher === undefined ? undefined : `(desired: ${live}, live: ${live}) => boolean`,
  };
  return Object.entries(all).flatMap(([name, type]) => (type === undefined ? [] : [[name, type] as [string, string]]));
}

// The resources of an event source have its type.
function ownTypesOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((dependent) =>
    isKubernetes(dependent) || dependent.external.source.kind === "eventSource" ? [] : [dependent],
  );
}
