import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "#generator/generate.js";
import { generateTypes } from "#generator/generate-types.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { createFolderWith, crdText, PLAIN_SCHEMA } from "./project-text.js";

/** Reads all files below a folder. */
async function textsIn(folder: string): Promise<{ readonly [path: string]: string }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const texts = await Promise.all(
    files.sort().map(async (file) => [file.slice(folder.length), await readFile(file, "utf8")]),
  );
  return Object.fromEntries(texts) as { readonly [path: string]: string };
}

/** Restores the time zone of this process when it is disposed of. */
function keepTimeZone() {
  const before = process.env["TZ"];
  const moveTo = (zone: string | undefined) => {
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
  };
  return { moveTo, [Symbol.dispose]: () => moveTo(before) };
}

suite("generated code", (test) => {
  test("does not depend on the project path or the time zone", async () => {
    const sample = join(repositoryRoot, "fixtures/samples/tomcat");
    using clock = keepTimeZone();
    const results = [];
    for (const [zone, hour] of [
      ["UTC", 0],
      ["Pacific/Auckland", 12],
    ] as const) {
      await using folder = await createTemporaryFolder();
      const project = join(folder.path, `a place in ${zone.replace("/", " ")}`);
      clock.moveTo(zone);
      assert.is(new Date(0).getHours(), hour);
      await cp(sample, project, { recursive: true });
      await rm(join(project, "src/generated"), { recursive: true });
      assert.equal((await generate({ project })).diagnostics, []);
      results.push(await textsIn(join(project, "src/generated")));
      for (const text of Object.values(results.at(-1) ?? {})) {
        assert.not.match(text, folder.path);
        assert.not.match(text, /\r|\d\d:\d\d:\d\d/);
      }
    }
    assert.ok(Object.keys(results[0] ?? {}).length > 5);
    assert.equal(results[0], results[1]);
  });

  test("does not depend on the order and the line endings of the CRD files", async () => {
    const files = { "a.yaml": crdText(PLAIN_SCHEMA), "b.yaml": crdText(PLAIN_SCHEMA, "Other") };
    await using folder = await createFolderWith(files);
    const write = async (out: string, names: readonly string[]) => {
      const paths = names.map((name) => join(folder.path, name));
      assert.equal((await generateTypes({ files: paths, out: join(folder.path, out) })).diagnostics, []);
      return textsIn(join(folder.path, out));
    };
    const first = await write("first", ["a.yaml", "b.yaml"]);
    assert.equal(await write("second", ["b.yaml", "a.yaml"]), first);
    for (const [name, text] of Object.entries(files))
      await writeFile(join(folder.path, name), text.replaceAll("\n", "\r\n"));
    assert.equal(await write("third", ["a.yaml", "b.yaml"]), first);
  });
});
