/** The dependencies of each node of a graph, in topological order. */
export type Shape = ReadonlyMap<string, readonly string[]>;

/** The shapes to measure; josdk-workflow has the same ones with the same names. */
export type ShapeName = "chain" | "fan" | "grid";

const CHAIN_DEPTH = 10;
const FAN_WIDTH = 100;
const GRID_SIDE = 10;

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

/** A graph in which each node depends on the previous one. */
export function chain(depth: number): Shape {
  return new Map(indexes(depth).map((index) => [`n${index}`, index === 0 ? [] : [`n${index - 1}`]]));
}

/** A graph without dependencies. */
export function fan(width: number): Shape {
  return new Map(indexes(width).map((index) => [`n${index}`, []]));
}

/** A graph in which each node depends on its left and upper neighbors. */
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
