/**
 * Compares two resource versions: negative if `a` is older than `b`.
 *
 * Within one kind they are decimal numbers that only grow (KEP-5504); the longer one is the later.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Tells whether a resource version is newer than another. */
export function isNewerVersion(version: string, than: string): boolean {
  return compareResourceVersions(version, than) > 0;
}
