import fc from "fast-check";
import { parseResource, type ResourceDefinition } from "@gen-operator/runtime/codegen";
import { apiRequest, type ApiObject } from "../support/api-request.js";
import { startTestApiServer } from "../support/api-server.js";
import { definitionOf } from "../support/definition-of.js";
import { crdJson } from "../support/hostile-crds.js";
import { isThorough } from "../support/runs.js";
import { structuralSchema, valueOf, type RandomSchema } from "../support/structural-schemas.js";
import { assert, suite } from "../support/suite.js";

function problemsOf(definition: ResourceDefinition, object: object): string {
  try {
    parseResource(definition, object);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

suite("parse", (test) => {
  const seed = Date.now() % 2 ** 31;
  const count = isThorough ? 500 : 20;

  test(
    `agrees with the API server on types, required and unknown fields, enums and limits of ${count} random schemas (seed ${seed})`,
    async () => {
      const schemas = fc.sample(structuralSchema, { numRuns: count, seed });
      const texts = schemas.map((schema, index) =>
        crdJson(schema, { kind: `Kind${index}`, version: { subresources: {} } }),
      );
      await using server = await startTestApiServer({ crds: texts.map((text) => JSON.parse(text) as object) });
      const wrong: string[] = [];
      let valid = 0;
      for (const [index, schema] of schemas.entries()) {
        const definition = await definitionOf(texts[index] ?? "");
        const path = `POST /apis/example.com/v1/namespaces/default/${definition.plural}?dryRun=All&fieldValidation=Strict`;
        for (const fields of fc.sample(valueOf(schema), { numRuns: 8, seed: seed + index })) {
          if (typeof fields !== "object" || fields === null || Array.isArray(fields)) continue;
          const { apiVersion, kind } = definition;
          const object = { ...fields, apiVersion, kind, metadata: { name: "x", namespace: "default" } };
          const { status, body } = await apiRequest<ApiObject>(server, path, { body: object });
          const problems = problemsOf(definition, object);
          if (status === 201) valid += 1;
          if ((status === 201) === (problems === "")) continue;
          wrong.push(
            `${JSON.stringify(schemaOf(schema))}\n  ${JSON.stringify(object)}\n  parse: ${problems || "valid"}\n  server: ${status} ${JSON.stringify(body)}`,
          );
        }
      }
      assert.ok(valid > count, `only ${valid} objects were valid`);
      assert.is(wrong.join("\n"), "");
    },
    { timeoutMs: 240_000 },
  );
});

function schemaOf({ properties }: RandomSchema): unknown {
  return properties;
}
