// Entry point of generated code whose schemas have validation rules in CEL. Separate from codegen.ts, so that operators without such rules do not
// bundle the CEL evaluator.
import { checkRules } from "@gen-operator/schema/cel";
import type { KubernetesObject, ResourceDefinition, Unstored } from "../base/kubernetes-object.js";
import { type ParseOptions, parseResource as parseUnruled } from "./define-resource.js";

/**
 * Validates like `parseResource` of `@gen-operator/runtime/codegen`, and also evaluates the validation rules of the schema
 * (`x-kubernetes-validations`).
 */
export function parseResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
  options: ParseOptions = {},
): Unstored<Resource> {
  return parseUnruled(definition, value, { ...options, checkRules });
}
