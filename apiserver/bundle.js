// npm pack: what tsc compiled becomes a few files, since reading hundreds of modules is most of a start. They replace what was compiled, beside its
// declarations; with a folder as its argument this makes a copy of the package there instead, to measure it. The dependencies stay packages.
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = resolve(fileURLToPath(new URL("./", import.meta.url)));
const target = resolve(process.argv[2] ?? root);
const dist = join(target, "dist");

/** What others load by its path: the program, and the two doors of the package. */
const ENTRIES = ["cli.js", "index.js", "simulate/index.js"];

const { dependencies, peerDependencies, engines } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: ENTRIES.map((entry) => `dist/${entry}`),
  outbase: "dist",
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: `node${/\d+\.\d+/.exec(engines.node)[0]}`,
  external: Object.keys({ ...dependencies, ...peerDependencies }),
  metafile: true,
  write: false,
});
checkPlaces(metafile);

if (target === root) {
  const compiled = await readdir(dist, { recursive: true });
  await Promise.all(compiled.filter((file) => /\.js(\.map)?$/.test(file)).map((file) => rm(join(dist, file))));
} else {
  await rm(dist, { recursive: true, force: true });
  for (const name of ["bin", "data", "package.json"])
    await cp(join(root, name), join(target, name), { recursive: true });
}
for (const { path: place, text } of outputFiles) {
  const path = join(dist, relative(join(root, "dist"), place));
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** Files of the package are found from src/package-file.ts, wherever that is. */
function checkPlaces({ outputs }) {
  const [place] = Object.entries(outputs).find(([, { inputs }]) => "dist/package-file.js" in inputs) ?? [];
  if (place === undefined || dirname(place) !== "dist") throw new Error(`package-file.js became a part of ${place}`);
}
