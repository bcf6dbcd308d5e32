// npm run bundle: the operator and all that it imports, in dist/bundle/; an image needs nothing else. The licences of the packages in it are in
// THIRD-PARTY-NOTICES.txt.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { build } from "esbuild";

const outdir = "dist/bundle";
const readJson = async (file) => JSON.parse(await readFile(file, "utf8"));
const { dependencies = {} } = await readJson("package.json");
const runtime = await readJson(new URL(import.meta.resolve("@gen-operator/runtime/package.json")));

await rm(outdir, { recursive: true, force: true });
const { metafile } = await build({
  metafile: true,
  entryPoints: { operator: "src/main.ts" },
  outdir,
  outExtension: { ".js": ".mjs" },
  chunkNames: "[name]-[hash]",
  bundle: true,
  // What is imported when it is needed stays in files of its own.
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  // An error names the TypeScript file, and of packages the place in the bundle; the text of the sources would double the maps.
  sourcemap: true,
  sourcesContent: false,
  plugins: [{ name: "name-in-maps", setup: nameInMaps }],
  // The runtime does without these. What you need of them goes into "dependencies" of package.json.
  external: Object.keys(runtime.peerDependencies).filter((name) => !(name in dependencies)),
  // CommonJS packages call require(), which ES modules lack.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
  },
  logLevel: "warning",
});
await removeEmptyMaps(metafile);
await writeFile(join(outdir, "THIRD-PARTY-NOTICES.txt"), await noticesOf(metafile));

/** Of packages, which are JavaScript, the maps have the names of the files alone: Node keeps all maps in memory from the start. */
function nameInMaps({ onLoad }) {
  onLoad({ filter: /\.[cm]?js$/ }, async ({ path }) => {
    const map = JSON.stringify({ version: 3, sources: [basename(path)], mappings: "AAAA" });
    const comment = `//# sourceMappingURL=data:application/json,${encodeURIComponent(map)}`;
    return { contents: `${await readFile(path, "utf8")}\n${comment}` };
  });
}

/** Removes the maps of files that have code of packages alone: at the start, Node.js reads each file that has a map character by character. */
async function removeEmptyMaps({ outputs }) {
  for (const [file, { inputs }] of Object.entries(outputs)) {
    if (!file.endsWith(".mjs") || !Object.keys(inputs).every((input) => /\.([cm]?js|json)$/.test(input))) continue;
    await writeFile(file, (await readFile(file, "utf8")).replace(/\/\/# sourceMappingURL=[^\n]*\n$/, ""));
    await rm(`${file}.map`);
  }
}

/** Returns the name, the licence and its text of each package that is in the bundle. */
async function noticesOf({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const files = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => resolve(file));
  const folders = new Set(await Promise.all([...new Set(files.map(dirname))].map(packageFolderOf)));
  folders.delete(resolve("."));
  const notices = await Promise.all([...folders].filter((folder) => folder !== undefined).map(noticeOf));
  return [...new Set(notices)].sort().join(`\n${"-".repeat(80)}\n\n`);
}

async function noticeOf(folder) {
  const { name, version, license = "no licence stated" } = await readJson(join(folder, "package.json"));
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  if (texts.length === 0) console.warn(`${name} ${version} (${license}) has no file with its licence`);
  return [`${name} ${version} (${license})\n`, ...texts.map((text) => `${text.trim()}\n`)].join("\n");
}

/** Finds the package that a folder belongs to; a package.json without a version only says how to read the files beside it. */
async function packageFolderOf(folder) {
  const { name, version } = await readJson(join(folder, "package.json")).catch(() => ({}));
  if (name !== undefined && version !== undefined) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : packageFolderOf(parent);
}
