import type { MemberNode, TypeNode } from "./type-node.js";

/** Prints a type on one line. */
export function typeText(type: TypeNode): string {
  if (typeof type === "string") return type;
  switch (type.kind) {
    case "reference":
      return `${type.name}<${type.arguments.map(typeText).join(", ")}>`;
    case "union":
      return type.members.map(typeText).join(" | ");
    case "intersection":
      return type.members.map(typeText).join(" & ");
    case "array":
      return `readonly ${itemsText(type.items)}[]`;
    case "object":
      return type.members.length === 0 ? "{}" : `{ ${membersText(type.members, "; ")} }`;
    case "function":
      return `(${membersText(type.parameters, ", ")}) => ${typeText(type.returns)}`;
  }
}

function membersText(members: readonly MemberNode[], separator: string): string {
  return members.map(({ head, type }) => `${head}: ${typeText(type)}`).join(separator);
}

function itemsText(items: TypeNode): string {
  return needsBrackets(items) ? `(${typeText(items)})` : typeText(items);
}

/** Tells whether the type of the items of a list stands in brackets. */
export function needsBrackets(items: TypeNode): boolean {
  return typeof items !== "string" && ["array", "union", "intersection", "function"].includes(items.kind);
}
