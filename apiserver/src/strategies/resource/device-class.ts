import { objectsAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkLimited } from "../../validation/fields.js";
import { isExtendedResource } from "../pod-template/resources.js";
import type { Strategy } from "../strategy.js";
import { MAX_ITEMS, checkConfig, checkSelectors } from "./devices.js";

export const deviceClassStrategy: Strategy = {
  nameRule: "long-name",
  checksMetadata: ["object", "change"],
  generation: "spec",
  returnsDeletedObject: true,
  validate: checkDeviceClass,
};

function checkDeviceClass(object: JsonObject): FieldError[] {
  const spec = objectAt(object, "spec") ?? {};
  const name = memberOf(spec, "extendedResourceName") ?? null;
  const field = "spec.extendedResourceName";
  return [
    ...checkSelectors("spec.selectors", spec),
    ...checkLimited("spec.config", { items: objectsAt(spec, "config"), max: MAX_ITEMS }, (items) =>
      items.flatMap((config, index) => checkConfig(`spec.config[${index}]`, config)),
    ),
    ...(name === null || isExtendedResource(String(name))
      ? []
      : [invalidError(field, name, "must be a valid extended resource name")]),
  ];
}
