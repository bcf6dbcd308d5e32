import { memberOf, objectAt, type JsonObject } from "../../json.js";
import { objectsAt } from "../read-path.js";

/** Names what a CSIDriver should say. */
export function driverWarnings(driver: JsonObject): string[] {
  const spec = objectAt(driver, "spec") ?? {};
  const isOpen =
    objectsAt(spec, "tokenRequests").length > 0 && memberOf(spec, "serviceAccountTokenInSecrets") === undefined;
  return isOpen
    ? [
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in " +
          "volume attributes",
      ]
    : [];
}
