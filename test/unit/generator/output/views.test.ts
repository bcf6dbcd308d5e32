import type { RawSchema, ResourceModel } from "#generator/model/project-model.js";
import { emitResource, findDuplicates, inputViewOf } from "#generator/emit/resource/emit-resource.js";
import { minimalFieldsOf, minimalValueOf } from "#generator/emit/stubs.js";
import { normaliseSchema } from "#generator/emit/resource/shape.js";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import { builtinResource, thingOf } from "../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../support/suite.js";

const text: RawSchema = { type: "string" };

suite("input view", (test) => {
  test("has a type of its own only for what contains a field with a default", () => {
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

suite("the file of a class", (test) => {
  const importsOf = (spec: RawSchema) =>
    /^import \{ parseResource \}.*$/m.exec(emitResource(thingOf(spec))[0]?.content ?? "")?.[0];

  test("imports the evaluator of rules only if the schema has a rule somewhere", () => {
    const ruled = { ...text, "x-kubernetes-validations": [{ rule: "self != ''" }] };
    const cel = 'import { parseResource } from "@gen-operator/runtime/cel";';
    assert.is(importsOf(text), undefined);
    assert.is(importsOf(ruled), cel);
    assert.is(importsOf({ type: "array", items: { type: "object", additionalProperties: ruled } }), cel);
  });
});

suite("duplicates", (test) => {
  const shapesOf = (spec: RawSchema) => normaliseSchema(thingOf(spec)).shapes;
  const leaf = { type: "object", properties: { a: text } };
  const pair = { type: "object", properties: { leaf } };

  test("are found from the leaves up, and every path keeps a name", () => {
    const duplicates = findDuplicates(shapesOf({ type: "object", properties: { one: pair, two: pair } }));
    assert.equal(
      [...duplicates],
      [
        ["ThingSpecTwoLeaf", "ThingSpecOneLeaf"],
        ["ThingSpecTwo", "ThingSpecOne"],
      ],
    );
  });

  test("differ if a description does", () => {
    const other = { type: "object", properties: { a: { ...text, description: "Else." } } };
    assert.is(findDuplicates(shapesOf({ type: "object", properties: { one: leaf, two: other } })).size, 0);
  });
});

suite("runtime schema", (test) => {
  test("has the types of the fields and their alternatives, and no descriptions", () => {
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

  test("keeps of a rule what parse reads", () => {
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

  test("keeps the types and keys of lists, atomic maps and defaults, which matching needs", () => {
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

  test("has one spelling for a number or text", () => {
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

  test("of a built-in kind names its definitions, drops Go's zero values and keeps real defaults", () => {
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

  test("has the required fields that have no default, and the smallest values", () => {
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

  test("does not exist for a required field that contains itself", () => {
    const ref = { $ref: "#/components/schemas/a.Tree" };
    const definitions = new Map<string, RawSchema>([
      ["a.Tree", { type: "object", required: ["child"], properties: { child: ref } }],
    ]);
    assert.is(minimalValueOf(schemaOf(ref, { isCustom: false, definitions }).properties?.["spec"] ?? {}), undefined);
    const schema = schemaOf(ref, { isCustom: false, definitions });
    assert.is(minimalValueOf({ $ref: "Tree" }, schema), undefined);
  });

  test("meets the patterns that fields usually have, and is short where it cannot", () => {
    const textOf = (pattern: string, more = {}) => minimalValueOf({ type: "string", pattern, ...more });
    assert.is(textOf("^(\\d+(e\\d+)?|\\d+(\\.\\d+)?(e\\d+)?[EPTGMK]i?)$"), "1");
    assert.is(textOf("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), "x");
    assert.is(textOf("^\\d+\\.\\d+\\.\\d+$"), "1.0.0");
    assert.is(textOf("^[a-z]+$", { minLength: 3 }), "xxx");
    assert.is(textOf("^(?i)on$"), "", "an expression of Go's");
    assert.is(textOf("^three words or$"), "");
  });
});
