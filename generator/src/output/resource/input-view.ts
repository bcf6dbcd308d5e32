import { renameShapes, shapeNameIn } from "./deduplicate.js";
import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import { ownSchema, schemasOf } from "../../model/schema/raw-schema.js";
import { NameAllocator } from "../naming.js";
import { normaliseSchema } from "./normalise.js";
import type { FieldModel, NormalisedSchema, ShapeModel } from "./shape-model.js";

/** The shapes that a writer fills in differently, and the names that they have for writers. */
export interface InputView {
  readonly root: ShapeModel;
  readonly shapes: readonly ShapeModel[];
  /** The name for writers by the name for readers; only where the two differ. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Derives what a writer has to state: a field with a default may be left out.
 *
 * Readers find such a field always set, so it is a type of its own wherever it differs, and only there.
 */
export function inputViewOf({ root, shapes, names: taken }: NormalisedSchema): InputView {
  const view = inputShapesOf(shapes, taken);
  return { ...view, root: inputOf(root, view.names) };
}

/** Returns the name of what a writer fills in of the status of a custom kind; undefined if it is what a reader finds. */
export function statusInputOf(resource: ResourceModel): string | undefined {
  const status = schemasOf(resource.schema, "properties").get("status");
  // To find that out from the shapes takes long, and few kinds have such a status.
  if (!resource.isCustom || status === undefined || !hasDefault(status)) return undefined;
  const schema = normaliseSchema(resource);
  const name = shapeNameIn(schema.root.fields.find((field) => field.name === "status")?.type ?? { kind: "any" });
  return inputViewOf(schema).names.get(name ?? "");
}

function hasDefault(schema: RawSchema): boolean {
  const inner = [...schemasOf(schema, "properties").values(), ownSchema(schema, "items")];
  const all = [...inner, ownSchema(schema, "additionalProperties")];
  return schema["default"] !== undefined || all.some((each) => each !== undefined && hasDefault(each));
}

/** Derives the shapes that a writer fills in differently; `taken` are names that others have. */
export function inputShapesOf(shapes: readonly ShapeModel[], taken: Iterable<string>): Omit<InputView, "root"> {
  const changed = findChanged(shapes);
  const allocator = new NameAllocator(taken);
  const names = new Map(
    shapes
      .filter(({ name }) => changed.has(name))
      .map(({ name }) => [name, allocator.allocate(`${name}Input`, [name, "(input)"])]),
  );
  const own = shapes.filter(({ name }) => names.has(name));
  // A kind may be called Omit.
  const baseIn = new Set(taken).has("Omit") ? () => ({}) : baseOf;
  return { shapes: own.map((shape) => ({ ...inputOf(shape, names), ...baseIn(shape, names) })), names };
}

/** Returns a shape as a writer fills it in; `names` are those of the shapes that differ. */
export function inputOf(shape: ShapeModel, names: ReadonlyMap<string, string>): ShapeModel {
  return {
    ...shape,
    name: names.get(shape.name) ?? shape.name,
    fields: shape.fields.map((field) => ({
      ...field,
      type: renameShapes(field.type, names),
      isRequired: field.isRequired && field.default === undefined,
    })),
  };
}

function baseOf({ name, fields, isOpen }: ShapeModel, names: ReadonlyMap<string, string>): Pick<ShapeModel, "base"> {
  const isChanged = (field: FieldModel) =>
    (field.isRequired && field.default !== undefined) || names.has(shapeNameIn(field.type) ?? "");
  const redeclared = fields.filter(isChanged).map((field) => field.name);
  // Omit would make fields of any name of those that are named, and is of no use for all fields.
  return isOpen || redeclared.length === fields.length ? {} : { base: { name, redeclared } };
}

// A shape may contain itself, so the set grows until nothing is added.
function findChanged(shapes: readonly ShapeModel[]): ReadonlySet<string> {
  const changed = new Set<string>();
  for (let size = -1; size < changed.size;) {
    size = changed.size;
    for (const { name, fields } of shapes) {
      const isChanged = fields.some(
        (field) => (field.isRequired && field.default !== undefined) || changed.has(shapeNameIn(field.type) ?? ""),
      );
      if (isChanged) changed.add(name);
    }
  }
  return changed;
}
