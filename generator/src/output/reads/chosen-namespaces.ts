import type ts from "typescript";
import type { Diagnostic } from "../../diagnostic.js";
import { loadLibrary } from "../../model/expression/library.js";
import { unwrap } from "../../model/expression/unwrap.js";
import { isKubernetes, type ControllerModel, type KubernetesDependentModel } from "../../model/project-model.js";
import { foreignNamespace } from "../../model/rules/rights/foreign-namespace.js";
import { dependentNamesOf } from "../controller-names.js";
import { PrimaryChoices } from "./code/chosen-by-primary.js";
import { constantOf, functionOf, isFunctionNode, resolveFunction } from "./code/functions.js";
import { plainTextOf } from "./code/plain-text.js";
import { fieldOf, objectsReturnedBy } from "./code/returned-objects.js";
import type { SourceProgram } from "./code/source-program.js";

const compiler = loadLibrary("typescript");

/** How `plainTextOf` writes the namespace of the primary. */
export const OWN_NAMESPACE = "${primary.metadata.namespace}";

interface Code {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
}

/** Warns of objects, alone and in bulk, that a function puts into a namespace which the author of the primary chooses. */
export function checkChosenNamespaces(code: Code): Diagnostic[] {
  const { controller, program } = code;
  const { primary } = controller;
  if (primary.scope === "Cluster") return [];
  return controller.dependents.filter(isKubernetes).flatMap((dependent) =>
    chosenNamespacesOf(dependent, code).map((node) => ({
      ...foreignNamespace(dependent.name, primary.kind, "writes"),
      about: `${controller.name}/${dependent.name}`,
      position: program.positionOf(node),
    })),
  );
}

function chosenNamespacesOf(dependent: KubernetesDependentModel, { folder, program }: Code): ts.Expression[] {
  const { mode, resource, deletion } = dependent;
  // An object that the primary owns cannot be elsewhere.
  if (mode === "readOnly" || resource.scope === "Cluster" || deletion === "garbageCollected") return [];
  const file = program.fileAt(`src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`);
  const desired = file === undefined ? undefined : functionOf(program.exportOf(file, "desired"), program);
  if (desired === undefined) return [];
  const choices = new PrimaryChoices(desired, program);
  const stated = new StatedNamespaces(choices, program).in(desired);
  return stated.filter((namespace) => {
    const text = plainTextOf(namespace, { function: desired, program });
    return text === undefined ? choices.decide(namespace) : text.includes("${") && text !== OWN_NAMESPACE;
  });
}

/** Finds the namespaces of the objects that a function makes, wherever in it, or in functions that it calls, they are written. */
class StatedNamespaces {
  readonly #choices: PrimaryChoices;
  readonly #program: SourceProgram;
  readonly #seen = new Set<ts.Node>();

  constructor(choices: PrimaryChoices, program: SourceProgram) {
    this.#choices = choices;
    this.#program = program;
  }

  in(node: ts.Node): ts.Expression[] {
    if (isFunctionNode(node)) {
      if (this.#seen.has(node)) return [];
      this.#seen.add(node);
    }
    if (compiler.isObjectLiteralExpression(node)) {
      const metadata = fieldOf(node, "metadata");
      // Metadata inside of it, such as that of a pod template, belongs to no object of its own.
      if (metadata !== undefined) return this.#valueOf(metadata).flatMap((value) => this.#namespacesOf(value));
    }
    const called = compiler.isCallExpression(node) ? this.#choices.functionsOf(node) : [];
    const found = called.flatMap((each) => this.in(each));
    compiler.forEachChild(node, (child) => {
      found.push(...this.in(child));
    });
    return found;
  }

  #namespacesOf(metadata: ts.Expression): ts.Expression[] {
    return this.#objectsOf(metadata, new Set()).flatMap((object) => {
      const namespace = fieldOf(object, "namespace");
      if (namespace !== undefined) return this.#valueOf(namespace);
      return object.properties.flatMap((property) =>
        compiler.isSpreadAssignment(property) ? this.#namespacesOf(property.expression) : [],
      );
    });
  }

  #objectsOf(expression: ts.Expression, seen: Set<ts.Node>): ts.ObjectLiteralExpression[] {
    const plain = unwrap(expression, compiler);
    if (seen.has(plain)) return [];
    seen.add(plain);
    if (compiler.isObjectLiteralExpression(plain)) return [plain];
    if (compiler.isConditionalExpression(plain))
      return [plain.whenTrue, plain.whenFalse].flatMap((each) => this.#objectsOf(each, seen));
    if (compiler.isCallExpression(plain)) {
      this.#choices.functionsOf(plain);
      const called = resolveFunction(plain.expression, this.#program);
      return called === undefined ? [] : objectsReturnedBy(called);
    }
    const declaration = compiler.isIdentifier(plain) ? this.#program.declarationOf(plain) : undefined;
    const constant = declaration === undefined ? undefined : constantOf(declaration);
    return constant === undefined ? [] : this.#objectsOf(constant, seen);
  }

  // `{ namespace }` stands for the variable of this name.
  #valueOf(property: ts.ObjectLiteralElementLike): ts.Expression[] {
    if (compiler.isPropertyAssignment(property)) return [property.initializer];
    return compiler.isShorthandPropertyAssignment(property) ? [property.name] : [];
  }
}
