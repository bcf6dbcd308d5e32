// The published package is bundled: its modules lie in dist itself, as this one does in the repository. So this module stays directly in src,
// and no other one may look for a file beside itself.

/** Returns where a file of this package is; its path begins at the package. */
export function packageFile(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}
