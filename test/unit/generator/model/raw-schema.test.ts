import { takesStatusCondition } from "#generator/model/schema.js";
import { assert, suite } from "../../../support/suite.js";

const text = { type: "string" };
const properties = {
  lastTransitionTime: { ...text, format: "date-time" },
  message: text,
  observedGeneration: { type: "integer", format: "int64" },
  reason: text,
  status: { ...text, enum: ["True", "False", "Unknown"] },
  type: text,
};

suite("takesStatusCondition", (test) => {
  test("accepts schemas of conditions with all fields of the runtime's type and no other required field", () => {
    const { observedGeneration: _generation, ...withoutGeneration } = properties;
    const cases: [schema: { readonly [key: string]: unknown }, isTaken: boolean][] = [
      [{ properties, required: ["lastTransitionTime", "message", "reason", "status", "type"] }, true],
      // As cert-manager has them.
      [{ properties, required: ["status", "type"] }, true],
      // As Strimzi has them.
      [{ properties: withoutGeneration }, false],
      [{ properties: { ...properties, severity: text } }, true],
      [{ properties: { ...properties, severity: text }, required: ["severity"] }, false],
      [{ properties: { ...properties, status: text } }, true],
      [{ properties: { ...properties, status: { ...text, enum: ["True", "Unknown"] } } }, false],
      [{ properties: { ...properties, status: { type: "boolean" } } }, false],
      [{ properties: { ...properties, reason: { ...text, enum: ["Fine"] } } }, false],
      [{ type: "object" }, false],
    ];
    for (const [schema, isTaken] of cases) assert.is(takesStatusCondition(schema), isTaken, JSON.stringify(schema));
  });
});
