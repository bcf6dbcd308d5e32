import type { ResourceModel } from "../../model/project-model.js";
import { findDuplicates } from "./deduplicate.js";
import { renderDoc } from "./doc-comment.js";
import { inputViewOf, type InputView } from "./input-view.js";
import { camelCase } from "../naming.js";
import { normaliseSchema } from "./normalise.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { printAlias, printImport } from "../print/declarations.js";
import { group, ifBreak, indent, layOut, softline } from "../print/layout.js";
import { printValue } from "../print/print-value.js";
import { printField, printShape } from "./print-types.js";
import { inputNameOf, moduleOfResource } from "./resource-name.js";
import { buildRuntimeSchema } from "./runtime-schema.js";
import { codegenModule, type RuntimeType, type RuntimeValue } from "../runtime-symbols.js";
import type { NormalisedSchema, ShapeModel, TypeModel } from "./shape-model.js";

/** Emits the class of a kind with its types, and beside it the schema that the runtime reads. */
export function emitResource(resource: ResourceModel): OutputFile[] {
  const path = `src/generated/${moduleOfResource(resource)}`;
  const schema = normaliseSchema(resource);
  const input = inputViewOf(schema);
  const schemaName = `${camelCase(schema.className)}Schema`;
  const imports = [
    printImport(RESOURCE_VALUES, codegenModule),
    printImport(runtimeTypesOf([schema.root, ...schema.shapes]), codegenModule, true),
    printImport([schemaName], `./${path.slice(path.lastIndexOf("/") + 1)}.schema.js`),
  ];
  const declarations = [
    ...printShapes(schema.shapes),
    ...printShapes(input.shapes),
    printInput(resource, input),
    printClass(resource, schema),
  ];
  const value = printValue(buildRuntimeSchema(resource), 0, `export const ${schemaName}: Schema = `.length);
  return [
    generatedFile(`${path}.ts`, [imports.join("\n"), ...declarations]),
    generatedFile(`${path}.schema.ts`, [
      printImport(["Schema"], codegenModule, true),
      `export const ${schemaName}: Schema = ${value};`,
    ]),
  ];
}

const RESOURCE_VALUES = [
  "createResource",
  "defineResource",
  "isResource",
  "parseResource",
] as const satisfies readonly RuntimeValue[];

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

/** Prints shapes as exported types; shapes that differ in their name alone become one. */
export function printShapes(shapes: readonly ShapeModel[]): string[] {
  const duplicates = findDuplicates(shapes);
  return shapes.map((shape) => {
    const first = duplicates.get(shape.name);
    return first === undefined ? printShape(shape) : printAlias(shape.name, first);
  });
}

// The API server ignores a status at a creation, so the type has none.
function printInput(resource: ResourceModel, { root }: InputView): string {
  const { kind } = resource;
  const fields = root.fields.filter(({ name }) => !(name === "status" && resource.hasStatusSubresource));
  const members = [
    `  apiVersion?: ${JSON.stringify(apiVersionOf(resource))} | undefined;\n`,
    `  kind?: ${JSON.stringify(kind)} | undefined;\n`,
    "  metadata: ObjectMeta;\n",
    ...fields.map((field) => printField(field)),
    ...(root.isOpen ? ["  [key: string]: unknown;\n"] : []),
  ];
  const doc = `/** What a new ${kind} is made of; what the API server fills in may be left out. */`;
  return `${doc}\nexport interface ${inputNameOf(root.name)} {\n${members.join("")}}`;
}

/** Returns the apiVersion of a kind. */
function apiVersionOf({ group: apiGroup, version }: ResourceModel): string {
  return apiGroup === "" ? version : `${apiGroup}/${version}`;
}

function printClass(resource: ResourceModel, { className, root }: NormalisedSchema): string {
  const identity = [
    `  declare readonly apiVersion: ${JSON.stringify(apiVersionOf(resource))};\n`,
    `  declare readonly kind: ${JSON.stringify(resource.kind)};\n`,
    "  declare metadata: ObjectMeta;\n",
  ];
  const fields = root.fields.map((field) => `${field.doc.length === 0 ? "" : "\n"}${printField(field, "declare ")}`);
  const members = [
    `${identity.join("")}${fields.join("")}`,
    printDefinition(resource, className),
    ...printMethods(resource.kind, className),
  ];
  return `${renderDoc(classDocOf(resource, root))}\nexport class ${className} {\n${members.join("\n")}}`;
}

function classDocOf({ kind, deprecationWarning }: ResourceModel, root: ShapeModel): string[] {
  const doc = root.doc.length > 0 ? [...root.doc] : [`A ${kind}: plain JSON, as the API server stores it.`];
  return deprecationWarning === undefined ? doc : [...doc, "", "@deprecated"];
}

function printDefinition(resource: ResourceModel, className: string): string {
  const { group: apiGroup, version, kind, plural, scope, hasStatusSubresource, isCustom } = resource;
  const facts = { group: apiGroup, version, kind, plural, scope, hasStatusSubresource, isCustom };
  const lines = Object.entries(facts).map(([name, value]) => `    ${name}: ${JSON.stringify(value)},\n`);
  lines.push(`    schema: ${camelCase(className)}Schema,\n`);
  const doc = "  /** What the runtime knows of the kind. */\n";
  return `${doc}  static readonly definition: ResourceDefinition<${className}> = defineResource({\n${lines.join("")}  });\n`;
}

function printMethods(kind: string, className: string): string[] {
  const method = (head: string, { returns, calls, doc }: { [part in "returns" | "calls" | "doc"]: string }) => {
    const [name = "", parameter = ""] = head.split(": ");
    const signature = group([
      `static ${name}(`,
      indent([softline, `object: ${parameter}`]),
      ifBreak(","),
      softline,
      `): ${returns} {`,
    ]);
    return `  /** ${doc} */\n  ${layOut(signature, 2)}\n    return ${calls}(${className}.definition, object);\n  }\n`;
  };
  return [
    method(`create: ${inputNameOf(className)}`, {
      returns: className,
      calls: "createResource",
      doc: `Builds a ${kind}.`,
    }),
    method("is: unknown", {
      returns: `object is ${className}`,
      calls: "isResource",
      doc: `Tells a ${kind} from other objects by apiVersion and kind.`,
    }),
    method("parse: unknown", {
      returns: className,
      calls: "parseResource",
      doc: "Checks a value against the schema; throws a SchemaError that names all that is wrong.",
    }),
  ];
}
