import type { RawSchema, ResourceModel } from "#generator/model/project-model.js";
import { emitResource, findDuplicates, inputViewOf } from "#generator/emit/resource/emit-resource.js";
import { minimalFieldsOf, minimalValueOf } from "#generator/emit/stubs.js";
import { normaliseSchema } from "#generator/emit/resource/shape.js";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import { builtinResource, thingOf } from "../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../support/suite.js";

const text: RawSchema = { type: "string" };

suite("input type", (test) => {
  test("exists only for types that contain a field with a default", () => {
    const withDefault = { type: "object", required: ["a"], properties: { a: { type: "string", default: "x" } } };
    const plain = { type: "object", required: ["a"], properties: { a: text } };
    const { names, shapes, root } = inputViewOf(
      normaliseSchema(
        thingOf({ type: "object", properties: { list: { type: "array", items: withDefault }, plain, input: plain } }),
      ),
    );
    assert.equal(
      [...names],
      [
        ["ThingSpec", "ThingSpecInput_".concat(nameHash(names.get("ThingSpec")))],
        ["ThingSpecListItem", "ThingSpecListItemInput"],
      ],
    );
    const item = shapes.find(({ name }) => name === "ThingSpecListItemInput");
    assert.is(item?.fields[0]?.isRequired, false);
    assert.equal(root.fields[0]?.type, { kind: "shape", name: names.get("ThingSpec") });
  });
});

// The nested type of a field called "input" has the plain name already.
function nameHash(name: string | undefined): string {
  return name?.split("_")[1] ?? "";
}

suite("class file", (test) => {
  const importsOf = (spec: RawSchema) =>
    /^import \{ parseResource \}.*$/m.exec(emitResource(thingOf(spec))[0]?.content ?? "")?.[0];

  test("imports the CEL evaluator only if the schema contains a rule", () => {
    const ruled = { ...text, "x-kubernetes-validations": [{ rule: "self != ''" }] };
    const cel = 'import { parseResource } from "@gen-operator/runtime/cel";';
    assert.is(importsOf(text), undefined);
    assert.is(importsOf(ruled), cel);
    assert.is(importsOf({ type: "array", items: { type: "object", additionalProperties: ruled } }), cel);
  });
});

suite("duplicate type", (test) => {
  const shapesOf = (spec: RawSchema) => normaliseSchema(thingOf(spec)).shapes;
  const leaf = { type: "object", properties: { a: text } };
  const pair = { type: "object", properties: { leaf } };

  test("is found from the leaves up, with a name for every path", () => {
    const duplicates = findDuplicates(shapesOf({ type: "object", properties: { one: pair, two: pair } }));
    assert.equal(
      [...duplicates],
      [
        ["ThingSpecTwoLeaf", "ThingSpecOneLeaf"],
        ["ThingSpecTwo", "ThingSpecOne"],
      ],
    );
  });

  test("differs if its description differs", () => {
    const other = { type: "object", properties: { a: { ...text, description: "Else." } } };
    assert.is(findDuplicates(shapesOf({ type: "object", properties: { one: leaf, two: other } })).size, 0);
  });
});

suite("runtime schema", (test) => {
  test("has the types and alternatives of fields without descriptions", () => {
    const spec = {
      description: "Words.",
      type: "object",
      properties: {
        description: { type: "string", description: "More." },
      },
      oneOf: [{ required: ["description"] }],
    };
    assert.equal(buildRuntimeSchema(thingOf(spec)).properties?.["spec"], {
      type: "object",
      properties: { description: { type: "string" } },
      oneOf: [{ required: ["description"] }],
    });
  });

  test("keeps the parts of a rule that parse needs", () => {
    const rule = { rule: "self != ''", message: "is empty", fieldPath: ".name", optionalOldSelf: true };
    const spec = {
      type: "string",
      "x-kubernetes-validations": [
        { ...rule, reason: "FieldValueInvalid" },
        { rule: "true", message: null },
      ],
    };
    assert.equal(buildRuntimeSchema(thingOf(spec)).properties?.["spec"], {
      type: "string",
      "x-kubernetes-validations": [rule, { rule: "true" }],
    });
  });

  test("keeps list types and keys, atomic maps, and defaults", () => {
    const spec = {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        "x-kubernetes-map-type": "atomic",
        properties: { name: { type: "string", default: "" } },
      },
    };
    assert.equal(buildRuntimeSchema(thingOf(spec)).properties?.["spec"], spec);
  });

  test("normalizes int-or-string", () => {
    const spec = {
      anyOf: [{ type: "integer" }, { type: "string" }],
      "x-kubernetes-int-or-string": true,
      nullable: true,
    };
    assert.equal(buildRuntimeSchema(thingOf(spec)).properties?.["spec"], {
      "x-kubernetes-int-or-string": true,
      nullable: true,
    });
  });

  test("references the definitions of a built-in kind, and drops Go's zero values as defaults", () => {
    const { definitions, properties } = buildRuntimeSchema(builtinResource("apps", "v1", "Deployment"));
    assert.equal(properties?.["metadata"], { type: "object" });
    assert.equal(properties?.["spec"], { $ref: "DeploymentSpec" });
    assert.equal(definitions?.["ContainerPort"]?.properties?.["protocol"]?.default, "TCP");
    assert.is(definitions?.["ContainerPort"]?.properties?.["containerPort"]?.default, undefined);
    assert.equal(definitions?.["ResourceRequirements"]?.properties?.["limits"]?.additionalProperties, {
      format: "quantity",
    });
    const referred = new Set(
      [...JSON.stringify(definitions).matchAll(/"\$ref":"(\w+)"/g)].map(([, name]) => name ?? ""),
    );
    for (const name of referred) assert.ok(definitions?.[name] !== undefined, name);
  });
});

suite("minimal value", (test) => {
  const schemaOf = (spec: RawSchema, rest: Partial<ResourceModel> = {}) => buildRuntimeSchema(thingOf(spec, rest));

  test("has the required fields without default, with the smallest values", () => {
    const schema = schemaOf({
      type: "object",
      required: ["text", "list", "choice", "count", "flag", "port", "defaulted"],
      properties: {
        text: { type: "string", minLength: 2 },
        list: { type: "array", minItems: 1, items: { type: "object", required: ["a"], properties: { a: text } } },
        choice: { type: "string", enum: ["b", "a"] },
        count: { type: "integer", minimum: 3 },
        flag: { type: "boolean" },
        port: { "x-kubernetes-int-or-string": true },
        defaulted: { type: "string", default: "x" },
        optional: text,
      },
    });
    const spec = schema.properties?.["spec"] ?? {};
    assert.equal(minimalFieldsOf(spec), { text: "xx", list: [{ a: "" }], choice: "b", count: 3, flag: false, port: 0 });
  });

  test("is undefined for a required field that contains itself", () => {
    const ref = { $ref: "#/components/schemas/a.Tree" };
    const definitions = new Map<string, RawSchema>([
      ["a.Tree", { type: "object", required: ["child"], properties: { child: ref } }],
    ]);
    assert.is(minimalValueOf(schemaOf(ref, { isCustom: false, definitions }).properties?.["spec"] ?? {}), undefined);
    const schema = schemaOf(ref, { isCustom: false, definitions });
    assert.is(minimalValueOf({ $ref: "Tree" }, schema), undefined);
  });

  test("matches common patterns, and is empty for others", () => {
    const textOf = (pattern: string, more = {}) => minimalValueOf({ type: "string", pattern, ...more });
    assert.is(textOf("^(\\d+(e\\d+)?|\\d+(\\.\\d+)?(e\\d+)?[EPTGMK]i?)$"), "1");
    assert.is(textOf("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), "x");
    assert.is(textOf("^\\d+\\.\\d+\\.\\d+$"), "1.0.0");
    assert.is(textOf("^[a-z]+$", { minLength: 3 }), "xxx");
    assert.is(textOf("^(?i)on$"), "", "an expression of Go's");
    assert.is(textOf("^three words or$"), "");
  });
});
