import { readFileSync } from "node:fs";
import { transformSchemaObject } from "openapi-typescript";
import { assert, suite } from "../../../support/suite.js";
import { printSpec } from "../../../support/projects/print-shapes.js";

// What openapi-typescript makes of a schema, which nothing of ours prints by it any more: facts for whoever compares our types with its types.
// It exports transformSchemaObject and does not document its context.
suite("openapi-typescript", (test) => {
  test("has version 7.13.0 and exports transformSchemaObject", () => {
    const { version } = JSON.parse(
      readFileSync(
        new URL(import.meta.resolve("openapi-typescript")).pathname.replace(/dist\/.*$/, "package.json"),
        "utf8",
      ),
    ) as { version: string };
    assert.is(version, "7.13.0");
    assert.type(transformSchemaObject, "function");
  });

  test("prints each field once in the order of the schema", async () => {
    const names = ["zeta", "alpha", "10", "mid-dle", "2", "hasOwnProperty"];
    const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
    const printed = await printSpec({ type: "object", properties });
    const order = Object.keys(properties).map((name) => printed.search(new RegExp(`^ *readonly "?${name}"?\\?:`, "m")));
    assert.ok(
      order.every((at) => at > 0),
      printed,
    );
    assert.equal(
      [...order].sort((left, right) => left - right),
      order,
    );
  });

  test("calls the hook for marked fields, items, and map values", async () => {
    const object = { type: "object", properties: { a: { type: "string" } } };
    const printed = await printSpec({
      type: "object",
      properties: {
        one: object,
        parameters: { type: "array", items: object },
        requestBody: { type: "object", additionalProperties: object },
      },
    });
    assert.match(printed, /one\?: ThingSpecOne \|/);
    assert.match(printed, /parameters\?: readonly ThingSpecParametersItem\[\] \|/);
    assert.match(printed, /requestBody\?: \{ readonly \[key: string\]: ThingSpecRequestBodyValue \} \|/);
  });

  test("prints fields with a default as required, whatever their name", async () => {
    const printed = await printSpec({
      type: "object",
      properties: { parameters: { type: "string", default: "x" }, other: { type: "string", default: "x" } },
    });
    assert.match(printed, /parameters: string/);
    assert.match(printed, /other: string/);
  });
});
