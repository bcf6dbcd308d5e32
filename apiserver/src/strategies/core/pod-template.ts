import { at } from "../../builtin/read-path.js";
import type { FieldError } from "../../errors/field-error.js";
import { type JsonObject, objectAt } from "../../json.js";
import { dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { checkPodTemplate } from "../pod-template/pod-spec.js";
import { templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";

export const podTemplateStrategy: Strategy = {
  generation: "outside-metadata",
  returnsDeletedObject: true,
  structDefaults: podTemplateDefaults,
  dropFields: (object) => dropPodFields(at(object, "template.spec")),
  validate: checkTemplate,
  warnings: (object, old) => templateWarnings("template", object, old),
};

function checkTemplate(object: JsonObject): FieldError[] {
  return checkPodTemplate("template", objectAt(object, "template") ?? {});
}
