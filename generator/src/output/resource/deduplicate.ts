import type { ShapeModel, TypeModel } from "./shape-model.js";

/**
 * Finds shapes that are the same but for their name; returns the name of the first one by the name of each later one.
 *
 * Large kinds repeat a pod template dozens of times. Every path keeps its name, as an alias, so no name changes when a repetition ends.
 */
export function findDuplicates(shapes: readonly ShapeModel[]): ReadonlyMap<string, string> {
  const byName = new Map(shapes.map((shape) => [shape.name, shape]));
  const aliases = new Map<string, string>();
  const firstByContent = new Map<string, string>();
  const visited = new Set<string>();
  const visit = (shape: ShapeModel) => {
    if (visited.has(shape.name)) return;
    visited.add(shape.name);
    for (const { type } of shape.fields) {
      const name = shapeNameIn(type);
      const child = name === undefined ? undefined : byName.get(name);
      if (child !== undefined) visit(child);
    }
    const fields = shape.fields.map((field) => ({ ...field, type: renameShapes(field.type, aliases) }));
    // A shape for writers and one for readers are printed in different ways.
    const content = JSON.stringify([fields, shape.isOpen, shape.doc, shape.base !== undefined]);
    const first = firstByContent.get(content);
    if (first === undefined) firstByContent.set(content, shape.name);
    else aliases.set(shape.name, first);
  };
  shapes.forEach(visit);
  return aliases;
}

/** Returns the shape that a type consists of or contains. */
export function shapeNameIn(type: TypeModel): string | undefined {
  if (type.kind === "shape") return type.name;
  if (type.kind === "array") return shapeNameIn(type.items);
  return type.kind === "map" ? shapeNameIn(type.values) : undefined;
}

/** Returns a type with its shape renamed. */
export function renameShapes(type: TypeModel, names: ReadonlyMap<string, string>): TypeModel {
  if (type.kind === "shape") return { ...type, name: names.get(type.name) ?? type.name };
  if (type.kind === "array") return { ...type, items: renameShapes(type.items, names) };
  return type.kind === "map" ? { ...type, values: renameShapes(type.values, names) } : type;
}
