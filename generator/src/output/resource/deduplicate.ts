import type { FieldModel, ShapeModel, TypeModel } from "./shape-model.js";

/**
 * Finds shapes that are the same but for their name; returns the name of the first one by the name of each later one.
 *
 * Large kinds repeat a pod template dozens of times. Every path keeps its name, as an alias, so no name changes when a repetition ends.
 */
export function findDuplicates(shapes: readonly ShapeModel[]): ReadonlyMap<string, string> {
  const byName = new Map(shapes.map((shape) => [shape.name, shape]));
  const aliases = new Map<string, string>();
  const distinct = new Map<string, ShapeModel[]>();
  const visited = new Set<string>();
  const visit = (shape: ShapeModel) => {
    if (visited.has(shape.name)) return;
    visited.add(shape.name);
    for (const { type } of shape.fields) {
      const name = shapeNameIn(type);
      const child = name === undefined ? undefined : byName.get(name);
      if (child !== undefined) visit(child);
    }
    // The documentation is most of a shape, so only shapes with the same fields are compared as a whole.
    const outline = outlineOf(shape);
    const similar = distinct.get(outline) ?? [];
    const first = similar.find((each) => isSame(each, shape, aliases));
    if (first !== undefined) aliases.set(shape.name, first.name);
    else distinct.set(outline, [...similar, shape]);
  };
  shapes.forEach(visit);
  return aliases;
}

function outlineOf({ fields }: ShapeModel): string {
  return fields.map(({ name }) => name).join();
}

// A shape for writers and one for readers are printed in different ways.
function isSame(left: ShapeModel, right: ShapeModel, aliases: ReadonlyMap<string, string>): boolean {
  return (
    left.isOpen === right.isOpen &&
    (left.base === undefined) === (right.base === undefined) &&
    isSameList(left.doc, right.doc) &&
    isSameList(left.fields, right.fields, (one, other) => isSameField(one, other, aliases))
  );
}

function isSameField(left: FieldModel, right: FieldModel, aliases: ReadonlyMap<string, string>): boolean {
  return (
    left.name === right.name &&
    left.isRequired === right.isRequired &&
    isSameType(left.type, right.type, aliases) &&
    isSameList(left.doc, right.doc) &&
    (left.default === right.default || JSON.stringify(left.default) === JSON.stringify(right.default))
  );
}

function isSameType(left: TypeModel, right: TypeModel, aliases: ReadonlyMap<string, string>): boolean {
  if (left.kind !== right.kind || left.isNullable !== right.isNullable) return false;
  if (left.kind === "array" && right.kind === "array") return isSameType(left.items, right.items, aliases);
  if (left.kind === "map" && right.kind === "map") return isSameType(left.values, right.values, aliases);
  if (left.kind === "scalar" && right.kind === "scalar") return left.type === right.type;
  if (left.kind !== "shape" || right.kind !== "shape") return JSON.stringify(left) === JSON.stringify(right);
  return (aliases.get(left.name) ?? left.name) === (aliases.get(right.name) ?? right.name);
}

function isSameList<Item>(
  left: readonly Item[],
  right: readonly Item[],
  isSameItem: (left: Item, right: Item) => boolean = Object.is,
): boolean {
  return left.length === right.length && left.every((item, index) => isSameItem(item, right[index] as Item));
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
