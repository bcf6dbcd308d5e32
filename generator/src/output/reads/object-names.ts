import type ts from "typescript";
import { formatPosition, quote, type Diagnostic } from "../../diagnostic.js";
import { loadLibrary } from "../../model/library.js";
import { isKubernetes, type ControllerModel, type KubernetesDependentModel } from "../../model/project-model.js";
import { dependentNamesOf } from "../controller-names.js";
import { constantOf, functionOf, type FunctionNode } from "./functions.js";
import { fieldOf, objectsReturnedBy } from "./returned-objects.js";
import type { SourceProgram } from "./source-program.js";

const compiler = loadLibrary("typescript");

interface Code {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
}

/**
 * Finds dependents of one kind whose functions name the same object, where that is plain to see: the name is made of texts and fields of the
 * primary alone. Dependents with conditions may take turns. All else is left to the operator, which refuses to write it.
 */
export function objectsOfOneName({ controller, folder, program }: Code): Diagnostic[] {
  const first = new Map<string, { dependent: KubernetesDependentModel; name: ts.Node }>();
  return controller.dependents.filter(isKubernetes).flatMap((dependent): Diagnostic[] => {
    const { resource, cluster = "", namespace = "", conditions, bulk, mode } = dependent;
    const isConditional =
      conditions.activationCondition !== undefined || conditions.reconcilePrecondition !== undefined;
    if (isConditional || bulk !== undefined || mode === "readOnly") return [];
    const file = program.fileAt(`src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`);
    const desired = file === undefined ? undefined : functionOf(program.exportOf(file, "desired"), program);
    const identity = desired === undefined ? undefined : identityIn(desired, program);
    if (identity === undefined) return [];
    const kind = [resource.group, resource.kind, cluster, namespace];
    const key = JSON.stringify([...kind, identity.name.getText(), identity.namespace]);
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, { dependent, name: identity.name });
      return [];
    }
    const place = formatPosition(program.positionOf(other.name));
    return [
      {
        severity: "error",
        rule: "same-object",
        message: `${quote(dependent.name)} and ${quote(other.dependent.name)} would write one object: the ${resource.kind} ${identity.name.getText()}, first at ${place}`,
        position: program.positionOf(identity.name),
        hint: "give it another name, or make one dependent of the two",
      },
    ];
  });
}

/** Returns what a function names its object by; undefined unless it returns one, and says so in plain words. */
function identityIn(
  desired: FunctionNode,
  program: SourceProgram,
): { readonly name: ts.Expression; readonly namespace: string } | undefined {
  const [object, second] = objectsReturnedBy(desired);
  if (object === undefined || second !== undefined || !takesPrimary(desired)) return undefined;
  const metadata = fieldOf(object, "metadata");
  if (metadata === undefined || !compiler.isPropertyAssignment(metadata)) return undefined;
  const { initializer } = metadata;
  if (!compiler.isObjectLiteralExpression(initializer)) return undefined;
  if (initializer.properties.some((property) => compiler.isSpreadAssignment(property))) return undefined;
  const name = valueOf(fieldOf(initializer, "name"), program);
  const namespace = fieldOf(initializer, "namespace");
  if (name === undefined || !isPlain(name)) return undefined;
  return { name, namespace: namespace?.getText() ?? "" };
}

// `{ name }` stands for the constant of this name.
function valueOf(field: ts.ObjectLiteralElementLike | undefined, program: SourceProgram): ts.Expression | undefined {
  if (field === undefined) return undefined;
  const value = compiler.isPropertyAssignment(field) ? field.initializer : field.name;
  if (value === undefined || !compiler.isIdentifier(value)) return value as ts.Expression | undefined;
  const declaration = program.declarationOf(value);
  return declaration === undefined ? undefined : constantOf(declaration);
}

// So that `primary` is what the runtime hands over, and not something else of that name.
function takesPrimary({ parameters }: FunctionNode): boolean {
  const [first] = parameters;
  if (first === undefined) return true;
  if (!compiler.isObjectBindingPattern(first.name)) return false;
  return first.name.elements.every(
    ({ name, propertyName }) => name.getText() !== "primary" || propertyName === undefined,
  );
}

function isPlain(expression: ts.Expression): boolean {
  if (compiler.isStringLiteralLike(expression)) return true;
  if (compiler.isTemplateExpression(expression))
    return expression.templateSpans.every((span) => isPlain(span.expression));
  if (compiler.isPropertyAccessExpression(expression)) return isPlain(expression.expression);
  return compiler.isIdentifier(expression) && expression.text === "primary";
}
