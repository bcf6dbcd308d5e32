import type { RequestExpressions } from "@gen-operator/schema/cel";
import type { PolicyBinding, ValidatingPolicy } from "./policy.js";

const FAILURE = "validation.policy.admission.k8s.io/validation_failure";
const LONGEST = 10 * 1024;

/** The audit annotations that a policy computes for a write, over all of its bindings and parameters. */
export class Annotations {
  readonly #values = new Map<string, Set<string>>();

  /** Evaluates the audit annotations of a policy and returns the errors. Evaluation errors are ignored if the failurePolicy is Ignore. */
  add({ annotations, failurePolicy }: ValidatingPolicy, expressions: RequestExpressions): string[] {
    return annotations.flatMap(({ key, expression }) => {
      const result = expressions.evaluate(expression);
      if ("error" in result) return failurePolicy === "Fail" ? [result.error] : [];
      const { value } = result;
      if (value !== null && typeof value !== "string")
        return [
          `valueExpression '${expression}' resulted in unsupported return type. Return type must be either string or null.`,
        ];
      const text = (value ?? "").trim();
      if (text !== "") this.#values.set(key, (this.#values.get(key) ?? new Set()).add(text.slice(0, LONGEST)));
      return [];
    });
  }

  /** Adds the annotations to those of the audit event. */
  publish(policy: string, annotations: Map<string, string>): void {
    for (const [key, values] of this.#values) annotate(annotations, `${policy}/${key}`, [...values].join(", "));
  }
}

/** Adds a failed validation to the audit event, for bindings with the action Audit. */
export function auditFailure(
  { index, message }: { readonly index: number; readonly message: string },
  { name, policyName, actions }: PolicyBinding,
  annotations: Map<string, string>,
): void {
  const failure = { message, policy: policyName, binding: name, expressionIndex: index, validationActions: actions };
  // Go's encoding/json escapes these characters.
  const text = JSON.stringify([failure]).replace(
    /[<>&]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
  annotate(annotations, FAILURE, text);
}

function annotate(annotations: Map<string, string>, key: string, value: string): void {
  if (!annotations.has(key)) annotations.set(key, value);
}
