import type { RawSchema, ResourceModel } from "../../model/project-model.js";
import { ownSchema, schemasOf } from "../../model/schema.js";
import { NameAllocator, camelCase, inputNameOf, modulePathOf } from "../names.js";
import { type OutputFile, generatedFile } from "../output-file.js";
import {
  type Doc,
  type ImportSymbol,
  type MemberNode,
  type Printed,
  type TypeNode,
  WIDTH,
  group,
  ifBreak,
  indent,
  intersection,
  join,
  joinLines,
  layOut,
  line,
  memberDoc,
  objectOf,
  print,
  printAlias,
  printText,
  propertyNameOf,
  readonlyArrayOf,
  reference,
  softline,
  symbolDoc,
  symbolsOf,
  typeDoc,
  typeFrom,
  typeText,
  union,
  valueFrom,
} from "../print.js";
import { type RuntimeType, celValues, codegenValues, codegenTypes } from "../runtime-symbols.js";
import { buildRuntimeSchema, hasRules, printSchema } from "./runtime-schema.js";
import {
  type BaseModel,
  type FieldModel,
  type NormalisedSchema,
  type ShapeModel,
  type TypeModel,
  normaliseSchema,
  renderDoc,
} from "./shape.js";

/** Emits the class of a kind with its types, and the schema for the runtime in a separate file. */
export function emitResource(resource: ResourceModel): OutputFile[] {
  const path = `src/generated/${modulePathOf(resource)}`;
  const schema = normaliseSchema(resource);
  const input = inputViewOf(schema);
  const schemaName = schemaNameOf(schema.className);
  const runtimeSchema = buildRuntimeSchema(resource);
  const schemaSymbol = valueFrom(`./${path.slice(path.lastIndexOf("/") + 1)}.schema.js`, schemaName);
  return [
    generatedFile(`${path}.ts`, [
      ...printShapes(schema.shapes),
      ...printShapes(input.shapes),
      printInput(resource, input.root),
      printClass(resource, schema.root, { schema: schemaSymbol, hasRules: hasRules(runtimeSchema) }),
    ]),
    generatedFile(`${path}.schema.ts`, printSchema(schemaName, runtimeSchema)),
  ];
}

/** Prints shapes as exported types. A shape that equals an earlier one becomes an alias. */
export function printShapes(shapes: readonly ShapeModel[]): Printed[] {
  const duplicates = findDuplicates(shapes);
  return shapes.map((shape) => {
    const first = duplicates.get(shape.name);
    return first === undefined ? printShape(shape) : printAlias(shape.name, first);
  });
}

// The runtime often sets the namespace of a namespaced dependent, so it is optional.
const METADATA = {
  Namespaced: { placed: "NamespacedMeta", input: "ObjectMeta" },
  Cluster: { placed: "ClusterMeta", input: "ClusterMeta" },
} as const satisfies Record<ResourceModel["scope"], { [view in "placed" | "input"]: RuntimeType }>;

/** Returns the type of the metadata of a live object: its name and namespace, and the fields that the API server sets. */
function metadataTypeOf({ scope, group: apiGroup, kind, isCustom, isDescribed = false }: ResourceModel): TypeNode {
  const placed = codegenTypes[METADATA[scope].placed];
  if (isCustom) return intersection(placed, codegenTypes.StoredCustomMeta);
  // An aggregated API server may compute its objects, such as metrics, and set fewer fields.
  const isStored = !isDescribed && !UNSTORED_GROUPS.has(apiGroup) && !(apiGroup === "" && UNSTORED_KINDS.has(kind));
  return isStored ? intersection(placed, codegenTypes.StoredMeta) : placed;
}

// The API server does not store reviews, bindings, and component statuses.
const UNSTORED_GROUPS: ReadonlySet<string> = new Set(["authentication.k8s.io", "authorization.k8s.io"]);
const UNSTORED_KINDS: ReadonlySet<string> = new Set(["Binding", "ComponentStatus"]);

/** Returns the name of the constant with the schema of a class. */
export function schemaNameOf(className: string): string {
  return `${camelCase(className)}Schema`;
}

/** Prints the input type of a kind. It has no status if the kind has the status subresource, because the API server then ignores it on creation. */
export function printInput(resource: ResourceModel, root: ShapeModel): Printed {
  const { kind } = resource;
  const fields = root.fields.filter(({ name }) => !(name === "status" && resource.hasStatusSubresource));
  const members = [
    `  readonly apiVersion?: ${JSON.stringify(apiVersionOf(resource))} | undefined;\n`,
    `  readonly kind?: ${JSON.stringify(kind)} | undefined;\n`,
    ["  readonly metadata: ", printSymbol(METADATA[resource.scope].input), ";\n"],
    ...fields.map((field) => printField(field)),
    ...(root.isOpen ? ["  readonly [key: string]: unknown;\n"] : []),
  ];
  const doc = `/** What a new ${kind} is made of; what the API server fills in may be left out. */`;
  return [`${doc}\nexport interface ${inputNameOf(root.name)} {\n`, members, "}"];
}

function printSymbol(name: RuntimeType): Printed {
  return print(symbolDoc(codegenTypes[name]));
}

function apiVersionOf({ group: apiGroup, version }: ResourceModel): string {
  return apiGroup === "" ? version : `${apiGroup}/${version}`;
}

/** Options of {@link printClass}. */
interface ClassOptions {
  /** Constant with the schema of the kind. */
  readonly schema: ImportSymbol;
  /** True if the schema has validation rules, so that `parse` requires the CEL evaluator. Default: false */
  readonly hasRules?: boolean;
  /** True to mark the class as free of side effects, so that bundlers can drop it if it is unused. Default: false */
  readonly isPure?: boolean;
}

/** Prints the class of a kind. `root` has its fields and the name of the class. */
export function printClass(resource: ResourceModel, root: ShapeModel, options: ClassOptions): Printed {
  const className = root.name;
  const identity = [
    `  declare readonly apiVersion: ${JSON.stringify(apiVersionOf(resource))};\n`,
    `  declare readonly kind: ${JSON.stringify(resource.kind)};\n`,
    ["  declare readonly metadata: ", print(typeDoc(metadataTypeOf(resource))), ";\n"],
  ];
  const fields = root.fields.map((field) => [field.doc.length === 0 ? "" : "\n", printField(field, "declare ")]);
  const members = [
    [identity, fields],
    printDefinition(resource, className, options),
    ...printMethods(resource, className, options),
  ];
  const head = `${renderDoc(classDocOf(resource, root))}\nexport class ${className} {\n`;
  return [head, joinLines(members), "}"];
}

function classDocOf({ kind, deprecationWarning }: ResourceModel, root: ShapeModel): string[] {
  const doc = root.doc.length > 0 ? [...root.doc] : [`A ${kind}: plain JSON, as the API server stores it.`];
  return deprecationWarning === undefined ? doc : [...doc, "", "@deprecated"];
}

// The compiler only preserves the annotation if the field has no explicit type.
function printDefinition(
  resource: ResourceModel,
  className: string,
  { schema, isPure = false }: ClassOptions,
): Printed {
  const { group: apiGroup, version, kind, plural, scope, hasStatusSubresource, isCustom } = resource;
  const facts = { group: apiGroup, version, kind, plural, scope, hasStatusSubresource, isCustom };
  const lines = Object.entries(facts).map(([name, value]) => `    ${name}: ${JSON.stringify(value)},\n`);
  if (resource.scale !== undefined) lines.push(`    ${printScale(resource.scale)}\n`);
  const define = print(symbolDoc(codegenValues.defineResource));
  const start = isPure
    ? ["definition = /* @__PURE__ */ ", define, `<${className}>(`]
    : ["definition: ", printSymbol("ResourceDefinition"), `<${className}> = `, define, "("];
  return [
    "  /** What the runtime knows of the kind. */\n  static readonly ",
    ...[start, `{\n${lines.join("")}    schema: `, print(symbolDoc(schema)), ",\n  });\n"],
  ];
}

function printScale(paths: NonNullable<ResourceModel["scale"]>): string {
  const fields = Object.entries(paths).map(([name, path]) => `${name}: ${JSON.stringify(path)}`);
  return layOut(["scale: ", group(["{", indent([line, join([",", line], fields)]), ifBreak(","), line, "}"]), ","], 4);
}

interface Method {
  /** Types of the parameters, by name. */
  readonly parameters: { readonly [name: string]: Doc };
  readonly returns: Doc;
  readonly calls: ImportSymbol;
  readonly doc: string;
}

function printMethods(
  { kind, isCustom }: ResourceModel,
  className: string,
  { hasRules: isChecked = false }: ClassOptions,
): Printed[] {
  const unstored = [symbolDoc(codegenTypes.Unstored), `<${className}>`];
  const method = (name: string, { returns, calls, doc, ...rest }: Method): Printed => {
    const parameters = Object.entries(rest.parameters).map(([parameter, type]) => [`${parameter}: `, type]);
    const signature = group([
      `static ${name}(`,
      indent([softline, join([",", line], parameters)]),
      ifBreak(","),
      softline,
      ["): ", returns, " {"],
    ]);
    const given = ["definition", ...Object.keys(rest.parameters).map((parameter) => parameter.replace("?", ""))];
    const call = [print(symbolDoc(calls)), `(${className}.${given.join(", ")});\n  }\n`];
    return [`  /** ${doc} */\n  `, print(signature, 2), "\n    return ", call];
  };
  return [
    method("create", {
      parameters: { object: [symbolDoc(codegenTypes.NewResource), `<${inputNameOf(className)}, ${className}>`] },
      returns: unstored,
      calls: codegenValues.createResource,
      doc: `Builds a ${kind}${isCustom ? " with its defaults" : ""}; completes a name of which there is only \`generateName\`.`,
    }),
    method("is", {
      parameters: { object: "unknown" },
      returns: `object is ${className}`,
      calls: codegenValues.isResource,
      doc: `Tells a ${kind} from other objects by apiVersion and kind.`,
    }),
    method("parse", {
      parameters: { object: "unknown", "options?": symbolDoc(codegenTypes.ParseOptions) },
      returns: unstored,
      // A kind without rules does not import the CEL evaluator.
      calls: isChecked ? celValues.parseResource : codegenValues.parseResource,
      doc: `Checks a value against the schema${isCustom ? " and fills in its defaults" : ""}; throws a SchemaError that names all that is wrong.`,
    }),
  ];
}

/** Returns the type of a field or an item. */
function typeNodeOf(type: TypeModel): TypeNode {
  const plain = plainTypeNodeOf(type);
  return type.isNullable === true ? union(plain, "null") : plain;
}

function plainTypeNodeOf(type: TypeModel): TypeNode {
  switch (type.kind) {
    case "scalar":
      return type.type === "integer" ? "number" : type.type;
    case "enum":
      return union(...type.values.map(literalOf));
    case "array":
      return readonlyArrayOf(typeNodeOf(type.items));
    case "map":
      return objectOf({ "readonly [key: string]": typeNodeOf(type.values) });
    case "shape":
      return type.from === undefined ? type.name : typeFrom(type.from, type.name);
    case "runtime":
      return type.isPartial === true ? reference("Partial", codegenTypes[type.name]) : codegenTypes[type.name];
    case "any":
      return "unknown";
    case "never":
      return "never";
  }
}

function literalOf(value: string | number | boolean): string {
  return typeof value === "string" ? printText(value) : JSON.stringify(value).replace("e+", "e");
}

/** Returns a field as a readonly member of an interface. An optional field accepts undefined. */
export function memberOf({ name, type, isRequired }: FieldModel): MemberNode {
  const node = typeNodeOf(type);
  const head = `readonly ${propertyNameOf(name)}`;
  if (isRequired) return { head, type: node };
  return { head: `${head}?`, type: node === "unknown" ? node : union(node, "undefined") };
}

/** Prints an exported interface. An input shape with a base extends the shape for readers. */
export function printShape({ name, base, doc, fields, isOpen }: ShapeModel): Printed {
  const own = base === undefined ? fields : fields.filter((field) => base.redeclared.includes(field.name));
  const members = own.map((field) => printField(field));
  if (isOpen && base === undefined) members.push(OPEN_MEMBER);
  const comment = doc.length === 0 ? "" : `${renderDoc(doc)}\n`;
  const body = members.length === 0 ? "{}" : ["{\n", members, "}"];
  const head = layOut(["export interface ", name, base === undefined ? "" : [" extends ", typeDoc(parentOf(base))]]);
  return [`${comment}${head} `, body];
}

function parentOf({ name, redeclared }: BaseModel): TypeNode {
  return reference("Omit", name, union(...redeclared.map((field) => printText(field))));
}

// For objects that may have undeclared fields.
const OPEN_MEMBER = "  /** Fields that the schema does not name. */\n  readonly [key: string]: unknown;\n";

/** Prints a field with its doc comment, indented as a member. `modifiers` precede its name. */
function printField(field: FieldModel, modifiers = ""): Printed {
  const doc = field.doc.length === 0 ? "" : `  ${renderDoc(field.doc).replaceAll("\n", "\n  ")}\n`;
  const member = printMember(memberOf(field), modifiers);
  return typeof member === "string" ? `${doc}${member}` : [doc, member];
}

// Fast path: most members fit on one line.
function printMember({ head, type }: MemberNode, modifiers: string): Printed {
  const text = `${modifiers}${head}: ${typeText(type)};`;
  const member = text.length <= WIDTH - 2 ? text : layOut([memberDoc({ head: `${modifiers}${head}`, type }), ";"], 2);
  const symbols = symbolsOf(type);
  return symbols.length === 0 ? `  ${member}\n` : { text: `  ${member}\n`, symbols };
}

/** The input shapes that differ from those for readers, and their names. */
interface InputView {
  readonly root: ShapeModel;
  readonly shapes: readonly ShapeModel[];
  /** Names of the input shapes, by the name of the shape for readers. Only contains shapes that differ. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Derives the input types of a kind, in which fields with a default are optional.
 *
 * For readers, such a field is always present. An input type is only derived where it differs from the type for readers.
 */
export function inputViewOf({ root, shapes, names: taken }: NormalisedSchema): InputView {
  const view = inputShapesOf(shapes, taken);
  return { ...view, root: inputOf(root, view.names) };
}

/** Returns the name of the input type of the status of a custom kind; undefined if it equals the type for readers. */
export function statusInputOf(resource: ResourceModel): string | undefined {
  const status = schemasOf(resource.schema, "properties").get("status");
  // Building the shapes is slow, and few kinds have defaults in their status.
  if (!resource.isCustom || status === undefined || !hasDefault(status)) return undefined;
  const schema = normaliseSchema(resource);
  const name = shapeNameIn(schema.root.fields.find((field) => field.name === "status")?.type ?? { kind: "any" });
  return inputViewOf(schema).names.get(name ?? "");
}

function hasDefault(schema: RawSchema): boolean {
  const inner = [...schemasOf(schema, "properties").values(), ownSchema(schema, "items")];
  const all = [...inner, ownSchema(schema, "additionalProperties")];
  return schema["default"] !== undefined || all.some((each) => each !== undefined && hasDefault(each));
}

/** Derives the input shapes that differ from those for readers. `taken` are names that must not be used. */
export function inputShapesOf(shapes: readonly ShapeModel[], taken: Iterable<string>): Omit<InputView, "root"> {
  const changed = findChanged(shapes);
  const allocator = new NameAllocator(taken);
  const names = new Map(
    shapes
      .filter(({ name }) => changed.has(name))
      .map(({ name }) => [name, allocator.allocate(`${name}Input`, [name, "(input)"])]),
  );
  const own = shapes.filter(({ name }) => names.has(name));
  // A type of the kind may be called Omit.
  const baseIn = new Set(taken).has("Omit") ? () => ({}) : baseOf;
  return { shapes: own.map((shape) => ({ ...inputOf(shape, names), ...baseIn(shape, names) })), names };
}

/** Returns the input shape of a shape. `names` are the names of the input shapes that differ. */
export function inputOf(shape: ShapeModel, names: ReadonlyMap<string, string>): ShapeModel {
  return {
    ...shape,
    name: names.get(shape.name) ?? shape.name,
    fields: shape.fields.map((field) => ({
      ...field,
      type: renameShapes(field.type, names),
      isRequired: field.isRequired && field.default === undefined,
    })),
  };
}

function baseOf({ name, fields, isOpen }: ShapeModel, names: ReadonlyMap<string, string>): Pick<ShapeModel, "base"> {
  const isChanged = (field: FieldModel) =>
    (field.isRequired && field.default !== undefined) || names.has(shapeNameIn(field.type) ?? "");
  const redeclared = fields.filter(isChanged).map((field) => field.name);
  // Omit of a type with an index signature would lose the declared fields, and is pointless if all fields are redeclared.
  return isOpen || redeclared.length === fields.length ? {} : { base: { name, redeclared } };
}

// Shapes can be recursive, so iterate until the set stops growing.
function findChanged(shapes: readonly ShapeModel[]): ReadonlySet<string> {
  const changed = new Set<string>();
  for (let size = -1; size < changed.size;) {
    size = changed.size;
    for (const { name, fields } of shapes) {
      const isChanged = fields.some(
        (field) => (field.isRequired && field.default !== undefined) || changed.has(shapeNameIn(field.type) ?? ""),
      );
      if (isChanged) changed.add(name);
    }
  }
  return changed;
}

/**
 * Finds shapes that are equal except for their name. Returns the name of the first one by the name of each later one.
 *
 * Large kinds repeat a pod template dozens of times. Every path keeps its name as an alias, so no name changes when shapes start to differ.
 */
export function findDuplicates(shapes: readonly ShapeModel[]): ReadonlyMap<string, string> {
  const byName = new Map(shapes.map((shape) => [shape.name, shape]));
  const aliases = new Map<string, string>();
  const distinct = new Map<string, ShapeModel[]>();
  const visited = new Set<string>();
  const visit = (shape: ShapeModel) => {
    if (visited.has(shape.name)) return;
    visited.add(shape.name);
    for (const { type } of shape.fields) {
      const name = shapeNameIn(type);
      const child = name === undefined ? undefined : byName.get(name);
      if (child !== undefined) visit(child);
    }
    // Doc comments make up most of a shape, so compare only shapes with the same field names.
    const outline = outlineOf(shape);
    const similar = distinct.get(outline) ?? [];
    const first = similar.find((each) => isSame(each, shape, aliases));
    if (first !== undefined) aliases.set(shape.name, first.name);
    else distinct.set(outline, [...similar, shape]);
  };
  shapes.forEach(visit);
  return aliases;
}

function outlineOf({ fields }: ShapeModel): string {
  return fields.map(({ name }) => name).join();
}

// Shapes with and without a base are printed differently.
function isSame(left: ShapeModel, right: ShapeModel, aliases: ReadonlyMap<string, string>): boolean {
  return (
    left.isOpen === right.isOpen &&
    (left.base === undefined) === (right.base === undefined) &&
    isSameList(left.doc, right.doc) &&
    isSameList(left.fields, right.fields, (one, other) => isSameField(one, other, aliases))
  );
}

function isSameField(left: FieldModel, right: FieldModel, aliases: ReadonlyMap<string, string>): boolean {
  return (
    left.name === right.name &&
    left.isRequired === right.isRequired &&
    isSameType(left.type, right.type, aliases) &&
    isSameList(left.doc, right.doc) &&
    (left.default === right.default || JSON.stringify(left.default) === JSON.stringify(right.default))
  );
}

function isSameType(left: TypeModel, right: TypeModel, aliases: ReadonlyMap<string, string>): boolean {
  if (left.kind !== right.kind || left.isNullable !== right.isNullable) return false;
  if (left.kind === "array" && right.kind === "array") return isSameType(left.items, right.items, aliases);
  if (left.kind === "map" && right.kind === "map") return isSameType(left.values, right.values, aliases);
  if (left.kind === "scalar" && right.kind === "scalar") return left.type === right.type;
  if (left.kind !== "shape" || right.kind !== "shape") return JSON.stringify(left) === JSON.stringify(right);
  return (aliases.get(left.name) ?? left.name) === (aliases.get(right.name) ?? right.name);
}

function isSameList<Item>(
  left: readonly Item[],
  right: readonly Item[],
  isSameItem: (left: Item, right: Item) => boolean = Object.is,
): boolean {
  return left.length === right.length && left.every((item, index) => isSameItem(item, right[index] as Item));
}

/** Returns the name of the shape that a type is or contains; undefined if there is none. */
export function shapeNameIn(type: TypeModel): string | undefined {
  if (type.kind === "shape") return type.name;
  if (type.kind === "array") return shapeNameIn(type.items);
  return type.kind === "map" ? shapeNameIn(type.values) : undefined;
}

function renameShapes(type: TypeModel, names: ReadonlyMap<string, string>): TypeModel {
  return mapShapes(type, (name) => ({ name: names.get(name) ?? name }));
}

/** Replaces the shape in a type. */
export function mapShapes(
  type: TypeModel,
  placeOf: (name: string) => { readonly name: string; readonly from?: string },
): TypeModel {
  if (type.kind === "shape") return { ...type, ...placeOf(type.name) };
  if (type.kind === "array") return { ...type, items: mapShapes(type.items, placeOf) };
  return type.kind === "map" ? { ...type, values: mapShapes(type.values, placeOf) } : type;
}
