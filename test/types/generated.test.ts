import { suite } from "../support/suite.js";
import { checkManifests } from "./check-manifests.js";
import { deployments } from "./manifests.js";

// Compilers take seconds, more so when other tests run beside them.
const slow = { timeoutMs: 120_000 };

suite("generated code", (test) => {
  test("accepts valid and rejects invalid manifests of a Deployment", () => checkManifests([], [deployments]), slow);
});
