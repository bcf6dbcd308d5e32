import type { RawSchema, ResourceModel } from "#generator/model/project-model.js";
import { normaliseSchema } from "#generator/emit/resource/shape.js";
import { memberOf, printShape } from "#generator/emit/resource/emit-resource.js";
import { textOf, typeText } from "#generator/emit/print.js";
import { thingOf } from "../runtime/resource-models.js";

/** Returns the printed type of `spec` of a test kind: the field, then all named types. */
export async function printSpec(spec: RawSchema, rest: Partial<ResourceModel> = {}): Promise<string> {
  const { root, shapes } = normaliseSchema(thingOf(spec, rest));
  const fields = root.fields.map(memberOf).map(({ head, type }) => `${head}: ${typeText(type)};`);
  return [...fields, ...shapes.map((shape) => textOf(printShape(shape)))].join("\n");
}

/** Returns the printed type of a field with a schema. */
export async function printField(schema: RawSchema): Promise<string> {
  const printed = await printSpec(schema);
  return printed.replace(/^readonly spec\?: /, "").replace(/ \| undefined;/, ";");
}
