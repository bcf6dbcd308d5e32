// npm pack: the samples of the repository become the examples of the package, but for what init or generate write.
import { cp, readdir, rm } from "node:fs/promises";
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const samples = fileURLToPath(new URL("../fixtures/samples/", import.meta.url));
const examples = fileURLToPath(new URL("examples/", import.meta.url));
const WRITTEN = new Set(["deploy", "dist", "node_modules", "tsconfig.json", "README.md", "src/generated"]);

await rm(examples, { recursive: true, force: true });
if (process.argv[2] !== "--remove")
  for (const name of await readdir(samples))
    await cp(`${samples}${name}`, `${examples}${name}`, {
      recursive: true,
      filter: (file) => !WRITTEN.has(relative(`${samples}${name}`, file).split(sep).join("/")),
    });
