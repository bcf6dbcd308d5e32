import { renderDoc } from "./doc-comment.js";
import { layOut, WIDTH } from "../print/layout.js";
import { memberDoc, typeDoc } from "../print/print-type.js";
import { printText, propertyNameOf } from "../print/print-value.js";
import { objectOf, readonlyArrayOf, reference, union, type MemberNode, type TypeNode } from "../print/type-node.js";
import { typeText } from "../print/type-text.js";
import type { BaseModel, FieldModel, ShapeModel, TypeModel } from "./shape-model.js";

/** Returns the type of a field or of an item. */
export function typeNodeOf(type: TypeModel): TypeNode {
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
      return type.name;
    case "runtime":
      return type.isPartial === true ? reference("Partial", type.name) : type.name;
    case "any":
      return "unknown";
    case "never":
      return "never";
  }
}

function literalOf(value: string | number | boolean): string {
  return typeof value === "string" ? printText(value) : JSON.stringify(value).replace("e+", "e");
}

/** Returns a field as a readonly member of an interface; an optional one accepts undefined. */
export function memberOf({ name, type, isRequired }: FieldModel): MemberNode {
  const node = typeNodeOf(type);
  const head = `readonly ${propertyNameOf(name)}`;
  if (isRequired) return { head, type: node };
  return { head: `${head}?`, type: node === "unknown" ? node : union(node, "undefined") };
}

/** Prints an exported interface; one for writers extends that for readers. */
export function printShape({ name, base, doc, fields, isOpen }: ShapeModel): string {
  const own = base === undefined ? fields : fields.filter((field) => base.redeclared.includes(field.name));
  const members = own.map((field) => printField(field));
  if (isOpen && base === undefined) members.push(OPEN_MEMBER);
  const comment = doc.length === 0 ? "" : `${renderDoc(doc)}\n`;
  const body = members.length === 0 ? "{}" : `{\n${members.join("")}}`;
  return `${comment}${layOut(["export interface ", name, base === undefined ? "" : [" extends ", typeDoc(parentOf(base))]])} ${body}`;
}

function parentOf({ name, redeclared }: BaseModel): TypeNode {
  return reference("Omit", name, union(...redeclared.map((field) => printText(field))));
}

// An object that may have other fields than its schema names.
const OPEN_MEMBER = "  /** Fields that the schema does not name. */\n  readonly [key: string]: unknown;\n";

/** Prints a field with its documentation, on lines of its own at the depth of a member; `modifiers` stand in front of its name. */
export function printField(field: FieldModel, modifiers = ""): string {
  const doc = field.doc.length === 0 ? "" : `  ${renderDoc(field.doc).replaceAll("\n", "\n  ")}\n`;
  return `${doc}${printMember(memberOf(field), modifiers)}`;
}

// Most fit; the others need an algorithm that costs more.
function printMember({ head, type }: MemberNode, modifiers: string): string {
  const text = `${modifiers}${head}: ${typeText(type)};`;
  const laidOut = text.length <= WIDTH - 2 ? text : layOut([memberDoc({ head: `${modifiers}${head}`, type }), ";"], 2);
  return `  ${laidOut}\n`;
}
