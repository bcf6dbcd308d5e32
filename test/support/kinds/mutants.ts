// Objects with one error that both the generated types and the API server detect.
import type { Schema } from "@gen-operator/runtime/codegen";

/** An object with one error. */
export interface Mutant {
  readonly problem: "unknown field" | "wrong type" | "missing field" | "other value";
  readonly path: string;
  readonly object: object;
}

type Json = Record<string, unknown>;

/** Returns all objects with one error below `spec` of a valid one. */
export function mutantsOf(object: { readonly spec?: unknown }, schema: Schema): Mutant[] {
  const spec = schema.properties?.["spec"];
  if (spec === undefined) return [];
  return changesOf(object.spec, spec, "spec").map(({ value, ...rest }) => ({
    ...rest,
    object: { ...object, spec: value },
  }));
}

type Change = Omit<Mutant, "object"> & { readonly value: unknown };

function changesOf(value: unknown, schema: Schema, path: string): Change[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return [];
    return value.flatMap((item: unknown, index) =>
      changesOf(item, items, `${path}[${index}]`).map((change) => ({
        ...change,
        value: value.with(index, change.value),
      })),
    );
  }
  if (typeof value === "object" && value !== null) return changesOfObject(value as Json, schema, path);
  return changesOfScalar(value, schema, path);
}

function changesOfScalar(value: unknown, schema: Schema, path: string): Change[] {
  if (value === null || value === undefined) return [];
  const { type, enum: options } = schema;
  const changes: Change[] = [];
  if (schema["x-kubernetes-int-or-string"] === true) return [{ problem: "wrong type", path, value: true }];
  if (type === undefined) return changes;
  changes.push({ problem: "wrong type", path, value: type === "string" ? 7 : "seven" });
  if (type === "string" && options !== undefined)
    changes.push({ problem: "other value", path, value: "no such value" });
  return changes;
}

function changesOfObject(object: Json, schema: Schema, path: string): Change[] {
  const { properties, additionalProperties, required = [] } = schema;
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const inner = Object.entries(object).flatMap(([name, member]) => {
    const known = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
    const below = known ?? (typeof additionalProperties === "object" ? additionalProperties : undefined);
    if (below === undefined) return [];
    return changesOf(member, below, `${path}.${name}`).map((change) => ({
      ...change,
      value: { ...object, [name]: change.value },
    }));
  });
  if (properties === undefined) return inner;
  const missing = required.filter((name) => name in object && properties[name]?.default === undefined);
  return [
    ...inner,
    ...(isOpen ? [] : [{ problem: "unknown field" as const, path, value: { ...object, noSuchField: 1 } }]),
    ...missing.map((name): Change => {
      const { [name]: _, ...rest } = object;
      return { problem: "missing field", path: `${path}.${name}`, value: rest };
    }),
  ];
}
