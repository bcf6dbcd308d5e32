import { align, group, ifBreak, indent, join, line, listOf, softline, type Doc } from "./layout.js";
import { needsBrackets } from "./type-text.js";
import type { FunctionNode, MemberNode, TypeNode } from "./type-node.js";

/** Prints a type where a union may start on a line of its own: behind a colon, an arrow or an equals sign. */
export function typeDoc(type: TypeNode): Doc {
  if (typeof type === "string") return type;
  switch (type.kind) {
    case "reference":
      return [type.name, argumentsDoc(type.arguments)];
    case "union":
      // All of it on the next line, if that is enough.
      return group(indent([softline, group(unionDoc(type.members))]));
    case "intersection":
      return join(" & ", type.members.map(typeDoc));
    case "array":
      return ["readonly ", itemsDoc(type.items), "[]"];
    case "object":
      return listOf(["{", "}"], type.members.map(memberDoc), { space: line, end: ";" });
    case "function":
      return group([parametersDoc(type), " => ", typeDoc(type.returns)]);
  }
}

/** Prints a member of a type, without what ends it. */
export function memberDoc({ head, type }: MemberNode): Doc {
  return [head, ": ", typeDoc(type)];
}

function unionDoc(members: readonly TypeNode[]): Doc {
  return [
    ifBreak("| "),
    join(
      [line, "| "],
      members.map((member) => align(2, typeDoc(member))),
    ),
  ];
}

function argumentsDoc(types: readonly TypeNode[]): Doc {
  const [only] = types;
  // A single name gains nothing by a line of its own.
  if (types.length === 1 && only !== undefined && isName(only)) return ["<", typeDoc(only), ">"];
  const printed = types.map((type) =>
    typeof type !== "string" && type.kind === "union" ? group(unionDoc(type.members)) : typeDoc(type),
  );
  return group(["<", indent([softline, join([",", line], printed)]), softline, ">"]);
}

// What prettier takes for a simple type: `X` is one, `X["spec"]` and `typeof X` are not.
function isName(type: TypeNode): boolean {
  return typeof type === "string" ? /^[\w$.]+$/.test(type) : type.kind === "object";
}

function itemsDoc(items: TypeNode): Doc {
  if (typeof items !== "string" && items.kind === "union")
    return ["(", group([indent([softline, unionDoc(items.members)]), softline]), ")"];
  return needsBrackets(items) ? ["(", typeDoc(items), ")"] : typeDoc(items);
}

/** Prints the parameters of a function, in brackets. */
export function parametersDoc({ parameters }: Pick<FunctionNode, "parameters">): Doc {
  const [only] = parameters;
  if (only === undefined) return "()";
  // An object as the only parameter shares its lines with the brackets.
  if (parameters.length === 1 && typeof only.type !== "string" && only.type.kind === "object") {
    const members = only.type.members.map(memberDoc);
    return ["(", only.head, ": {", indent([line, join([";", line], members)]), ifBreak(";"), line, "})"];
  }
  return ["(", indent([softline, join([",", line], parameters.map(memberDoc))]), ifBreak(","), softline, ")"];
}
