import type { GlobalContext, SchemaObject } from "openapi-typescript";
import type ts from "typescript";
import { loadLibrary } from "../model/library.js";
import { renderDoc } from "./doc-comment.js";
import { NULLABLE_MARKER, openApiSchemaOf, TYPE_MARKER } from "./open-api-schema.js";
import type { ShapeModel } from "./shape-model.js";

/** A field as TypeScript text. */
export interface PrintedField {
  readonly name: string;
  /** The name as it stands in a type: quoted where it has to be. */
  readonly key: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly doc: string;
}

/** Prints shapes as TypeScript text. */
export interface TypePrinter {
  /** Returns the fields of a shape; an optional one accepts undefined. */
  printFields(shape: ShapeModel): readonly PrintedField[];
  /** Returns an exported interface. */
  printInterface(shape: ShapeModel): string;
}

/**
 * Loads openapi-typescript, which turns schemas into types.
 *
 * It takes a while to load, hence not at the start. `transformSchemaObject` is called directly: the front door would lint and
 * bundle a whole OpenAPI document first. Its context is not documented, so the version is pinned and a contract test holds it.
 */
export function loadTypePrinter(): TypePrinter {
  const { default: transformSchemaObject } = loadLibrary("openapi-typescript/dist/transform/schema-object.cjs");
  const compiler = loadLibrary("typescript");
  const context = contextOf(compiler);
  const printer = compiler.createPrinter({ newLine: compiler.NewLineKind.LineFeed, removeComments: true });
  const file = compiler.createSourceFile("types.ts", "", compiler.ScriptTarget.ESNext);
  const print = (node: ts.Node) => printer.printNode(compiler.EmitHint.Unspecified, node, file);

  const printFields = (shape: ShapeModel): PrintedField[] => {
    if (shape.fields.length === 0) return [];
    const node = transformSchemaObject(openApiSchemaOf(shape), { path: "#", ctx: context });
    const literals = compiler.isIntersectionTypeNode(node) ? [...node.types] : [node];
    const members = literals.flatMap((literal) => (compiler.isTypeLiteralNode(literal) ? [...literal.members] : []));
    const signatures = members.filter((member) => compiler.isPropertySignature(member));
    if (signatures.length !== shape.fields.length)
      throw new Error(
        `openapi-typescript printed ${signatures.length} of the ${shape.fields.length} fields of ${shape.name}`,
      );
    return signatures.map(({ name, type, questionToken }, index) => ({
      name: shape.fields[index]!.name,
      key: print(name),
      type: type === undefined ? "unknown" : onOneLine(print(type)),
      isRequired: questionToken === undefined,
      doc: renderDoc(shape.fields[index]!.doc),
    }));
  };
  return { printFields, printInterface: (shape) => renderInterface(shape, printFields(shape)) };
}

// The compiler's printer breaks every type literal; only maps are printed here, since all objects have a name.
function onOneLine(type: string): string {
  const next = type.replace(/\{\s+(\[key: string\]: [^;{}]*(?:\{[^;]*\}[^;{}]*)?);\s+\}/g, "{ $1 }");
  return next === type ? type : onOneLine(next);
}

function renderInterface({ name, doc, isOpen }: ShapeModel, fields: readonly PrintedField[]): string {
  const members = fields.map((field) => `${field.doc}\n${renderField(field)}`.trim());
  if (isOpen) members.push("/** Fields that the schema does not name. */\n[key: string]: unknown;");
  return `${renderDoc(doc)}\nexport interface ${name} {\n${members.join("\n")}\n}`.trim();
}

/** Returns a field as a member of an interface. */
export function renderField({ key, type, isRequired }: PrintedField): string {
  return isRequired ? `${key}: ${type};` : `${key}?: ${optionalTypeOf(type)};`;
}

/** Returns the type of an optional field, which users may set to undefined. */
export function optionalTypeOf(type: string): string {
  return type === "unknown" ? type : `${type} | undefined`;
}

function contextOf(compiler: typeof ts): GlobalContext {
  return {
    additionalProperties: false,
    alphabetize: false,
    arrayLength: false,
    conditionalEnums: false,
    dedupeEnums: false,
    // A default makes no optional field required: the API server fills it in only if the parent is there.
    defaultNonNullable: false,
    discriminators: { objects: {}, refsHandled: [] },
    emptyObjectsUnknown: true,
    enum: false,
    enumValues: false,
    excludeDeprecated: false,
    exportType: false,
    generatePathParams: false,
    immutable: false,
    injectFooter: [],
    makePathsEnum: false,
    pathParamsAsTypes: false,
    postTransform: undefined,
    propertiesRequiredByDefault: false,
    readWriteMarkers: false,
    redoc: undefined as unknown as GlobalContext["redoc"],
    resolve: () => undefined,
    rootTypes: false,
    rootTypesKeepCasing: false,
    rootTypesNoSchemaPrefix: false,
    silent: true,
    transform: (schema) => namedTypeOf(schema, compiler),
    transformProperty: undefined,
  };
}

// The one hook: a marked schema is a reference to a type that has a name.
function namedTypeOf(schema: SchemaObject, { factory }: typeof ts): ts.TypeNode | undefined {
  const name: unknown = (schema as Record<string, unknown>)[TYPE_MARKER];
  if (typeof name !== "string") return undefined;
  const reference = factory.createTypeReferenceNode(name);
  const isNullable = (schema as Record<string, unknown>)[NULLABLE_MARKER] === true;
  return isNullable
    ? factory.createUnionTypeNode([reference, factory.createLiteralTypeNode(factory.createNull())])
    : reference;
}
