import { textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError } from "../../errors/field-error.js";
import { type JsonObject, deepEqual, memberOf } from "../../json.js";
import { protectByFinalizer } from "../core/persistent-volume-claim.js";
import type { Strategy } from "../strategy.js";
import { checkParameters, checkProvisioner } from "./storage-class.js";

export const volumeAttributesClassStrategy: Strategy = {
  returnsDeletedObject: true,
  checksMetadata: ["object", "change"],
  defaultsOfNew: true,
  defaults(object, { uid }) {
    if (uid !== undefined) protectByFinalizer(object, "kubernetes.io/vac-protection");
  },
  validate: checkAttributesClass,
};

/** Validates a VolumeAttributesClass; its driverName and parameters are immutable. */
function checkAttributesClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const changed = ["driverName", "parameters"].filter(
    (key) => old !== undefined && !deepEqual(memberOf(object, key) ?? null, memberOf(old, key) ?? null),
  );
  return [
    ...changed.map((key) => forbiddenError(key, `updates to ${key} are forbidden.`)),
    ...checkProvisioner("driverName", textAt(object, "driverName")),
    ...checkParameters("parameters", object, { needsOne: true }),
  ];
}
