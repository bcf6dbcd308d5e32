const NUMBER = "(0|[1-9]\\d*)";
const VERSION = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?$`,
);

/** The parts of a version; a prerelease is "" if there is none. */
export interface Version {
  readonly major: bigint;
  readonly minor: bigint;
  readonly patch: bigint;
  readonly prerelease: string;
}

/** Reads a version: https://semver.org. Returns undefined for a text that is none. */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch, prerelease = ""] = VERSION.exec(text) ?? [];
  if (major === undefined || minor === undefined || patch === undefined) return undefined;
  if (prerelease.split(".").some((part) => /^0\d+$/.test(part))) return undefined;
  return { major: BigInt(major), minor: BigInt(minor), patch: BigInt(patch), prerelease };
}
