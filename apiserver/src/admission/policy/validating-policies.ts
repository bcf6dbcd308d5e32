import type { RequestExpressions } from "@gen-operator/schema/cel";
import { type StatusError, denied } from "../../errors/status-error.js";
import type { Authorizer } from "../../identity/authorizer.js";
import type { JsonObject } from "../../json.js";
import { PendingConversion } from "../../pending-conversion.js";
import type { Registry, ServedResource } from "../../registry/registry.js";
import type { AdmittedWrite } from "../admission.js";
import { matchWrite } from "../match-write.js";
import { Annotations, auditFailure } from "./audit-annotations.js";
import { conditionExpressionsOf, expressionsOf } from "./expressions.js";
import { evaluateConditions } from "./match-conditions.js";
import { paramKindProblem, paramsOf } from "./params.js";
import {
  type PolicyBinding,
  type PolicyValidation,
  type ValidatingPolicy,
  bindingOf,
  validatingPolicyOf,
} from "./policy.js";
import { refName } from "./ref-name.js";
import { StoredPolicies } from "./stored-policies.js";

const LONGEST_MESSAGE = 5120;

/** The denial of a write by a policy. */
interface Denial {
  readonly policy: string;
  readonly binding?: string | undefined;
  readonly reason: string;
  readonly message: string;
}

/** Evaluates ValidatingAdmissionPolicies and their bindings. */
export class ValidatingPolicies {
  readonly #authorizer: Authorizer;
  readonly #policies: StoredPolicies<ValidatingPolicy>;
  readonly #bindings: StoredPolicies<PolicyBinding>;

  constructor(registry: Registry, authorizer: Authorizer) {
    this.#authorizer = authorizer;
    this.#policies = new StoredPolicies(registry, "validatingadmissionpolicies", validatingPolicyOf);
    this.#bindings = new StoredPolicies(registry, "validatingadmissionpolicybindings", bindingOf);
  }

  /** Validates the object to be stored. Throws a StatusError for the first denial. */
  validate(write: AdmittedWrite): void {
    const denials = this.#policies.all().flatMap((policy) => this.#denialsOf(policy, write));
    if (denials[0] !== undefined) throw refusal(denials[0], write);
  }

  #denialsOf(policy: ValidatingPolicy, write: AdmittedWrite): Denial[] {
    const bindings = this.#bindings.all().filter(({ policyName }) => policyName === policy.name);
    const seen = bindings.length === 0 ? undefined : matchWrite(policy.selector, write);
    if (seen === undefined) return [];
    const wrong = paramKindProblem(policy, write.context.registry);
    if (wrong !== undefined)
      return policy.failurePolicy === "Ignore" ? [] : [{ policy: policy.name, reason: "Invalid", message: wrong }];
    const annotations = new Annotations();
    const denials = bindings
      .filter(({ selector }) => matchWrite(selector, write) !== undefined)
      .flatMap((binding) => this.#denialsBy(binding, policy, { write, seen, annotations }));
    annotations.publish(policy.name, write.context.auditAnnotations);
    return denials;
  }

  #denialsBy(
    binding: PolicyBinding,
    policy: ValidatingPolicy,
    { write, seen, annotations }: { write: AdmittedWrite; seen: ServedResource; annotations: Annotations },
  ): Denial[] {
    const denial = ({ reason, message }: Omit<Failure, "index">): Denial => ({
      reason,
      message,
      policy: policy.name,
      binding: binding.name,
    });
    let params: readonly (JsonObject | undefined)[];
    try {
      params = paramsOf(policy, binding, write);
    } catch (error) {
      if (error instanceof PendingConversion) throw error;
      const message = `failed to configure binding: ${(error as Error).message}`;
      return policy.failurePolicy === "Ignore" ? [] : [denial({ reason: "Invalid", message })];
    }
    const unannotated: Denial[] = [];
    const failures = params.flatMap((each): Failure[] => {
      const input = { write, seen, authorizer: this.#authorizer, params: each, variables: policy.variables };
      const conditions = evaluateConditions(policy.conditions, conditionExpressionsOf(input), policy.failurePolicy);
      if ("error" in conditions) return [{ index: 0, reason: "Invalid", message: conditions.error }];
      if (!conditions.matches) return [];
      const found = failuresOf(policy, expressionsOf(input));
      const problems = annotations.add(policy, expressionsOf(input));
      // A failed audit annotation denies the write, whatever the validationActions of the binding.
      unannotated.push(...problems.map((message) => denial({ reason: "Invalid", message })));
      return found;
    });
    const { actions } = binding;
    if (actions.includes("Warn"))
      for (const { message } of failures)
        write.context.warnings.push(
          `Validation failed for ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}': ${message}`,
        );
    if (actions.includes("Audit"))
      for (const failure of failures) auditFailure(failure, binding, write.context.auditAnnotations);
    return [...(actions.includes("Deny") ? failures.map(denial) : []), ...unannotated];
  }
}

interface Failure {
  /** Index in the validations of the policy. */
  readonly index: number;
  readonly reason: string;
  readonly message: string;
}

function failuresOf({ validations, failurePolicy }: ValidatingPolicy, expressions: RequestExpressions): Failure[] {
  const failures: Failure[] = [];
  for (const [index, validation] of validations.entries()) {
    const result = expressions.evaluate(validation.expression);
    if ("error" in result) {
      if (failurePolicy === "Fail") failures.push({ index, reason: "Invalid", message: result.error });
      // Once the cost budget is exceeded, no further expression is evaluated.
      if (expressions.isSpent) break;
    } else if (result.value !== true)
      failures.push({ index, reason: validation.reason, message: messageOf(validation, expressions) });
  }
  return failures;
}

function messageOf(
  { expression, message, messageExpression }: PolicyValidation,
  expressions: RequestExpressions,
): string {
  const result = messageExpression === "" ? undefined : expressions.evaluate(messageExpression);
  const text = result !== undefined && "value" in result && typeof result.value === "string" ? result.value.trim() : "";
  if (text !== "" && !text.includes("\n") && Buffer.byteLength(text) <= LONGEST_MESSAGE) return text;
  return message.trim() || `failed expression: ${expression.trim()}`;
}

function refusal({ policy, binding, reason, message }: Denial, write: AdmittedWrite): StatusError {
  const by = binding === undefined ? "" : ` with binding '${binding}'`;
  const words = `ValidatingAdmissionPolicy '${policy}'${by} denied request: ${message}`;
  return denied(refName(write), { reason, message: words });
}
