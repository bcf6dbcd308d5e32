/** The nodes of a graph, each with those that it depends on, in an order in which they can be created. */
export type Shape = ReadonlyMap<string, readonly string[]>;

/** The shapes that are measured; those of josdk-workflow have the same names. */
export type ShapeName = "chain" | "fan" | "grid";

const CHAIN_DEPTH = 10;
const FAN_WIDTH = 100;
const GRID_SIDE = 10;

/** Returns a shape by its name. */
export function shapeOf(name: ShapeName): Shape {
  switch (name) {
    case "chain":
      return chain(CHAIN_DEPTH);
    case "fan":
      return fan(FAN_WIDTH);
    case "grid":
      return grid(GRID_SIDE);
  }
}

/** Each node depends on the one before. */
export function chain(depth: number): Shape {
  return new Map(indexes(depth).map((index) => [`n${index}`, index === 0 ? [] : [`n${index - 1}`]]));
}

/** No node depends on another. */
export function fan(width: number): Shape {
  return new Map(indexes(width).map((index) => [`n${index}`, []]));
}

/** Each node depends on its left and its upper neighbour. */
export function grid(side: number): Shape {
  const name = (row: number, column: number) => `n${row}-${column}`;
  const needed = (row: number, column: number) => [
    ...(row > 0 ? [name(row - 1, column)] : []),
    ...(column > 0 ? [name(row, column - 1)] : []),
  ];
  return new Map(
    indexes(side).flatMap((row) => indexes(side).map((column) => [name(row, column), needed(row, column)] as const)),
  );
}

function indexes(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
