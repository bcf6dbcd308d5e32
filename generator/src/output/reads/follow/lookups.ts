import type ts from "typescript";
import { loadLibrary } from "../../../model/expression/library.js";
import type { SourceProgram } from "../code/source-program.js";
import { rootOf, type TrackedSource, type Value } from "./values.js";

const compiler = loadLibrary("typescript");

/** What a call leads to; `isWhole`: to something that may use all of it. */
export interface Lookup {
  readonly values: readonly Value[];
  readonly isWhole: boolean;
}

interface Facts {
  readonly program: SourceProgram;
  readonly sources: readonly TrackedSource[];
}

const NOTHING: Lookup = { values: [], isWhole: false };

/**
 * Returns what is looked up by a call of `context.secondary`, `context.secondaries`, or of a method of `context.eventSources` or
 * `context.resources`; undefined if that cannot be told.
 */
export function lookupOf(
  call: ts.CallExpression | undefined,
  { value, name }: { readonly value: Value; readonly name: string },
  { program, sources }: Facts,
): Lookup | undefined {
  const [first, second] = call?.arguments ?? [];
  if (value.kind === "eventSources") {
    if (name === "register" || name === "deregister") return NOTHING;
    if (name !== "get" || first === undefined || !compiler.isStringLiteralLike(first)) return undefined;
    return { values: sources.filter(({ model }) => model.name === first.text).map(rootOf), isWhole: true };
  }
  // All else of the operations is about the primary.
  if (value.kind === "resources" && name !== "of") return NOTHING;
  if (first !== undefined && compiler.isStringLiteralLike(first)) return NOTHING;
  const className = first === undefined ? undefined : classNameOf(first, program);
  if (className === undefined) return undefined;
  const wanted = sourceNameIn(second);
  if (wanted === undefined) return undefined;
  const found = sources
    .filter(({ classNames, model }) => classNames.has(className) && (wanted === "" || wanted === model.name))
    .map(rootOf);
  if (value.kind !== "lookup") return { values: found, isWhole: true };
  return { values: value.isList ? found.map((of) => ({ kind: "list", of })) : found, isWhole: false };
}

/** Returns the class that a call of `context.secondary` or `context.secondaries` asks for; undefined if it asks for a source or a name besides. */
export function askedClassOf(call: ts.CallExpression, program: SourceProgram): string | undefined {
  const [first, second] = call.arguments;
  return first === undefined || second !== undefined ? undefined : classNameOf(first, program);
}

/** Returns the name under which a class was imported from generated code; another file may give it another name. */
function classNameOf(expression: ts.Expression, program: SourceProgram): string | undefined {
  if (!compiler.isIdentifier(expression)) return undefined;
  const declaration = program.importOf(expression);
  if (declaration === undefined || !isFromGeneratedCode(declaration)) return undefined;
  return (declaration.propertyName ?? declaration.name).text;
}

function isFromGeneratedCode({ parent: { parent: clause } }: ts.ImportSpecifier): boolean {
  const { moduleSpecifier } = clause.parent;
  return (
    compiler.isStringLiteral(moduleSpecifier) &&
    /(?:^|\/)generated\/|^@gen-operator\/kinds\//.test(moduleSpecifier.text)
  );
}

/** Returns the event source that options name; empty if they name none, undefined if that cannot be told. */
function sourceNameIn(options: ts.Expression | undefined): string | undefined {
  if (options === undefined) return "";
  if (!compiler.isObjectLiteralExpression(options)) return undefined;
  let name = "";
  for (const property of options.properties) {
    if (compiler.isSpreadAssignment(property) || property.name === undefined) return undefined;
    if (compiler.isComputedPropertyName(property.name)) return undefined;
    if (property.name.getText() !== "source") continue;
    if (!compiler.isPropertyAssignment(property) || !compiler.isStringLiteralLike(property.initializer))
      return undefined;
    name = property.initializer.text;
  }
  return name;
}
