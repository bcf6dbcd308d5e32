import type { FieldError } from "../../errors/field-error.js";
import { type JsonObject, isObject, objectAt } from "../../json.js";
import { checkKept } from "../../validation/immutable-fields.js";
import { checkTemplateMetadata } from "../shared/template-metadata.js";
import type { Strategy } from "../strategy.js";
import { goClaim, goMetadata } from "./claim-form.js";
import { checkDeviceClaim, deviceRequestDefaults } from "./devices.js";

export const resourceClaimTemplateStrategy: Strategy = {
  returnsDeletedObject: true,
  checksMetadata: ["object", "change"],
  structDefaults: deviceRequestDefaults,
  validate: checkClaimTemplate,
};

/** Validates a ResourceClaimTemplate; its spec is immutable. */
function checkClaimTemplate(template: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(template, "spec");
  const shown = (one: JsonObject) => {
    const { metadata, ...rest } = objectAt(one, "spec") ?? {};
    return { ...goMetadata(isObject(metadata) ? metadata : {}), Spec: goClaim(rest) };
  };
  return [
    ...checkTemplateMetadata("spec.metadata", objectAt(spec, "metadata") ?? {}),
    ...checkDeviceClaim("spec.spec.devices", objectAt(objectAt(spec, "spec"), "devices") ?? {}),
    ...(old === undefined ? [] : checkKept("spec", shown(template), shown(old))),
  ];
}
