// In the published bundle, all modules are directly in dist. This module must therefore stay directly in src, and no other module may resolve a file
// relative to itself.

/** Returns the URL of a file in this package. The path is relative to the root of the package. */
export function packageFile(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}
