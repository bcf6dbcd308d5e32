import { StatusError, failureOn } from "../../errors/status-error.js";
import type { Authorizer } from "../../identity/authorizer.js";
import { type JsonObject, deepEqual } from "../../json.js";
import { PendingConversion } from "../../pending-conversion.js";
import type { Registry, ServedResource } from "../../registry/registry.js";
import type { AdmittedWrite } from "../admission.js";
import { matchWrite } from "../match-write.js";
import { type Seen, conditionExpressionsOf, expressionsOf } from "./expressions.js";
import { evaluateConditions } from "./match-conditions.js";
import { paramKindProblem, paramsOf } from "./params.js";
import { patchObject } from "./patch-object.js";
import { type MutatingPolicy, type PolicyBinding, bindingOf, mutatingPolicyOf } from "./policy.js";
import { refName } from "./ref-name.js";
import { StoredPolicies } from "./stored-policies.js";

/** A policy that matches a write, with one binding and one parameter object. */
interface Invocation {
  readonly policy: MutatingPolicy;
  readonly binding: PolicyBinding;
  readonly params: JsonObject | undefined;
  readonly seen: ServedResource;
}

/** The reason to deny a write. */
interface Problem {
  readonly reason: string;
  readonly message: string;
}

/** Evaluates MutatingAdmissionPolicies and their bindings. */
export class MutatingPolicies {
  readonly #authorizer: Authorizer;
  readonly #policies: StoredPolicies<MutatingPolicy>;
  readonly #bindings: StoredPolicies<PolicyBinding>;

  constructor(registry: Registry, authorizer: Authorizer) {
    this.#authorizer = authorizer;
    this.#policies = new StoredPolicies(registry, "mutatingadmissionpolicies", mutatingPolicyOf);
    this.#bindings = new StoredPolicies(registry, "mutatingadmissionpolicybindings", bindingOf);
  }

  /** Returns the policy evaluation of one write; undefined for a delete, which policies cannot mutate. */
  changesOf(write: AdmittedWrite): PolicyChanges | undefined {
    if (write.operation === "DELETE") return undefined;
    return new PolicyChanges(this.#authorizer, this.#policies.all(), this.#bindings.all());
  }
}

/** The mutations of one write: a first pass by all policies, and a reinvocation after the webhooks. */
export class PolicyChanges {
  readonly #authorizer: Authorizer;
  readonly #policies: readonly MutatingPolicy[];
  readonly #bindings: readonly PolicyBinding[];
  readonly #invoked = new Set<string>();
  #hasPatched = false;
  #last: JsonObject | undefined;

  constructor(authorizer: Authorizer, policies: readonly MutatingPolicy[], bindings: readonly PolicyBinding[]) {
    this.#authorizer = authorizer;
    this.#policies = policies;
    this.#bindings = bindings;
  }

  /** Returns the object after the first pass. Throws a StatusError if a policy with failurePolicy Fail fails. */
  first(write: AdmittedWrite, object: JsonObject): JsonObject {
    this.#last = this.#apply(write, object, () => true);
    return this.#last;
  }

  /**
   * Returns the object after reinvoking policies with reinvocationPolicy IfNeeded. Call it after `first`, with the object that the webhooks returned.
   */
  again(write: AdmittedWrite, object: JsonObject): JsonObject {
    if (this.#invoked.size === 0 || (!this.#hasPatched && deepEqual(object, this.#last))) return object;
    const invoked = new Set(this.#invoked);
    return this.#apply(write, object, (invocation) => invoked.has(keyOf(invocation)));
  }

  #apply(write: AdmittedWrite, object: JsonObject, isWanted: (invocation: Invocation) => boolean): JsonObject {
    const problems: Problem[] = [];
    const invocations = this.#invocationsOf({ ...write, object }, problems);
    let current = object;
    for (const invocation of invocations) {
      const { policy, binding } = invocation;
      const problem = (error: unknown): void => {
        if (error instanceof StatusError || error instanceof PendingConversion) throw error;
        if (policy.failurePolicy === "Fail")
          problems.push({ reason: "Invalid", message: denialBy(policy, binding, (error as Error).message) });
      };
      try {
        // Conditions and expressions see the mutations of earlier policies.
        if (!this.#meetsConditions(invocation, { ...write, object: current }) || !isWanted(invocation)) continue;
      } catch (error) {
        problem(error);
        continue;
      }
      for (const mutation of policy.mutations) {
        try {
          const expressions = expressionsOf(this.#seenBy(invocation, { ...write, object: current }));
          const result = expressions.evaluate(mutation.expression);
          current = patchObject(mutation, result, { write, seen: invocation.seen, object: current });
          this.#hasPatched = true;
        } catch (error) {
          problem(error);
        }
      }
      if (policy.isReinvoked) this.#invoked.add(keyOf(invocation));
    }
    if (problems[0] !== undefined) throw refusal(problems[0], problems, { ...write, object: current });
    return current;
  }

  #invocationsOf(write: AdmittedWrite, problems: Problem[]): Invocation[] {
    return this.#policies.flatMap((policy) => {
      const bindings = this.#bindings.filter(({ policyName }) => policyName === policy.name);
      const seen = bindings.length === 0 ? undefined : matchWrite(policy.selector, write);
      if (seen === undefined) return [];
      const wrong = paramKindProblem(policy, write.context.registry);
      if (wrong !== undefined) {
        const message = `policy ${JSON.stringify(policy.name)} denied request: ${wrong}`;
        if (policy.failurePolicy === "Fail") problems.push({ reason: "Forbidden", message });
        return [];
      }
      const matching = bindings.filter(({ selector }) => matchWrite(selector, write) !== undefined);
      return matching.flatMap((binding) => {
        try {
          return paramsOf(policy, binding, write).map((params) => ({ policy, binding, params, seen }));
        } catch (error) {
          if (error instanceof PendingConversion) throw error;
          const message = `failed to configure binding: ${(error as Error).message}`;
          if (policy.failurePolicy === "Fail")
            problems.push({ reason: "Forbidden", message: denialBy(policy, binding, message) });
          return [];
        }
      });
    });
  }

  #meetsConditions(invocation: Invocation, write: AdmittedWrite): boolean {
    const { conditions, failurePolicy } = invocation.policy;
    if (conditions.length === 0) return true;
    const expressions = conditionExpressionsOf(this.#seenBy(invocation, write));
    const match = evaluateConditions(conditions, expressions, failurePolicy);
    if ("error" in match) throw new Error(match.error);
    return match.matches;
  }

  #seenBy({ policy, params, seen }: Invocation, write: AdmittedWrite): Seen {
    return { write, seen, authorizer: this.#authorizer, params, variables: policy.variables };
  }
}

function keyOf({ policy, binding, params }: Invocation): string {
  return JSON.stringify([policy.name, binding.name, params?.["metadata"] ?? null]);
}

function denialBy(policy: MutatingPolicy, binding: PolicyBinding, message: string): string {
  return `policy '${policy.name}' with binding '${binding.name}' denied request: ${message}`;
}

// As in kube-apiserver, the code is 403 whatever the reason.
function refusal({ reason, message }: Problem, problems: readonly Problem[], write: AdmittedWrite): StatusError {
  const causes = problems.map((each) => ({ message: each.message }));
  return failureOn(refName(write), { code: 403, reason, message }, { causes });
}
