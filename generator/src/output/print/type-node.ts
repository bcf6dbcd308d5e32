/** A type as it stands in generated code. A text is a name or a literal: it stays on one line. */
export type TypeNode =
  | string
  | { readonly kind: "reference"; readonly name: string; readonly arguments: readonly TypeNode[] }
  | { readonly kind: "union"; readonly members: readonly TypeNode[] }
  | { readonly kind: "intersection"; readonly members: readonly TypeNode[] }
  /** A list that cannot be changed. */
  | { readonly kind: "array"; readonly items: TypeNode }
  | { readonly kind: "object"; readonly members: readonly MemberNode[] }
  | FunctionNode;

/** The type of a function. */
export interface FunctionNode {
  readonly kind: "function";
  readonly parameters: readonly MemberNode[];
  readonly returns: TypeNode;
}

/** A member of a type: a property, an index signature, or a parameter of a function. */
export interface MemberNode {
  /** Ready to print: quoted where it has to be; `readonly` and a question mark belong to it. */
  readonly head: string;
  readonly type: TypeNode;
}

/** Names a type with its arguments; without arguments it is the name alone. */
export function reference(name: string, ...args: readonly TypeNode[]): TypeNode {
  return args.length === 0 ? name : { kind: "reference", name, arguments: args };
}

/** Returns a union; that of one member is the member. */
export function union(...members: readonly TypeNode[]): TypeNode {
  const flat = members.flatMap((each) => (typeof each !== "string" && each.kind === "union" ? each.members : [each]));
  const [only] = flat;
  return flat.length === 1 && only !== undefined ? only : { kind: "union", members: flat };
}

/** Returns an intersection; that of one member is the member. */
export function intersection(...members: readonly TypeNode[]): TypeNode {
  const [only] = members;
  return members.length === 1 && only !== undefined ? only : { kind: "intersection", members };
}

/** Returns a list that cannot be changed. */
export function readonlyArrayOf(items: TypeNode): TypeNode {
  return { kind: "array", items };
}

/** Returns the type of an object, by the heads of its members. */
export function objectOf(members: { readonly [head: string]: TypeNode }): TypeNode {
  return { kind: "object", members: Object.entries(members).map(([head, type]) => ({ head, type })) };
}

/** Returns the type of a function, by the heads of its parameters. */
export function functionOf(parameters: { readonly [head: string]: TypeNode }, returns: TypeNode): FunctionNode {
  return { kind: "function", parameters: Object.entries(parameters).map(([head, type]) => ({ head, type })), returns };
}

/** Returns a type or a promise of it. */
export function maybePromise(type: TypeNode): TypeNode {
  return union(type, reference("Promise", type));
}
