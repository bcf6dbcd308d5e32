import { shortNameOf } from "../../model/definitions.js";
import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { printImport } from "../print/declarations.js";
import { printSchemaAlone } from "../print/print-schema.js";
import { renameShapes } from "../resource/deduplicate.js";
import {
  printClass,
  printInput,
  RESOURCE_VALUES,
  runtimeTypesIn,
  schemaNameOf,
  typesOfClass,
} from "../resource/print-class.js";
import { printShape } from "../resource/print-types.js";
import type { ShapeModel } from "../resource/shape-model.js";
import { codegenModule, type RuntimeType } from "../runtime-symbols.js";
import { buildKindModules, exportedNameOf, shapesIn, type KindModel, type KindModule } from "./kind-modules.js";

/** Where a definition is exported, and under which name. */
interface Exported {
  readonly path: string;
  readonly name: string;
}

/**
 * Emits the package of the built-in kinds: a module for each group and version, with a class for each kind and a type for each definition,
 * and beside it the schemas that the runtime reads.
 */
export function emitKinds(
  resources: readonly ResourceModel[],
  definitions: ReadonlyMap<string, RawSchema>,
): OutputFile[] {
  const modules = buildKindModules(resources, definitions);
  const exported = new Map<string, Exported>();
  for (const { path, kinds, shapes } of modules)
    for (const { name } of shapes) exported.set(name, { path, name: exportedNameOf(name, kinds) });
  return modules.flatMap((module) => [emitTypes(module, exported), ...emitSchemas(module, modules)]);
}

function emitTypes({ path, kinds, shapes }: KindModule, exported: ReadonlyMap<string, Exported>): OutputFile {
  const all = [...shapes, ...kinds.flatMap(({ root, input }) => [root, input])];
  const imports = new Map<string, Set<string>>();
  const localNames = new Map<string, string>();
  const taken = new Map<string, string>();
  for (const definition of new Set([...shapes.map(({ name }) => name), ...all.flatMap(shapesIn)])) {
    const { path: from, name } = exportedOrThrow(exported, definition);
    if (taken.has(name)) throw new Error(`${path} would have two types ${name}: ${taken.get(name)} and ${definition}`);
    taken.set(name, definition);
    localNames.set(definition, name);
    if (from !== path) imports.set(from, (imports.get(from) ?? new Set()).add(name));
  }
  const isOfClasses = kinds.length > 0;
  const runtimeTypes = new Set<RuntimeType>([
    ...kinds.flatMap(({ resource }) => typesOfClass(resource)),
    ...runtimeTypesIn(all),
  ]);
  const local = (shape: ShapeModel) => localShape(shape, localNames);
  const sections = [
    ...kinds.flatMap(({ resource, root, input }) => [
      printInput(resource, local(input)),
      printClass(resource, local(root), { isPure: true }),
    ]),
    ...shapes.map((shape) => printShape(local(shape))),
  ];
  const importLines = [
    ...(isOfClasses ? [printImport(RESOURCE_VALUES, codegenModule)] : []),
    ...(runtimeTypes.size > 0 ? [printImport([...runtimeTypes].sort(), codegenModule, true)] : []),
    ...importsOf(imports, ".js", true),
    ...(isOfClasses
      ? [
          printImport(
            kinds.map(({ root }) => schemaNameOf(root.name)),
            `./${path.slice(path.indexOf("/") + 1)}.schema.js`,
          ),
        ]
      : []),
  ];
  return fileOf(path, [...(importLines.length > 0 ? [importLines.join("\n")] : []), ...sections]);
}

function localShape({ base, ...shape }: ShapeModel, names: ReadonlyMap<string, string>): ShapeModel {
  const fields = shape.fields.map((field) => ({ ...field, type: renameShapes(field.type, names) }));
  const local = { ...shape, name: names.get(shape.name) ?? shape.name, fields };
  return base === undefined ? local : { ...local, base: { ...base, name: names.get(base.name) ?? base.name } };
}

/** Emits the schemas of the kinds and definitions of a module. A kind lists all definitions that its schema refers to. */
function emitSchemas({ path, kinds, schemas }: KindModule, modules: readonly KindModule[]): OutputFile[] {
  const pathOf = new Map(modules.flatMap((each) => [...each.schemas.keys()].map((name) => [name, each.path] as const)));
  const imports = new Map<string, Set<string>>();
  for (const { schema } of kinds)
    for (const [definition, { name }] of schema.definitions) {
      // What a definition refers to is known by its short name, whichever kind it belongs to.
      if (name !== shortNameOf(definition)) throw new Error(`two definitions of one kind are called ${name}`);
      const from = pathOf.get(definition) ?? path;
      if (from !== path) imports.set(from, (imports.get(from) ?? new Set()).add(name));
    }
  const sections = [
    [printImport(["Schema"], codegenModule, true), ...importsOf(imports, ".schema.js")].join("\n"),
    ...[...schemas.values()].map(({ name, schema }) => printSchemaAlone(name, schema)),
    ...kinds.map(printRoot),
  ];
  return [fileOf(`${path}.schema`, sections)];
}

function importsOf(imports: ReadonlyMap<string, ReadonlySet<string>>, ending: string, isTypeOnly = false): string[] {
  return [...imports]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([from, names]) => printImport([...names].sort(), `../${from}${ending}`, isTypeOnly));
}

function printRoot({ root, schema }: KindModel): string {
  const names = [...schema.definitions.values()].map(({ name }) => name).sort();
  return printSchemaAlone(schemaNameOf(root.name), schema.root, names);
}

function exportedOrThrow(exported: ReadonlyMap<string, Exported>, definition: string): Exported {
  const found = exported.get(definition);
  if (found === undefined) throw new Error(`no module has ${definition}`);
  return found;
}

function fileOf(path: string, sections: readonly string[]): OutputFile {
  return generatedFile(`src/${path}.ts`, sections);
}
