import type { SchemaObject } from "openapi-typescript";
import type { ShapeModel, TypeModel } from "./shape-model.js";

/** The keyword by which a schema says that its type has a name; the printer's hook reads it. */
export const TYPE_MARKER = "x-ts-type";

/** The keyword that makes a marked type nullable; `nullable` itself is lost beside a hook's result. */
export const NULLABLE_MARKER = "x-ts-nullable";

/** Returns the schema of a shape in the words that openapi-typescript understands; what has a name is marked. */
export function openApiSchemaOf({ fields, isOpen }: ShapeModel): SchemaObject {
  // Null prototype: a field may be called __proto__.
  const properties = Object.create(null) as Record<string, SchemaObject>;
  for (const { name, type } of fields) properties[name] = schemaOf(type);
  return {
    type: "object",
    properties,
    required: fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    ...(isOpen ? { additionalProperties: true } : {}),
  };
}

function schemaOf(type: TypeModel): SchemaObject {
  const nullable = type.isNullable === true ? { nullable: true } : {};
  switch (type.kind) {
    case "scalar":
      return { type: type.type, ...nullable };
    case "enum":
      return { enum: [...type.values], ...nullable } as SchemaObject;
    case "array":
      return { type: "array", items: schemaOf(type.items), ...nullable } as SchemaObject;
    case "map":
      return { type: "object", additionalProperties: schemaOf(type.values), ...nullable } as SchemaObject;
    case "shape":
      return marked(type.name, type);
    case "runtime":
      return marked(type.isPartial === true ? `Partial<${type.name}>` : type.name, type);
    case "any":
      return {} as SchemaObject;
  }
}

// The hook is called for typed schemas only.
function marked(name: string, { isNullable }: TypeModel): SchemaObject {
  return { type: "object", [TYPE_MARKER]: name, [NULLABLE_MARKER]: isNullable === true };
}
