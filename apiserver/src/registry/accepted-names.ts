import { objectAt, clone, type JsonObject } from "../json.js";
import { hasCondition, setCondition } from "./conditions.js";

/** Returns the status of a definition after its names were compared with those of the others. */
export function acceptedStatus(crd: JsonObject, _others: JsonObject[]): JsonObject {
  const object = clone(crd);
  const names = objectAt(objectAt(crd, "spec"), "names") ?? {};
  object["status"] = { ...objectAt(object, "status"), acceptedNames: names };
  setCondition(object, { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" });
  if (!hasCondition(object, "Established")) {
    setCondition(object, {
      type: "Established",
      status: "False",
      reason: "Installing",
      message: "the initial names have been accepted",
    });
  }
  return object["status"];
}
