import fc from "../../support/fast-check.js";
import { parseResource, type ResourceDefinition } from "@gen-operator/runtime/codegen";
import { apiRequest, type ApiObject, type Connection } from "../../support/api/api-request.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { definitionOf } from "../../support/kinds/definition-of.js";
import { crdJson } from "../../support/kinds/hostile-crds.js";
import { isThorough, seed } from "../../support/runs.js";
import { structuralSchema, valueOf, type RandomSchema } from "../../support/kinds/structural-schemas.js";
import { assert, suite } from "../../support/suite.js";

/** A real API server takes long to serve many kinds that come at once. */
const MOST_SERVED = 50;

function problemsOf(definition: ResourceDefinition, object: object): string {
  try {
    parseResource(definition, object);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

interface Values {
  readonly schema: RandomSchema;
  readonly values: readonly unknown[];
}

/** Returns how many objects are valid, and those of which parse and the API server say different things. */
async function compare(server: Connection, definition: ResourceDefinition, { schema, values }: Values) {
  const { apiVersion, kind, plural } = definition;
  const path = `POST /apis/example.com/v1/namespaces/default/${plural}?dryRun=All&fieldValidation=Strict`;
  const wrong: string[] = [];
  let valid = 0;
  for (const fields of values) {
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) continue;
    const object = { ...fields, apiVersion, kind, metadata: { name: "x", namespace: "default" } };
    const { status, body } = await apiRequest<ApiObject>(server, path, { body: object });
    const problems = problemsOf(definition, object);
    if (status === 201) valid += 1;
    if ((status === 201) !== (problems === ""))
      wrong.push(
        `${JSON.stringify(schemaOf(schema))}\n  ${JSON.stringify(object)}\n  parse: ${problems || "valid"}\n  server: ${status} ${JSON.stringify(body)}`,
      );
  }
  return { wrong, valid };
}

suite("parse", (test) => {
  const count = isThorough ? 500 : 20;

  test(
    `agrees with the API server on valid and invalid objects of ${count} random schemas (seed ${seed})`,
    async () => {
      const schemas = fc.sample(structuralSchema, { numRuns: count, seed });
      const wrong: string[] = [];
      let valid = 0;
      for (let first = 0; first < count; first += MOST_SERVED) {
        const texts = schemas
          .slice(first, first + MOST_SERVED)
          .map((schema, index) => crdJson(schema, { kind: `Kind${first + index}`, version: { subresources: {} } }));
        await using server = await startTestApiServer({ crds: texts.map((text) => JSON.parse(text) as object) });
        for (const [index, text] of texts.entries()) {
          const schema = schemas[first + index] ?? {};
          const compared = await compare(server, await definitionOf(text), {
            schema,
            values: fc.sample(valueOf(schema), { numRuns: 8, seed: seed + first + index }),
          });
          wrong.push(...compared.wrong);
          valid += compared.valid;
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
