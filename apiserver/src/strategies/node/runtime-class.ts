import { objectsAt, textAt } from "../../builtin/read-path.js";
import type { FieldError } from "../../errors/field-error.js";
import { type JsonObject, objectAt } from "../../json.js";
import { checkLabelName, checkLabels } from "../../validation/fields.js";
import { checkTextKept } from "../../validation/immutable-fields.js";
import { checkOverhead } from "../pod-template/resources.js";
import { checkTolerations, checkTolerationsOnce } from "../pod-template/scheduling.js";
import { labelMapWarnings } from "../shared/node-selectors.js";
import type { Strategy } from "../strategy.js";

export const runtimeClassStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  allowsUnconditionalUpdate: false,
  createsOnUpdate: true,
  checksFinalizers: false,
  validate: checkRuntimeClass,
  warnings: (runtime) =>
    labelMapWarnings(objectAt(objectAt(runtime, "scheduling"), "nodeSelector"), () => "scheduling.nodeSelector"),
};

/** Validates a RuntimeClass; its handler is immutable. */
function checkRuntimeClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const [handler, scheduling] = [textAt(object, "handler"), objectAt(object, "scheduling") ?? {}];
  const tolerations = objectsAt(scheduling, "tolerations");
  return [
    ...checkLabelName("handler", handler),
    ...checkLabels(objectAt(scheduling, "nodeSelector") ?? {}, "scheduling.nodeSelector"),
    ...(tolerations.length > 0 ? checkTolerations("scheduling", scheduling) : []),
    ...checkTolerationsOnce("scheduling.tolerations", tolerations),
    ...checkOverhead("overhead", objectAt(objectAt(object, "overhead"), "podFixed")),
    ...(old === undefined ? [] : checkTextKept("handler", object, old)),
  ];
}
