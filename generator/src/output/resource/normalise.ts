import type { JsonValue } from "@gen-operator/runtime/codegen";
import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import { descriptionLinesOf, docLinesOf } from "./doc-comment.js";
import { classNameOf, NameAllocator, pascalCase } from "../naming.js";
import { isObjectMetaRef, realDefaultOf, resolveRef, shortNameOf } from "../../model/definitions.js";
import { runtimeTypes } from "../runtime-symbols.js";
import {
  dropsFields,
  hasFields,
  isIntOrString,
  isRecord,
  isStatusCondition,
  itemsOf,
  ownSchema,
  schemasOf,
} from "../../model/schema/raw-schema.js";
import { enumTypeOf } from "./enum-type.js";
import type { FieldModel, NormalisedSchema, ShapeModel, TypeModel } from "./shape-model.js";

/**
 * Turns the structural schema of a kind into flat, named shapes.
 *
 * Holds every rule about what a schema of Kubernetes means as a type. `oneOf`, `anyOf`, `allOf` and `not` are dropped: in a structural
 * schema they only narrow what is stated beside them. Names follow the path of a field, so they stay when unrelated fields come.
 */
export function normaliseSchema(resource: ResourceModel): NormalisedSchema {
  return new Normaliser(resource, IDENTITY).normalise();
}

/** Turns the schema of an object that Kubernetes does not have into shapes: all of its fields are fields of the root. */
export function normaliseObject(schema: RawSchema, name: string): NormalisedSchema {
  const resource = { kind: name, schema, definitions: new Map(), isCustom: true, isFilledIn: false };
  return new Normaliser(resource, new Set()).normalise();
}

/** Turns the schema of a built-in kind into the shape of its root, which refers to the shapes of definitions by their full names. */
export function normaliseBuiltin(resource: NormalisedKind): ShapeModel {
  return withoutInline(new Normaliser(resource, IDENTITY).normalise());
}

/** Turns a definition into a shape, which refers to others by their full names. */
export function normaliseDefinition(name: string, definitions: ReadonlyMap<string, RawSchema>): ShapeModel {
  const schema = definitions.get(name) ?? {};
  const kind: NormalisedKind = { kind: shortNameOf(name), schema, definitions, isCustom: false };
  return { ...withoutInline(new Normaliser(kind, new Set()).normalise()), name };
}

function withoutInline({ root, shapes: [inline] }: NormalisedSchema): ShapeModel {
  if (inline !== undefined) throw new Error(`${inline.name} has fields of its own, and is no definition`);
  return root;
}

/** What has to be known of a kind to name the types in its schema. */
type NormalisedKind = Pick<ResourceModel, "kind" | "schema" | "definitions" | "isCustom"> & {
  /** Whether an API server fills in the defaults of the schema. Default: true */
  readonly isFilledIn?: boolean;
};

/** Where a schema was found: the name of the type that it would get, and the path that makes the name unique. */
interface Place {
  readonly name: string;
  readonly path: readonly string[];
}

/** Finds a place out; only types with fields of their own have to know theirs. */
type FindPlace = () => Place;

class Normaliser {
  readonly #resource: NormalisedKind;
  /** The fields of the root that are not the schema's to say. */
  readonly #given: ReadonlySet<string>;
  readonly #names: NameAllocator;
  readonly #taken: Set<string>;
  readonly #shapes: ShapeModel[] = [];

  constructor(resource: NormalisedKind, given: ReadonlySet<string>) {
    this.#resource = resource;
    this.#given = given;
    const className = classNameOf(resource.kind);
    this.#taken = new Set([...runtimeTypes, className, `${className}Input`]);
    this.#names = new NameAllocator(this.#taken);
  }

  normalise(): NormalisedSchema {
    const className = classNameOf(this.#resource.kind);
    const { schema } = resolveRef(this.#resource.schema, this.#resource.definitions);
    const place = { name: className, path: [] };
    const fields = this.#fieldsOf(schema, place).filter(({ name }) => !this.#given.has(name) && name !== "constructor");
    const root = { name: className, fields, isOpen: isOpen(schema), doc: descriptionLinesOf(schema["description"]) };
    const names = new Set([...this.#taken, ...this.#shapes.map(({ name }) => name)]);
    return { className, root, shapes: this.#shapes, names };
  }

  #typeOf(raw: RawSchema, place: FindPlace): TypeModel {
    const { schema, definition } = resolveRef(raw, this.#resource.definitions);
    const type = this.#plainTypeOf(schema, place, definition);
    return isNullable(schema) && type.kind !== "any" ? { ...type, isNullable: true } : type;
  }

  #plainTypeOf(schema: RawSchema, place: FindPlace, definition: string | undefined): TypeModel {
    if (isIntOrString(schema)) return { kind: "runtime", name: "IntOrString" };
    if (definition !== undefined && isObjectMetaRef(definition)) return OPTIONAL_METADATA;
    const enumType = enumTypeOf(schema);
    if (enumType !== undefined) return enumType;
    switch (schema["type"]) {
      case "string":
      case "integer":
      case "number":
      case "boolean":
        return { kind: "scalar", type: schema["type"] };
      case "array":
        return { kind: "array", items: this.#itemsTypeOf(schema, place) };
      case "object":
        return this.#objectTypeOf(schema, place, definition);
      default:
        return isRecord(schema["properties"]) ? this.#objectTypeOf(schema, place, definition) : { kind: "any" };
    }
  }

  #itemsTypeOf(schema: RawSchema, place: FindPlace): TypeModel {
    const items = itemsOf(schema);
    if (items === undefined) return { kind: "any" };
    return this.#typeOf(items, () => inner(place(), "Item", "[]"));
  }

  #objectTypeOf(schema: RawSchema, place: FindPlace, definition: string | undefined): TypeModel {
    if (isStatusCondition(schema)) return { kind: "runtime", name: "StatusCondition" };
    const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
    if (isEmbedded || hasFields(schema)) return this.#shapeOf(schema, place, definition);
    const values = ownSchema(schema, "additionalProperties");
    if (values === undefined) return { kind: "map", values: { kind: this.#isAlwaysEmpty(schema) ? "never" : "any" } };
    return { kind: "map", values: this.#typeOf(values, () => inner(place(), "Value", "{}")) };
  }

  /** Tells whether the API server drops or refuses every field of an object that has no fields. Built-in kinds have free-form objects. */
  #isAlwaysEmpty(schema: RawSchema): boolean {
    const { isCustom, isFilledIn = true } = this.#resource;
    return isCustom && isFilledIn && (dropsFields(schema) || schema["additionalProperties"] === false);
  }

  #shapeOf(schema: RawSchema, find: FindPlace, definition: string | undefined): TypeModel {
    if (definition !== undefined) return { kind: "shape", name: definition };
    const place = find();
    const { path } = place;
    const name = this.#names.allocate(place.name, path);
    // The place in the list is taken before the fields are visited, so that a shape precedes those that it contains.
    const index = this.#shapes.length;
    const doc = path.at(-1) === "[]" || path.at(-1) === "{}" ? descriptionLinesOf(schema["description"]) : [];
    this.#shapes.push({ name, fields: [], isOpen: isOpen(schema), doc });
    const fields = this.#fieldsOf(schema, { name, path });
    this.#shapes[index] = { name, fields, isOpen: isOpen(schema), doc };
    return { kind: "shape", name };
  }

  #fieldsOf(schema: RawSchema, place: Place): FieldModel[] {
    const required = new Set(Array.isArray(schema["required"]) ? (schema["required"] as string[]) : []);
    const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
    const properties = schemasOf(schema, "properties");
    const fields = [...properties].map(([name, raw]): FieldModel => {
      const isImplied = isEmbedded && IDENTITY.has(name);
      const type = isImplied
        ? IMPLIED[name as keyof typeof IMPLIED]
        : this.#typeOf(raw, () => inner(place, pascalCase(name) || "Field", `.${name}`));
      const value = this.#defaultOf(raw);
      const isRequired = required.has(name) || (isEmbedded && DEMANDED.has(name));
      return {
        name,
        type: (!isRequired || value !== undefined) && OBJECT_MEMBERS.has(name) ? { kind: "any" } : type,
        // After the API server has filled in the defaults, a reader finds the field wherever its parent is. The schemas of built-in kinds
        // state a few of the many: types that differed for readers and writers would gain nothing.
        isRequired: isRequired || (this.#resource.isCustom && value !== undefined),
        ...(value === undefined ? {} : { default: value }),
        doc: docLinesOf(raw, realDefaultOf(raw, this.#resource.isCustom)),
      };
    });
    const implied = isEmbedded ? [...IDENTITY].filter((name) => !properties.has(name)) : [];
    return [...implied.map(impliedField), ...fields];
  }

  // A default of null is none.
  #defaultOf(raw: RawSchema): JsonValue | undefined {
    const { isCustom, isFilledIn = true } = this.#resource;
    return isFilledIn ? ((realDefaultOf(raw, isCustom) as JsonValue | undefined) ?? undefined) : undefined;
  }
}

const IDENTITY: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);
const OPTIONAL_METADATA: TypeModel = { kind: "runtime", name: "ObjectMeta", isPartial: true };
const TEXT: TypeModel = { kind: "scalar", type: "string" };
const IMPLIED = { apiVersion: TEXT, kind: TEXT, metadata: OPTIONAL_METADATA } as const;

// The API server demands of an embedded resource that it names its type, and no metadata.
const DEMANDED: ReadonlySet<string> = new Set(["apiVersion", "kind"]);

// Every object literal inherits these, with types that no schema means: an optional field of such a name would reject all of them.
const OBJECT_MEMBERS: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

function impliedField(name: string): FieldModel {
  return { name, type: IMPLIED[name as keyof typeof IMPLIED], isRequired: DEMANDED.has(name), doc: [] };
}

function inner({ name, path }: Place, word: string, step: string): Place {
  return { name: name + word, path: [...path, step] };
}

function isOpen(schema: RawSchema): boolean {
  return (
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    ((schema["additionalProperties"] === true || isRecord(schema["additionalProperties"])) && hasFields(schema))
  );
}

// An API server refuses null where there is an enum, also where the enum has it.
function isNullable(schema: RawSchema): boolean {
  const allowed = schema["enum"];
  return schema["nullable"] === true && !(Array.isArray(allowed) && allowed.length > 0);
}
