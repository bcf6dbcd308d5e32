// Which list-watches know that their server was restored, and until when nothing is written from what they know.
import { Restores } from "#runtime/watch/informer.js";
import { assert, suite } from "../../../support/suite.js";

/** The list-watches of one server; each writes down when it is told. */
function createBed(...names: string[]) {
  const restores = new Restores();
  const told: string[] = [];
  const listeners = new Map(names.map((name) => [name, () => void told.push(name)]));
  const leave = new Map([...listeners].map(([name, listener]) => [name, restores.add(listener)]));
  const of = (name: string) => listeners.get(name)!;
  return { restores, told, of, leave: (name: string) => leave.get(name)!() };
}

suite("restores", (test) => {
  test("notify the other list-watches of the server once", () => {
    const { restores, told, of } = createBed("a", "b", "c");
    assert.not(restores.isUnderWay());
    restores.markRestored(of("b"));
    restores.markRestored(of("a"));
    assert.equal(told, ["a", "c"]);
  });

  test("are in progress until each list-watch has relisted, failed or ended", () => {
    const { restores, of, leave } = createBed("a", "b", "c");
    restores.markRestored(of("b"));
    restores.settle(of("a"));
    restores.settle(of("b"));
    assert.ok(restores.isUnderWay());
    leave("c");
    assert.not(restores.isUnderWay());
  });

  test("notify again if the server is restored again", () => {
    const { restores, told, of } = createBed("a", "b");
    for (const name of ["a", "b"]) {
      restores.markRestored(of(name));
      restores.settle(of("a"));
      restores.settle(of("b"));
    }
    assert.equal(told, ["b", "a"]);
  });
});
