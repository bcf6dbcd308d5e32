import type { RawSchema, ResourceModel } from "../model/project-model.js";
import { isRecord, schemasOf, shortNameOf } from "../model/schema.js";
import { classNameOf, groupPathOf } from "./names.js";
import { type OutputFile, generatedFile } from "./output-file.js";
import { type ImportSymbol, type Printed, valueFrom } from "./print.js";
import {
  inputOf,
  inputShapesOf,
  mapShapes,
  printClass,
  printInput,
  printShape,
  schemaNameOf,
  shapeNameIn,
} from "./resource/emit-resource.js";
import { type SchemaParts, buildSchemaParts, printSchemaAlone } from "./resource/runtime-schema.js";
import { type ShapeModel, normaliseBuiltin, normaliseDefinition } from "./resource/shape.js";

/** The module that exports a definition, and the exported name. */
interface Exported {
  readonly path: string;
  readonly name: string;
}

/**
 * Emits the package of the built-in kinds: for each group and version, a module with a class for each kind and a type for each definition, and a
 * module with the schemas for the runtime.
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
  const places = new Map<string, ShapePlace>();
  const taken = new Map<string, string>();
  for (const definition of new Set([...shapes.map(({ name }) => name), ...all.flatMap(shapesIn)])) {
    const { path: from, name } = exportedOrThrow(exported, definition);
    if (taken.has(name)) throw new Error(`${path} would have two types ${name}: ${taken.get(name)} and ${definition}`);
    taken.set(name, definition);
    places.set(definition, { name, ...(from === path ? {} : { from: `../${from}.js` }) });
  }
  const schemas = `./${path.slice(path.indexOf("/") + 1)}.schema.js`;
  const local = (shape: ShapeModel) => localShape(shape, places);
  return fileOf(path, [
    ...kinds.flatMap(({ resource, root, input }) => [
      printInput(resource, local(input)),
      printClass(resource, local(root), { schema: valueFrom(schemas, schemaNameOf(root.name)), isPure: true }),
    ]),
    ...shapes.map((shape) => printShape(local(shape))),
  ]);
}

/** The name of a shape in a module, and the module to import it from if it is another one. */
interface ShapePlace {
  readonly name: string;
  readonly from?: string;
}

function localShape({ base, ...shape }: ShapeModel, places: ReadonlyMap<string, ShapePlace>): ShapeModel {
  const placeOf = (name: string) => places.get(name) ?? { name };
  const fields = shape.fields.map((field) => ({ ...field, type: mapShapes(field.type, placeOf) }));
  const local = { ...shape, name: placeOf(shape.name).name, fields };
  return base === undefined ? local : { ...local, base: { ...base, name: placeOf(base.name).name } };
}

/** Emits the schemas of the kinds and definitions of a module. A kind lists all definitions that its schema references. */
function emitSchemas({ path, kinds, schemas }: KindModule, modules: readonly KindModule[]): OutputFile[] {
  const pathOf = new Map(modules.flatMap((each) => [...each.schemas.keys()].map((name) => [name, each.path] as const)));
  const constantOf = ([definition, { name }]: [string, { readonly name: string }]): string | ImportSymbol => {
    // References between definitions use the short name, which must be unique within a kind.
    if (name !== shortNameOf(definition)) throw new Error(`two definitions of one kind are called ${name}`);
    const from = pathOf.get(definition) ?? path;
    return from === path ? name : valueFrom(`../${from}.schema.js`, name);
  };
  return [
    fileOf(`${path}.schema`, [
      ...[...schemas.values()].map(({ name, schema }) => printSchemaAlone(name, schema)),
      ...kinds.map(({ root, schema }) =>
        printSchemaAlone(schemaNameOf(root.name), schema.root, [...schema.definitions].map(constantOf)),
      ),
    ]),
  ];
}

function exportedOrThrow(exported: ReadonlyMap<string, Exported>, definition: string): Exported {
  const found = exported.get(definition);
  if (found === undefined) throw new Error(`no module has ${definition}`);
  return found;
}

function fileOf(path: string, sections: readonly Printed[]): OutputFile {
  return generatedFile(`src/${path}.ts`, sections, {
    sortsModules: true,
    sortsNames: (from) => from.startsWith("../"),
  });
}

/** A kind with its shapes, which reference definitions by their full names. */
interface KindModel {
  readonly resource: ResourceModel;
  readonly root: ShapeModel;
  readonly input: ShapeModel;
  readonly schema: SchemaParts;
}

/** Contents of one module: the kinds of a group and version, and the definitions of that group and version that any kind references. */
interface KindModule {
  /** Path of the module, for example `apps/v1`, or `meta/v1` for definitions that all groups share. */
  readonly path: string;
  readonly kinds: readonly KindModel[];
  /** Shapes of the definitions, named by their full names. */
  readonly shapes: readonly ShapeModel[];
  /** Schemas of the definitions, by full name. */
  readonly schemas: SchemaParts["definitions"];
}

/** Divides built-in kinds and their definitions into modules by group and version. */
function buildKindModules(
  resources: readonly ResourceModel[],
  definitions: ReadonlyMap<string, RawSchema>,
): KindModule[] {
  const normalised = resources.map((resource) => ({
    ...{ resource, schema: buildSchemaParts(resource) },
    root: normaliseBuiltin(resource),
  }));
  const shapes = shapesOf(
    normalised.map(({ root }) => root),
    definitions,
  );
  const inputs = inputShapesOf(
    shapes,
    shapes.map(({ name }) => name),
  );
  const kinds = normalised.map((kind): KindModel => ({ ...kind, input: inputOf(kind.root, inputs.names) }));
  const schemas = new Map(kinds.flatMap(({ schema }) => [...schema.definitions]));
  const pathOf = (definition: string) => modulePathOf(definition, resources);
  const paths = new Set([...kinds.map(({ resource }) => groupPathOf(resource)), ...[...schemas.keys()].map(pathOf)]);
  return [...paths].sort().map((path) => ({
    path,
    kinds: kinds.filter(({ resource }) => groupPathOf(resource) === path),
    shapes: [...shapes, ...inputs.shapes].filter(({ name }) => pathOf(name) === path),
    schemas: new Map([...schemas].filter(([name]) => pathOf(name) === path).sort(([a], [b]) => (a < b ? -1 : 1))),
  }));
}

/** Returns the shapes of the definitions that kinds reference, sorted by name. */
function shapesOf(roots: readonly ShapeModel[], definitions: ReadonlyMap<string, RawSchema>): ShapeModel[] {
  const found = new Map<string, ShapeModel>();
  const visit = (shape: ShapeModel): void => {
    for (const name of shapesIn(shape)) {
      if (found.has(name)) continue;
      const inner = normaliseDefinition(name, definitions);
      found.set(name, inner);
      visit(inner);
    }
  };
  roots.forEach(visit);
  return [...found.values()].sort((left, right) => (left.name < right.name ? -1 : 1));
}

/** Returns the definitions that the fields of a shape reference. */
function shapesIn({ fields }: ShapeModel): string[] {
  return fields.flatMap(({ type }) => shapeNameIn(type) ?? []);
}

// Definitions such as io.k8s.api.networking.v1.IngressSpec only contain the first part of the group, so look up the full one among the kinds.
function modulePathOf(definition: string, resources: readonly ResourceModel[]): string {
  const [version = "", group = ""] = definition.split(".").slice(0, -1).reverse();
  const named = resources.find((each) => each.version === version && (each.group || "core").split(".")[0] === group);
  return named === undefined ? `${group}/${version}` : groupPathOf(named);
}

/**
 * Returns the name under which a module exports a definition.
 *
 * A definition that is also a kind, such as PersistentVolumeClaim in the template of a StatefulSet, gets the prefix `Embedded`. Unlike in the class
 * of the kind, its apiVersion and kind are optional.
 */
function exportedNameOf(definition: string, kinds: readonly KindModel[]): string {
  const name = shortNameOf(definition);
  const isKind = kinds.some(({ resource }) => classNameOf(resource.kind) === name);
  return isKind ? `Embedded${name}` : name;
}

/** Descriptions of definitions and their fields, by name. The empty name is the definition itself. */
type Descriptions = { readonly [definition: string]: { readonly [field: string]: string } };

/** Adds descriptions to definitions. */
export function describe(
  definitions: ReadonlyMap<string, RawSchema>,
  descriptions: Descriptions,
): ReadonlyMap<string, RawSchema> {
  return new Map(
    [...definitions].map(([name, schema]) => {
      const texts = Object.hasOwn(descriptions, name) ? descriptions[name] : undefined;
      return [name, texts === undefined ? schema : describeOne(schema, texts)];
    }),
  );
}

function describeOne(schema: RawSchema, { "": own, ...fields }: { readonly [field: string]: string }): RawSchema {
  const described = own === undefined ? schema : { ...schema, description: own };
  if (!isRecord(schema["properties"])) return described;
  const properties = [...schemasOf(schema, "properties")].map(([name, field]) => {
    const text = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return [name, text === undefined ? field : { ...field, description: text }] as const;
  });
  return { ...described, properties: Object.fromEntries(properties) };
}
