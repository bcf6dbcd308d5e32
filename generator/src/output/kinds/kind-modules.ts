import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import { shortNameOf } from "../../model/definitions.js";
import { classNameOf } from "../naming.js";
import { shapeNameIn } from "../resource/deduplicate.js";
import { inputOf, inputShapesOf } from "../resource/input-view.js";
import { normaliseBuiltin, normaliseDefinition } from "../resource/normalise.js";
import { groupPathOf } from "../resource/resource-name.js";
import { buildSchemaParts, type SchemaParts } from "../resource/runtime-schema.js";
import type { ShapeModel } from "../resource/shape-model.js";

/** A kind with its shapes, which refer to definitions by their full names. */
export interface KindModel {
  readonly resource: ResourceModel;
  readonly root: ShapeModel;
  readonly input: ShapeModel;
  readonly schema: SchemaParts;
}

/** What one module has: the kinds of a group and version, and the definitions of it that any kind refers to. */
export interface KindModule {
  /** `apps/v1`, or `meta/v1` for what all groups share. */
  readonly path: string;
  readonly kinds: readonly KindModel[];
  /** The shapes of the definitions, by whose full names they are called. */
  readonly shapes: readonly ShapeModel[];
  /** The schemas of the definitions, by their full names. */
  readonly schemas: SchemaParts["definitions"];
}

/** Divides built-in kinds and their definitions into modules, each definition into that of its group and version. */
export function buildKindModules(
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

/** Returns the shapes of the definitions that kinds consist of, sorted by their names. */
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

/** Returns the definitions that the fields of a shape refer to. */
export function shapesIn({ fields }: ShapeModel): string[] {
  return fields.flatMap(({ type }) => shapeNameIn(type) ?? []);
}

// io.k8s.api.networking.v1.IngressSpec and io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector: only the kinds tell the group in full.
function modulePathOf(definition: string, resources: readonly ResourceModel[]): string {
  const [version = "", group = ""] = definition.split(".").slice(0, -1).reverse();
  const named = resources.find((each) => each.version === version && (each.group || "core").split(".")[0] === group);
  return named === undefined ? `${group}/${version}` : groupPathOf(named);
}

/**
 * Returns the name of a definition in the module that exports it.
 *
 * A definition that is a kind as well, such as PersistentVolumeClaim in the template of a StatefulSet, is not the class of that kind:
 * there its apiVersion and kind may be left out.
 */
export function exportedNameOf(definition: string, kinds: readonly KindModel[]): string {
  const name = shortNameOf(definition);
  const isKind = kinds.some(({ resource }) => classNameOf(resource.kind) === name);
  return isKind ? `Embedded${name}` : name;
}
