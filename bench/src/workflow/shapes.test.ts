import { assert, suite } from "#test/support/suite.js";
import { chain, fan, grid, type Shape, shapeOf } from "./shapes.js";

/** Returns whether each node follows its dependencies. */
function isOrdered(shape: Shape): boolean {
  const names = [...shape.keys()];
  return [...shape].every(([name, needed]) => needed.every((each) => names.indexOf(each) < names.indexOf(name)));
}

suite("graph shapes", (test) => {
  test("chain: each node depends on the previous one", () => {
    assert.equal(
      [...chain(3)],
      [
        ["n0", []],
        ["n1", ["n0"]],
        ["n2", ["n1"]],
      ],
    );
  });

  test("fan: no node depends on another", () => {
    assert.equal(
      [...fan(2)],
      [
        ["n0", []],
        ["n1", []],
      ],
    );
  });

  test("grid: each node depends on its upper and left neighbors", () => {
    assert.equal(
      [...grid(2)],
      [
        ["n0-0", []],
        ["n0-1", ["n0-0"]],
        ["n1-0", ["n0-0"]],
        ["n1-1", ["n0-1", "n1-0"]],
      ],
    );
  });

  test("have 10, 100 and 100 nodes in topological order", () => {
    const sizes = (["chain", "fan", "grid"] as const).map((name) => {
      assert.ok(isOrdered(shapeOf(name)), name);
      return shapeOf(name).size;
    });
    assert.equal(sizes, [10, 100, 100]);
  });
});
