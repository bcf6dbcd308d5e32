import { build } from "esbuild";

/** Bundles a program into one file, as an image that should start quickly holds it. */
export async function bundle(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    minify: true,
    platform: "node",
    format: "esm",
    target: "node20",
    // Only users with an exec plugin need the one, and only terminals the other.
    external: ["@kubernetes/client-node", "pino-pretty"],
    // What was written for require() inside of an ES module.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "error",
  });
}
