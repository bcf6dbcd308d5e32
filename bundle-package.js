// What apiserver/bundle.js and generator/bundle.js share: what tsc compiled of a package with a program becomes a few files.
import { cp, mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";

/** Bundles the entries of the package at `root`, in memory; every dynamic import starts files of its own. `options` are further ones of esbuild. */
export async function bundlePackage(root, { entries, manifest: { engines }, ...options }) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: entries.map((entry) => `dist/${entry}`),
    outbase: "dist",
    outdir: "dist",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: `node${/\d+\.\d+/.exec(engines.node)[0]}`,
    metafile: true,
    write: false,
    ...options,
  });
  checkPlaces(metafile);
  const files = outputFiles.map(({ path, text }) => ({ path: relative(root, path), text }));
  return { files, metafile };
}

/** Files of the package are found from src/package-file.ts, wherever that is. */
function checkPlaces({ outputs }) {
  const [place] = Object.entries(outputs).find(([, { inputs }]) => "dist/package-file.js" in inputs) ?? [];
  if (place === undefined || dirname(place) !== "dist") throw new Error(`package-file.js became a part of ${place}`);
}

/** Writes bundled files to `target`; elsewhere than in the package, beside a copy of all else that is published. */
export async function writePackage(root, target, files) {
  if (target !== root)
    for (const name of ["bin", "data", "package.json"])
      await cp(join(root, name), join(target, name), { recursive: true });
  for (const { path, text } of files) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), text);
  }
}
