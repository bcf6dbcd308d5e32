// A tour through a package leads along functions and files that are there.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { isDeclaredIn, namesIn, rowsWith } from "./declared-names.js";

const STEPS = 16;

suite("tours", (test) => {
  for (const name of ["apiserver", "generator", "schema"]) {
    const page = readFileSync(join(repositoryRoot, name, "docs/tour.md"), "utf8");
    const source = (path: string) => join(repositoryRoot, name, "src", path);
    const rows = rowsWith(page, ["no.", "function", "file"]);

    test(`${name}: lists at most ${STEPS} steps per journey, each function declared in its file`, () => {
      assert.ok(rows.length > 0);
      assert.equal(
        rows.filter(([no]) => Number(no) > STEPS).map(([no]) => no),
        [],
      );
      const missing = rows.flatMap(([, functions, file]) => {
        const [path = ""] = namesIn(file);
        if (!existsSync(source(path))) return [`there is no ${path}`];
        const text = readFileSync(source(path), "utf8");
        const names = namesIn(functions).flatMap((one) => one.split("."));
        assert.ok(names.length > 0, path);
        return names.filter((one) => !isDeclaredIn(text, one)).map((one) => `${path} declares no ${one}`);
      });
      assert.equal(missing, []);
    });

    test(`${name}: names only existing paths`, () => {
      const paths = namesIn(page).filter((text) => /^[\w-]+(\/[\w-]+)*(\/|\.ts)$|^[\w-]+(\/[\w-]+)+$/.test(text));
      assert.ok(paths.length > 10, `${paths.length} paths`);
      const isThere = (path: string) => existsSync(source(path)) || existsSync(join(repositoryRoot, path));
      assert.equal(
        paths.filter((path) => !isThere(path)),
        [],
      );
    });

    test(`${name}: contains one picture`, () => {
      const fences = [...page.matchAll(/^```(\w*)\n([^]*?)^```$/gm)];
      const pictures = fences.filter(([, language, text = ""]) => language === "" && /[─│→▼]|-->|──/.test(text));
      assert.is(pictures.length, 1);
      assert.is(page.match(/^```/gm)?.length, 2 * fences.length);
    });
  }
});
