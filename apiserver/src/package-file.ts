// The published package is bundled into dist, where its modules are at the same depth as this one is in src. This module must therefore stay directly
// in src, and no other module may resolve files relative to itself.

/** Returns the URL of a file of this package, given its path relative to the package. */
export function packageFile(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}
