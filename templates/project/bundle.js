// npm run bundle: the operator and all that it imports, in dist/bundle/; an image needs nothing else.
import { readFile, rm } from "node:fs/promises";
import { basename } from "node:path";
import { build } from "esbuild";

const outdir = "dist/bundle";
const readJson = async (file) => JSON.parse(await readFile(file, "utf8"));
const { dependencies = {} } = await readJson("package.json");
const runtime = await readJson(new URL(import.meta.resolve("@gen-operator/runtime/package.json")));

await rm(outdir, { recursive: true, force: true });
await build({
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

/** Of packages, which are JavaScript, the maps have the names of the files alone: Node keeps all maps in memory from the start. */
function nameInMaps({ onLoad }) {
  onLoad({ filter: /\.[cm]?js$/ }, async ({ path }) => {
    const map = JSON.stringify({ version: 3, sources: [basename(path)], mappings: "AAAA" });
    const comment = `//# sourceMappingURL=data:application/json,${encodeURIComponent(map)}`;
    return { contents: `${await readFile(path, "utf8")}\n${comment}` };
  });
}
