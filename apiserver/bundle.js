// npm pack: what tsc compiled becomes a few files, since reading hundreds of modules is most of a start. They replace what was compiled, beside its
// declarations; with a folder as its argument this makes a copy of the package there instead, to measure it. The dependencies stay packages.
import { readFile, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundlePackage, writePackage } from "../bundle-package.js";

const root = resolve(fileURLToPath(new URL("./", import.meta.url)));
const target = resolve(process.argv[2] ?? root);
const dist = join(target, "dist");

/** What others load by its path: the program, and the two doors of the package. */
const ENTRIES = ["cli.js", "index.js", "simulate/index.js"];

const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const external = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
const { files } = await bundlePackage(root, { entries: ENTRIES, manifest, external });

if (target === root) {
  const compiled = await readdir(dist, { recursive: true });
  await Promise.all(compiled.filter((file) => /\.js(\.map)?$/.test(file)).map((file) => rm(join(dist, file))));
} else await rm(dist, { recursive: true, force: true });
await writePackage(root, target, files);
