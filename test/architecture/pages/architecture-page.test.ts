// The page about the architecture of the runtime says what the code says.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { layers } from "../layer-table.js";

const HOPS = 22;

suite("the page about the architecture", (test) => {
  const page = readFileSync(join(repositoryRoot, "runtime/docs/architecture.md"), "utf8");
  const rowsOf = (heading: string) => {
    const [, section = ""] = page.split(`## ${heading}\n`);
    const lines = section.split("\n## ")[0]!.split("\n");
    const rows = lines.filter((line) => line.startsWith("|")).map((line) => line.split("|").slice(1, -1));
    return rows.slice(2).map((cells) => cells.map((cell) => cell.trim()));
  };
  const namesIn = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);

  test("has the table of layers", () => {
    const rows = rowsOf("Rooms").filter(([room]) => room !== "`assemble`");
    const told = rows.map(([room, , values, types]) => [namesIn(room)[0], namesIn(values), namesIn(types)]);
    const wanted = Object.entries(layers.runtime).map(([room, { values, types = [] }]) => [room, values, types]);
    const sorted = (table: unknown[][]) =>
      table
        .map(([room, ...lists]) => [room, ...lists.map((each) => [...(each as string[])].sort())])
        .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    assert.equal(sorted(told), sorted(wanted));
  });

  test(`names at most ${HOPS} functions from an event to a write, which are in the files that it names`, () => {
    const rows = rowsOf("From an event to a write");
    assert.is(rows.length > 0 && rows.length <= HOPS, true, `${rows.length} rows`);
    const missing = rows.flatMap(([, functions, file]) => {
      const text = readFileSync(join(repositoryRoot, "runtime/src", namesIn(file)[0]!), "utf8");
      const names = namesIn(functions).flatMap((name) => name.split("."));
      return names.filter((name) => !isDeclaredIn(text, name)).map((name) => `${file} declares no ${name}`);
    });
    assert.equal(missing, []);
  });
});

/** Tells whether a class, a function or a method of this name begins in a text, and is not only called or imported there. */
function isDeclaredIn(text: string, name: string): boolean {
  const isMember = new RegExp(`^ +(async )?${name}(<[^(]*>)?(\\([^\\n]*(\\{|,|\\()$|\\($|: (async )?\\()`, "m");
  return new RegExp(`\\b((class|function) ${name}\\b|const ${name} = (async )?\\()`).test(text) || isMember.test(text);
}
