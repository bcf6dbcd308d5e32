// Names of a dependent as a member: a name is the dependent's where the type around it has the present name, and not the former one.
import { Node, type SourceFile, type Type } from "ts-morph";
import { replace } from "./import-edits.js";
import type { PendingMove } from "./pending-moves.js";
import type { TextEdit } from "./rename-in-code.js";

type Names = Pick<PendingMove, "from" | "to">;

/** Returns the members and texts of a file that have the former name of a dependent. */
export function memberEdits(file: SourceFile, names: Names): TextEdit[] {
  if (!file.getFullText().includes(names.from)) return [];
  const edits: TextEdit[] = [];
  file.forEachDescendant((node) => {
    const edit = editOf(node, names);
    if (edit !== undefined) edits.push(edit);
  });
  return edits;
}

function editOf(node: Node, names: Names): TextEdit | undefined {
  const { from, to } = names;
  if (Node.isIdentifier(node) && node.getText() === from) return nameEdit(node, names);
  const isText = Node.isStringLiteral(node) || Node.isNoSubstitutionTemplateLiteral(node);
  if (!isText || node.getLiteralText() !== from || !isName(node, names)) return undefined;
  return { start: node.getStart() + 1, end: node.getEnd() - 1, text: to };
}

function nameEdit(node: Node, names: Names): TextEdit | undefined {
  const { from, to } = names;
  const parent = node.getParentOrThrow();
  if (Node.isPropertyAccessExpression(parent))
    return parent.getNameNode() === node && isMoved(parent.getExpression().getType(), names)
      ? replace(node, to)
      : undefined;
  if (Node.isBindingElement(parent)) {
    const pattern = parent.getParent();
    const property = parent.getPropertyNameNode();
    const isProperty = property === node || (property === undefined && parent.getNameNode() === node);
    if (!isProperty || !Node.isObjectBindingPattern(pattern) || parent.getDotDotDotToken() !== undefined)
      return undefined;
    if (!isMoved(pattern.getType(), names)) return undefined;
    // The variable keeps its name.
    return replace(node, property === node ? to : `${to}: ${from}`);
  }
  if (Node.isShorthandPropertyAssignment(parent))
    return parent.getNameNode() === node && isMovedIn(parent.getParent(), names)
      ? replace(node, `${to}: ${from}`)
      : undefined;
  const isMember =
    Node.isPropertyAssignment(parent) || Node.isMethodDeclaration(parent) || Node.isGetAccessorDeclaration(parent);
  return isMember && parent.getNameNode() === node && isMovedIn(parent.getParent(), names)
    ? replace(node, to)
    : undefined;
}

/** Tells whether a text names the dependent. */
function isName(node: Node, names: Names): boolean {
  const parent = node.getParentOrThrow();
  if (Node.isElementAccessExpression(parent) && parent.getArgumentExpression() === node)
    return isMoved(parent.getExpression().getType(), names);
  if (Node.isPropertyAssignment(parent) && parent.getNameNode() === node) return isMovedIn(parent.getParent(), names);
  if (Node.isBindingElement(parent) && parent.getPropertyNameNode() === node)
    return isMoved(parent.getParent().getType(), names);
  if (Node.isBinaryExpression(parent)) {
    const other = parent.getLeft() === node ? parent.getRight() : parent.getLeft();
    const operator = parent.getOperatorToken().getText();
    if (operator === "in") return parent.getLeft() === node && isMoved(other.getType(), names);
    if (/^[!=]==?$/.test(operator)) return namesMoved(other.getType(), names);
  }
  if (Node.isCaseClause(parent))
    return namesMoved(parent.getParentOrThrow().getParentOrThrow().getChildAtIndex(2).getType(), names);
  if (Node.isLiteralTypeNode(parent)) return isNameInType(parent, names);
  const expected = Node.isExpression(node) ? node.getContextualType() : undefined;
  return expected !== undefined && namesMoved(expected, names);
}

// WebPageDependents["web"], Pick<WebPageDependents, "web" | "service">
function isNameInType(node: Node, names: Names): boolean {
  const parent = node.getParent();
  if (Node.isUnionTypeNode(parent)) return isNameInType(parent, names);
  if (Node.isIndexedAccessTypeNode(parent)) return isMoved(parent.getObjectTypeNode().getType(), names);
  if (!Node.isTypeReference(parent)) return false;
  const others = parent.getTypeArguments().filter((each) => each !== node);
  return others.some((each) => isMoved(each.getType(), names) || namesMoved(each.getType(), names));
}

function isMovedIn(literal: Node | undefined, names: Names): boolean {
  const expected = Node.isObjectLiteralExpression(literal) ? literal.getContextualType() : undefined;
  return expected !== undefined && isMoved(expected, names);
}

/** Tells whether objects of a type have a member of the present name and none of the former one. */
function isMoved(type: Type, { from, to }: Names): boolean {
  const alternatives = type.getNonNullableType().isUnion()
    ? type.getNonNullableType().getUnionTypes()
    : [type.getNonNullableType()];
  const has = (name: string) => alternatives.some((each) => each.getApparentType().getProperty(name) !== undefined);
  return has(to) && !has(from);
}

/** Tells whether a type has the present name among its texts, and not the former one. */
function namesMoved(type: Type, { from, to }: Names): boolean {
  const alternatives = type.isUnion() ? type.getUnionTypes() : [type];
  const has = (name: string) => alternatives.some((each) => each.isStringLiteral() && each.getLiteralValue() === name);
  return has(to) && !has(from);
}
