// The door of generated code whose schema has rules in CEL. It stands apart, so that an operator without rules bundles no evaluator.
import { checkRules } from "@gen-operator/schema/cel";
import type { KubernetesObject, ResourceDefinition, Unstored } from "../base/kubernetes-object.js";
import { type ParseOptions, parseResource as parseUnruled } from "./define-resource.js";

/** Does what `parseResource` of the other door does, and checks the rules of the schema, too. */
export function parseResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
  options: ParseOptions = {},
): Unstored<Resource> {
  return parseUnruled(definition, value, { ...options, checkRules });
}
