// The Kubernetes CEL library for semantic versions: https://semver.org
import type { CelMap } from "@bufbuild/cel";
import { readVersion } from "../../strings/semver.js";
import { fieldOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";

/** `semver`, `isSemver`, and the methods of versions. */
export const semverFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, STRING, INT, MAP } = typesOf(library);
  const partsOf = (text: string, isLoose = false) => (isLoose ? readLoosely(text) : readVersion(text));
  const version = (text: string, isLoose?: boolean) => {
    const parts = partsOf(text, isLoose);
    if ("problem" in parts) throw new Error(parts.problem);
    return valueOfKind(library, "semver", { ...parts });
  };
  return [
    celFunc("semver", [STRING], MAP, (text) => version(text)),
    celFunc("semver", [STRING, BOOL], MAP, version),
    celFunc("isSemver", [STRING], BOOL, (text) => !("problem" in partsOf(text))),
    celFunc("isSemver", [STRING, BOOL], BOOL, (text, isLoose) => !("problem" in partsOf(text, isLoose))),
    ...(["major", "minor", "patch"] as const).map((part) =>
      celMethod(part, MAP, [], INT, function () {
        return fieldOf<bigint>(this, "semver", part);
      }),
    ),
  ];
};

/** Compares two versions by precedence. Build metadata is ignored. */
export function compareVersions(one: CelMap, other: CelMap): number {
  for (const part of ["major", "minor", "patch"] as const) {
    const difference = fieldOf<bigint>(one, "semver", part) - fieldOf<bigint>(other, "semver", part);
    if (difference !== 0n) return difference < 0n ? -1 : 1;
  }
  return compareReleases(fieldOf(one, "semver", "prerelease"), fieldOf(other, "semver", "prerelease"));
}

// Normalizes a version as the API server does: drops a leading "v" and leading zeros, and appends missing parts.
function readLoosely(text: string): ReturnType<typeof readVersion> {
  const [major = "", minor, ...rest] = text.replace(/^v/, "").split(".");
  const given = [major, ...(minor === undefined ? [] : [minor]), ...(rest.length === 0 ? [] : [rest.join(".")])];
  const parts = given.map((part) => (part.length > 1 ? part.replace(/^0+/, "").replace(/^(?!\d)/, "0") : part));
  if (parts.length < 3 && /[-+]/.test(parts.at(-1) ?? ""))
    return { problem: "short version cannot contain PreRelease/Build meta data" };
  return readVersion([...parts, "0", "0"].slice(0, 3).join("."));
}

function compareReleases(one: string, other: string): number {
  if (one === other) return 0;
  if (one === "" || other === "") return one === "" ? 1 : -1;
  const [left, right] = [one.split("."), other.split(".")];
  for (const [index, part] of left.entries()) {
    const against = right[index];
    if (against === undefined) return 1;
    if (part === against) continue;
    const areNumbers = [/^\d+$/.test(part), /^\d+$/.test(against)];
    if (areNumbers[0] && areNumbers[1]) return BigInt(part) < BigInt(against) ? -1 : 1;
    if (areNumbers[0] !== areNumbers[1]) return areNumbers[0] ? -1 : 1;
    return part < against ? -1 : 1;
  }
  return -1;
}
