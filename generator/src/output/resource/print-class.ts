import type { Schema } from "@gen-operator/runtime/codegen";
import type { ResourceModel } from "../../model/project-model.js";
import { camelCase } from "../naming.js";
import { printImport } from "../print/declarations.js";
import { group, ifBreak, indent, join, layOut, line, softline } from "../print/layout.js";
import { celModule, celValues, codegenModule, type RuntimeType, type RuntimeValue } from "../runtime-symbols.js";
import { renderDoc } from "./doc-comment.js";
import { printField } from "./print-types.js";
import { inputNameOf } from "./resource-name.js";
import { hasRules } from "./runtime-schema.js";
import type { ShapeModel, TypeModel } from "./shape-model.js";

/** What the file of a class imports of the runtime as values. */
export const RESOURCE_VALUES = [
  "createResource",
  "defineResource",
  "isResource",
  "parseResource",
] as const satisfies readonly RuntimeValue[];

/** Prints what the file of a class imports of the runtime as values. A kind without rules imports nothing that evaluates them. */
export function printValueImports(schema: Schema): string {
  if (!hasRules(schema)) return printImport(RESOURCE_VALUES, codegenModule);
  const values = RESOURCE_VALUES.filter((name) => name !== "parseResource");
  return `${printImport(celValues, celModule)}\n${printImport(values, codegenModule)}`;
}

/** Returns what the file of a class with these shapes imports of the runtime as types. */
export function runtimeTypesOf(resource: ResourceModel, shapes: readonly ShapeModel[]): RuntimeType[] {
  const names = new Set<RuntimeType>([...typesOfClass(resource), "ResourceDefinition", ...runtimeTypesIn(shapes)]);
  return [...names].sort();
}

/** Returns the types of the runtime that any class of a kind refers to. */
export function typesOfClass(resource: ResourceModel): RuntimeType[] {
  const { input } = METADATA[resource.scope];
  return [...new Set<RuntimeType>(["NewResource", "ParseOptions", "Unstored", input, ...metadataTypesOf(resource)])];
}

// Where a dependent of a namespaced kind goes is often the runtime's to say.
const METADATA = {
  Namespaced: { placed: "NamespacedMeta", input: "ObjectMeta" },
  Cluster: { placed: "ClusterMeta", input: "ClusterMeta" },
} as const satisfies Record<ResourceModel["scope"], { [view in "placed" | "input"]: RuntimeType }>;

/** Returns the types that the metadata of what is read have together: where the object is, and what the API server has set. */
function metadataTypesOf({
  scope,
  group: apiGroup,
  kind,
  isCustom,
  isDescribed = false,
}: ResourceModel): RuntimeType[] {
  const { placed } = METADATA[scope];
  if (isCustom) return [placed, "StoredCustomMeta"];
  // An aggregated API server may compute its objects, such as metrics, and set less.
  const isStored = !isDescribed && !UNSTORED_GROUPS.has(apiGroup) && !(apiGroup === "" && UNSTORED_KINDS.has(kind));
  return isStored ? [placed, "StoredMeta"] : [placed];
}

// The API server answers these reviews, bindings and statuses, and stores none.
const UNSTORED_GROUPS: ReadonlySet<string> = new Set(["authentication.k8s.io", "authorization.k8s.io"]);
const UNSTORED_KINDS: ReadonlySet<string> = new Set(["Binding", "ComponentStatus"]);

/** Returns the types of the runtime that shapes refer to. */
export function runtimeTypesIn(shapes: readonly ShapeModel[]): ReadonlySet<RuntimeType> {
  const names = new Set<RuntimeType>();
  const visit = (type: TypeModel): void => {
    if (type.kind === "runtime") names.add(type.name);
    else if (type.kind === "array") visit(type.items);
    else if (type.kind === "map") visit(type.values);
  };
  for (const { fields } of shapes) for (const { type } of fields) visit(type);
  return names;
}

/** Returns the name of the constant that holds the schema of a class. */
export function schemaNameOf(className: string): string {
  return `${camelCase(className)}Schema`;
}

/** Prints what a writer makes an object of. The API server ignores a status at a creation, so the type has none. */
export function printInput(resource: ResourceModel, root: ShapeModel): string {
  const { kind } = resource;
  const fields = root.fields.filter(({ name }) => !(name === "status" && resource.hasStatusSubresource));
  const members = [
    `  readonly apiVersion?: ${JSON.stringify(apiVersionOf(resource))} | undefined;\n`,
    `  readonly kind?: ${JSON.stringify(kind)} | undefined;\n`,
    `  readonly metadata: ${METADATA[resource.scope].input};\n`,
    ...fields.map((field) => printField(field)),
    ...(root.isOpen ? ["  readonly [key: string]: unknown;\n"] : []),
  ];
  const doc = `/** What a new ${kind} is made of; what the API server fills in may be left out. */`;
  return `${doc}\nexport interface ${inputNameOf(root.name)} {\n${members.join("")}}`;
}

/** Returns the apiVersion of a kind. */
function apiVersionOf({ group: apiGroup, version }: ResourceModel): string {
  return apiGroup === "" ? version : `${apiGroup}/${version}`;
}

/** What is said of a class to tools. */
export interface ClassMarks {
  /** Whether a bundler leaves out the class if nothing uses it, although it calls a function. */
  readonly isPure?: boolean;
}

/** Prints the class of a kind; `root` has its fields and the name of the class. */
export function printClass(resource: ResourceModel, root: ShapeModel, marks: ClassMarks = {}): string {
  const className = root.name;
  const identity = [
    `  declare readonly apiVersion: ${JSON.stringify(apiVersionOf(resource))};\n`,
    `  declare readonly kind: ${JSON.stringify(resource.kind)};\n`,
    `  declare readonly metadata: ${metadataTypesOf(resource).join(" & ")};\n`,
  ];
  const fields = root.fields.map((field) => `${field.doc.length === 0 ? "" : "\n"}${printField(field, "declare ")}`);
  const members = [
    `${identity.join("")}${fields.join("")}`,
    printDefinition(resource, className, marks),
    ...printMethods(resource, className),
  ];
  return `${renderDoc(classDocOf(resource, root))}\nexport class ${className} {\n${members.join("\n")}}`;
}

function classDocOf({ kind, deprecationWarning }: ResourceModel, root: ShapeModel): string[] {
  const doc = root.doc.length > 0 ? [...root.doc] : [`A ${kind}: plain JSON, as the API server stores it.`];
  return deprecationWarning === undefined ? doc : [...doc, "", "@deprecated"];
}

// The compiler keeps the mark only if the field has no type of its own.
function printDefinition(resource: ResourceModel, className: string, { isPure = false }: ClassMarks): string {
  const { group: apiGroup, version, kind, plural, scope, hasStatusSubresource, isCustom } = resource;
  const facts = { group: apiGroup, version, kind, plural, scope, hasStatusSubresource, isCustom };
  const lines = Object.entries(facts).map(([name, value]) => `    ${name}: ${JSON.stringify(value)},\n`);
  if (resource.scale !== undefined) lines.push(`    ${printScale(resource.scale)}\n`);
  lines.push(`    schema: ${schemaNameOf(className)},\n`);
  const doc = "  /** What the runtime knows of the kind. */\n";
  const start = isPure
    ? `definition = /* @__PURE__ */ defineResource<${className}>(`
    : `definition: ResourceDefinition<${className}> = defineResource(`;
  return `${doc}  static readonly ${start}{\n${lines.join("")}  });\n`;
}

function printScale(paths: NonNullable<ResourceModel["scale"]>): string {
  const fields = Object.entries(paths).map(([name, path]) => `${name}: ${JSON.stringify(path)}`);
  return layOut(["scale: ", group(["{", indent([line, join([",", line], fields)]), ifBreak(","), line, "}"]), ","], 4);
}

interface Method {
  readonly parameters: { readonly [name: string]: string };
  readonly returns: string;
  readonly calls: string;
  readonly doc: string;
}

function printMethods({ kind, isCustom }: ResourceModel, className: string): string[] {
  const method = (name: string, { returns, calls, doc, ...rest }: Method) => {
    const parameters = Object.entries(rest.parameters).map(([parameter, type]) => `${parameter}: ${type}`);
    const signature = group([
      `static ${name}(`,
      indent([softline, join([",", line], parameters)]),
      ifBreak(","),
      softline,
      `): ${returns} {`,
    ]);
    const given = ["definition", ...Object.keys(rest.parameters).map((parameter) => parameter.replace("?", ""))];
    return `  /** ${doc} */\n  ${layOut(signature, 2)}\n    return ${calls}(${className}.${given.join(", ")});\n  }\n`;
  };
  return [
    method("create", {
      parameters: { object: `NewResource<${inputNameOf(className)}, ${className}>` },
      returns: `Unstored<${className}>`,
      calls: "createResource",
      doc: `Builds a ${kind}${isCustom ? " with its defaults" : ""}; completes a name of which there is only \`generateName\`.`,
    }),
    method("is", {
      parameters: { object: "unknown" },
      returns: `object is ${className}`,
      calls: "isResource",
      doc: `Tells a ${kind} from other objects by apiVersion and kind.`,
    }),
    method("parse", {
      parameters: { object: "unknown", "options?": "ParseOptions" },
      returns: `Unstored<${className}>`,
      calls: "parseResource",
      doc: `Checks a value against the schema${isCustom ? " and fills in its defaults" : ""}; throws a SchemaError that names all that is wrong.`,
    }),
  ];
}
