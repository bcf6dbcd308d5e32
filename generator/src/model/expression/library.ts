import { createRequire } from "node:module";

/** Large libraries that are CommonJS modules. */
interface Libraries {
  readonly typescript: typeof import("typescript");
}

const require = createRequire(import.meta.url);

/**
 * Loads a library when it is needed first.
 *
 * By `require`, because `import` reads all of a CommonJS module once more to find out what it exports, and for a compiler that takes
 * three times as long as running it.
 */
export function loadLibrary<Name extends keyof Libraries>(name: Name): Libraries[Name] {
  return require(name) as Libraries[Name];
}
