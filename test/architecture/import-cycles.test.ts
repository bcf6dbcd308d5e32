import { assert, suite } from "../support/suite.js";
import { packages, readSources, type SourceFile } from "./source-files.js";

suite("import cycles", (test) => {
  for (const name of packages) {
    test(`the sources of ${name} import each other without a cycle`, () => {
      assert.equal(findCycles(readSources(`${name}/src`)), []);
    });
  }

  test("a cycle is reported with its full path", () => {
    const file = (path: string, ...targets: string[]): SourceFile => ({
      path,
      text: "",
      syntax: undefined as never,
      imports: targets.map((target) => ({ line: 1, specifier: target, isTypeOnly: false, target })),
    });
    assert.equal(findCycles([file("a", "b"), file("b", "c"), file("c", "b"), file("d", "a")]), ["b → c → b"]);
  });
});

/** Cycles among imports that are left at run time; each is named once. */
function findCycles(sources: SourceFile[]): string[] {
  const targets = new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter(({ isTypeOnly }) => !isTypeOnly).flatMap(({ target }) => target ?? []),
    ]),
  );
  const finished = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: string[]): void => {
    if (trail.includes(path)) {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(" → "));
      return;
    }
    if (finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return cycles;
}
