import { assert, suite } from "#test/support/suite.js";
import { chain, fan, grid, type Shape, shapeOf } from "./shapes.js";

/** Whether each node comes after those that it depends on. */
function isOrdered(shape: Shape): boolean {
  const names = [...shape.keys()];
  return [...shape].every(([name, needed]) => needed.every((each) => names.indexOf(each) < names.indexOf(name)));
}

suite("shapes of graphs", (test) => {
  test("in a chain each node depends on the one before", () => {
    assert.equal(
      [...chain(3)],
      [
        ["n0", []],
        ["n1", ["n0"]],
        ["n2", ["n1"]],
      ],
    );
  });

  test("in a fan no node depends on another", () => {
    assert.equal(
      [...fan(2)],
      [
        ["n0", []],
        ["n1", []],
      ],
    );
  });

  test("in a grid each node depends on its upper and its left neighbour", () => {
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

  test("each measured shape has its size, and an order in which it can be created", () => {
    const sizes = (["chain", "fan", "grid"] as const).map((name) => {
      assert.ok(isOrdered(shapeOf(name)), name);
      return shapeOf(name).size;
    });
    assert.equal(sizes, [10, 100, 100]);
  });
});
