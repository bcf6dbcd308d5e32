import Module, { createRequire } from "node:module";
import { requireCompiled } from "./compiled-library.js";

/** Large libraries that are CommonJS modules. */
interface Libraries {
  readonly typescript: typeof import("typescript");
  // Without what reads configuration and finds plugins, prettier loads in a third of the time.
  readonly "prettier/standalone": typeof import("prettier/standalone");
  readonly "prettier/plugins/babel": typeof import("prettier/plugins/babel");
  readonly "prettier/plugins/estree": typeof import("prettier/plugins/estree");
}

const require = createRequire(import.meta.url);

/**
 * Loads a library when it is needed first.
 *
 * By `require`, because `import` reads all of a CommonJS module once more to find out what it exports, and for a compiler that takes
 * three times as long as running it. Node 20 keeps no compiled code, as later ones do.
 */
export function loadLibrary<Name extends keyof Libraries>(name: Name): Libraries[Name] {
  const file = require.resolve(name);
  const isKept = "enableCompileCache" in Module || !file.includes("node_modules");
  return (isKept ? require(file) : requireCompiled(file)) as Libraries[Name];
}
