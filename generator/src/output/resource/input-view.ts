import { renameShapes, shapeNameIn } from "./deduplicate.js";
import { NameAllocator } from "../naming.js";
import type { NormalisedSchema, ShapeModel } from "./shape-model.js";

/** The shapes that a writer fills in differently, and the names that they have for writers. */
export interface InputView {
  readonly root: ShapeModel;
  readonly shapes: readonly ShapeModel[];
  /** The name for writers by the name for readers; only where the two differ. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Derives what a writer has to state: a required field with a default may be left out.
 *
 * Readers find such a field always set, so it is a type of its own wherever it differs, and only there.
 */
export function inputViewOf({ root, shapes, names: taken }: NormalisedSchema): InputView {
  const view = inputShapesOf(shapes, taken);
  return { ...view, root: inputOf(root, view.names) };
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
  return { shapes: own.map((shape) => inputOf(shape, names)), names };
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
