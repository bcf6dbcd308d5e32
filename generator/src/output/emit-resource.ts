import type { ClassDeclarationStructure, ImportDeclarationStructure, MethodDeclarationStructure } from "ts-morph";
import { loadLibrary } from "../model/library.js";
import type { ResourceModel } from "../model/project-model.js";
import { findDuplicates } from "./deduplicate.js";
import { renderDoc } from "./doc-comment.js";
import { inputViewOf, type InputView } from "./input-view.js";
import { camelCase } from "./naming.js";
import { normaliseSchema } from "./normalise.js";
import { GENERATED_HEADER, type OutputFile } from "./output-file.js";
import { optionalTypeOf, renderField, type PrintedField, type TypePrinter } from "./print-types.js";
import { printValue } from "./print-value.js";
import { inputNameOf, moduleOfResource } from "./resource-name.js";
import { buildRuntimeSchema } from "./runtime-schema.js";
import { codegenModule, type RuntimeType, type RuntimeValue } from "./runtime-symbols.js";
import type { NormalisedSchema, ShapeModel, TypeModel } from "./shape-model.js";
import type { SourcePrinter } from "./source-file.js";

const { StructureKind } = loadLibrary("ts-morph");

/** What the emitters print with. */
export interface Printers {
  readonly types: TypePrinter;
  readonly source: SourcePrinter;
}

/** Emits the class of a kind with its types, and beside it the schema that the runtime reads. */
export async function emitResource(resource: ResourceModel, { types, source }: Printers): Promise<OutputFile[]> {
  const path = `src/generated/${moduleOfResource(resource)}`;
  const schema = normaliseSchema(resource);
  const input = inputViewOf(schema);
  const schemaName = `${camelCase(schema.className)}Schema`;
  const file = await source.print(`${path}.ts`, [
    importOf([...RESOURCE_VALUES], false),
    importOf(runtimeTypesOf([schema.root, ...schema.shapes]), true),
    {
      kind: StructureKind.ImportDeclaration,
      moduleSpecifier: `./${path.slice(path.lastIndexOf("/") + 1)}.schema.js`,
      namedImports: [schemaName],
    },
    ...shapesOf(schema.shapes, types),
    ...shapesOf(input.shapes, types),
    inputOf(resource, input, types),
    classOf(resource, schema, types.printFields(schema.root)),
  ]);
  const text = [
    GENERATED_HEADER,
    "",
    `import type { Schema } from "${codegenModule}";`,
    "",
    `export const ${schemaName}: Schema = `,
  ].join("\n");
  const value = printValue(buildRuntimeSchema(resource), 0, `export const ${schemaName}: Schema = `.length);
  return [file, { path: `${path}.schema.ts`, owner: "generator", content: `${text}${value};\n` }];
}

const RESOURCE_VALUES = [
  "createResource",
  "defineResource",
  "isResource",
  "parseResource",
] as const satisfies readonly RuntimeValue[];

function importOf(names: readonly (RuntimeType | RuntimeValue)[], isTypeOnly: boolean): ImportDeclarationStructure {
  return {
    kind: StructureKind.ImportDeclaration,
    moduleSpecifier: codegenModule,
    namedImports: [...names],
    isTypeOnly,
  };
}

function runtimeTypesOf(shapes: readonly ShapeModel[]): RuntimeType[] {
  const names = new Set<RuntimeType>(["ObjectMeta", "ResourceDefinition"]);
  const visit = (type: TypeModel): void => {
    if (type.kind === "runtime") names.add(type.name);
    else if (type.kind === "array") visit(type.items);
    else if (type.kind === "map") visit(type.values);
  };
  for (const { fields } of shapes) for (const { type } of fields) visit(type);
  return [...names].sort();
}

/** Returns shapes as exported types; shapes that differ in their name alone become one. */
export function shapesOf(shapes: readonly ShapeModel[], types: TypePrinter): string[] {
  const duplicates = findDuplicates(shapes);
  return shapes.map((shape) => {
    const first = duplicates.get(shape.name);
    return `\n${first === undefined ? types.printInterface(shape) : `export type ${shape.name} = ${first};`}`;
  });
}

// The API server ignores a status at a creation, so the type has none.
function inputOf(resource: ResourceModel, { root }: InputView, types: TypePrinter): string {
  const { kind } = resource;
  const fields = types
    .printFields(root)
    .filter(({ name }) => !(name === "status" && resource.hasStatusSubresource))
    .map((field) => `${field.doc}\n${renderField(field)}`);
  return [
    `\n/** What a new ${kind} is made of; what the API server fills in may be left out. */`,
    `export interface ${inputNameOf(root.name)} {`,
    `apiVersion?: ${JSON.stringify(apiVersionOf(resource))} | undefined;`,
    `kind?: ${JSON.stringify(kind)} | undefined;`,
    "metadata: ObjectMeta;",
    ...fields,
    ...(root.isOpen ? ["[key: string]: unknown;"] : []),
    "}",
  ].join("\n");
}

/** Returns the apiVersion of a kind. */
function apiVersionOf({ group, version }: ResourceModel): string {
  return group === "" ? version : `${group}/${version}`;
}

function classOf(
  resource: ResourceModel,
  { className, root }: NormalisedSchema,
  fields: readonly PrintedField[],
): ClassDeclarationStructure {
  const field = (name: string, type: string, isReadonly = false) => ({
    name,
    type,
    isReadonly,
    hasDeclareKeyword: true,
  });
  return {
    kind: StructureKind.Class,
    name: className,
    isExported: true,
    leadingTrivia: `\n${renderDoc(classDocOf(resource, root))}\n`,
    properties: [
      field("apiVersion", JSON.stringify(apiVersionOf(resource)), true),
      field("kind", JSON.stringify(resource.kind), true),
      field("metadata", "ObjectMeta"),
      ...fields.map(({ key, type, isRequired, doc }) => ({
        ...field(key, isRequired ? type : optionalTypeOf(type)),
        hasQuestionToken: !isRequired,
        ...(doc === "" ? {} : { leadingTrivia: `\n${doc}\n` }),
      })),
      {
        name: "definition",
        isStatic: true,
        isReadonly: true,
        type: `ResourceDefinition<${className}>`,
        initializer: `defineResource({${factsOf(resource)}, schema: ${camelCase(className)}Schema })`,
        leadingTrivia: "\n/** What the runtime knows of the kind. */\n",
      },
    ],
    methods: methodsOf(resource.kind, className),
  };
}

function classDocOf({ kind, deprecationWarning }: ResourceModel, root: ShapeModel): string[] {
  const doc = root.doc.length > 0 ? [...root.doc] : [`A ${kind}: plain JSON, as the API server stores it.`];
  return deprecationWarning === undefined ? doc : [...doc, "", "@deprecated"];
}

function factsOf({ group, version, kind, plural, scope, hasStatusSubresource, isCustom }: ResourceModel): string {
  const facts = { group, version, kind, plural, scope, hasStatusSubresource, isCustom };
  return Object.entries(facts)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(", ");
}

function methodsOf(kind: string, className: string): MethodDeclarationStructure[] {
  const method = (
    name: string,
    parameter: string,
    { returns, calls, doc }: { [part in "returns" | "calls" | "doc"]: string },
  ): MethodDeclarationStructure => ({
    kind: StructureKind.Method,
    name,
    isStatic: true,
    parameters: [{ name: "object", type: parameter }],
    returnType: returns,
    statements: [`return ${calls}(${className}.definition, object);`],
    leadingTrivia: `\n/** ${doc} */\n`,
  });
  return [
    method("create", inputNameOf(className), {
      returns: className,
      calls: "createResource",
      doc: `Builds a ${kind}.`,
    }),
    method("is", "unknown", {
      returns: `object is ${className}`,
      calls: "isResource",
      doc: `Tells a ${kind} from other objects by apiVersion and kind.`,
    }),
    method("parse", "unknown", {
      returns: className,
      calls: "parseResource",
      doc: "Checks a value against the schema; throws a SchemaError that names all that is wrong.",
    }),
  ];
}
