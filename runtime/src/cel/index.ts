// The door of generated code whose schema has rules in CEL. It stands apart, so that an operator without rules bundles no evaluator.
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { parseChecked, type ParseOptions } from "../codegen/parse/parse-resource.js";
import { findPatternProblem } from "../codegen/parse/pattern.js";
import { checkRules } from "./check-rules.js";
import { compileExpression } from "./compile-rule.js";

export { findPatternProblem };

/** Does what `parseResource` of the other door does, and checks the rules of the schema, too. */
export function parseResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
  options: ParseOptions = {},
): Resource {
  return parseChecked(definition, value, { ...options, checkRules });
}

/** Returns why `parseResource` cannot evaluate an expression, such as "the function sortBy is not supported"; undefined if it can. */
export function findExpressionProblem(expression: string): string | undefined {
  const compilation = compileExpression(expression);
  return "problem" in compilation ? compilation.problem : undefined;
}
