import type { JsonObject } from "../json.js";

/** The release of Kubernetes whose behaviour the server has. */
export const GIT_VERSION = "v1.36.3";

/** Describes `/version`. */
export function versionInfo(): JsonObject {
  return {
    major: "1",
    minor: "36",
    emulationMajor: "1",
    emulationMinor: "36",
    minCompatibilityMajor: "1",
    minCompatibilityMinor: "35",
    gitVersion: GIT_VERSION,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "",
    compiler: "",
    platform: "linux/amd64",
  };
}
