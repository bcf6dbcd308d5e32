import { quote } from "./escape.js";

const PARTS = ["major", "minor", "patch"] as const;
const MAX = 2n ** 64n;

/** A semantic version; `prerelease` is "" if there is none. */
export interface Version {
  readonly major: bigint;
  readonly minor: bigint;
  readonly patch: bigint;
  readonly prerelease: string;
}

/** Parses a version (https://semver.org); returns undefined if it is invalid. */
export function parseVersion(text: string): Version | undefined {
  const version = readVersion(text);
  return "problem" in version ? undefined : version;
}

/** Parses a version; returns the error message of the API server's library if it is invalid. */
export function readVersion(text: string): Version | { readonly problem: string } {
  if (text === "") return { problem: "Version string empty" };
  const [major, minor, ...rest] = text.split(".");
  if (major === undefined || minor === undefined || rest.length === 0)
    return { problem: "No Major.Minor.Patch elements found" };
  const [, patch = "", prerelease, build] = /^([^-+]*)(?:-([^+]*))?(?:\+(.*))?$/s.exec(rest.join(".")) ?? [];
  const numbers = [major, minor, patch];
  const problem =
    numbers
      .map((number, index) => numberProblem(number, PARTS[index] as string))
      .find((found) => found !== undefined) ??
    prereleaseProblem(prerelease) ??
    buildProblem(build);
  if (problem !== undefined) return { problem };
  return { major: BigInt(major), minor: BigInt(minor), patch: BigInt(patch), prerelease: prerelease ?? "" };
}

function numberProblem(number: string, part: string): string | undefined {
  if (!/^\d*$/.test(number)) return `Invalid character(s) found in ${part} number ${quote(number)}`;
  if (/^0\d/.test(number))
    return `${part[0]?.toUpperCase()}${part.slice(1)} number must not contain leading zeroes ${quote(number)}`;
  const parsing = `strconv.ParseUint: parsing ${quote(number)}`;
  if (number === "") return `${parsing}: invalid syntax`;
  return BigInt(number) < MAX ? undefined : `${parsing}: value out of range`;
}

function prereleaseProblem(prerelease: string | undefined): string | undefined {
  for (const part of prerelease?.split(".") ?? []) {
    if (part === "") return "Prerelease is empty";
    if (/^0\d+$/.test(part)) return `Numeric PreRelease version must not contain leading zeroes ${quote(part)}`;
    if (!/^[0-9A-Za-z-]+$/.test(part)) return `Invalid character(s) found in prerelease ${quote(part)}`;
  }
  return undefined;
}

function buildProblem(build: string | undefined): string | undefined {
  for (const part of build?.split(".") ?? []) {
    if (part === "") return "Build meta data is empty";
    if (!/^[0-9A-Za-z-]+$/.test(part)) return `Invalid character(s) found in build meta data ${quote(part)}`;
  }
  return undefined;
}
