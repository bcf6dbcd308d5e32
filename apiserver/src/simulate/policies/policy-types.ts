import type { CheckedType } from "@gen-operator/schema/cel";
import { AUTHORIZER, REQUEST } from "../../builtin/rules/admission/condition-types.js";
import { checkVariables } from "../../builtin/rules/admission/variable-rules.js";
import { problemLinesOf, type Variables } from "../../errors/expression-problem.js";
import type { JsonObject } from "../../json.js";
import type { Requests } from "../feed/api-client.js";
import type { Controller } from "../feed/controller.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { readServedKinds } from "../feed/resource-kinds.js";
import { checkedKinds, namesKinds, type ResourceRule } from "./checked-kinds.js";
import { KindTypes, type KindName } from "./kind-types.js";

interface Policy extends KubernetesObject {
  spec: {
    paramKind?: { apiVersion: string; kind: string };
    matchConstraints?: { resourceRules?: ResourceRule[] };
    validations?: { expression: string; messageExpression?: string }[];
  };
  status?: { observedGeneration?: number };
}

/** A kind, and the types of what expressions see where objects of it are written. */
interface CheckedKind {
  readonly name: KindName;
  readonly variables: Variables;
}

interface ExpressionWarning {
  readonly fieldRef: string;
  readonly warning: string;
}

const KIND = "validatingadmissionpolicies.admissionregistration.k8s.io";

/** Checks the types of what ValidatingAdmissionPolicies validate with, for each kind that they name, and warns in their status. */
export function createPolicyTypes(): Controller<Policy> {
  const types = new KindTypes();
  return {
    kind: KIND,
    async reconcile(policy, { cluster, client }) {
      const { name, generation = 0 } = policy.metadata;
      if (generation <= (policy.status?.observedGeneration ?? 0)) return;
      const expressionWarnings = warningsOf(policy, await checkedKindsOf(policy, types, client));
      const typeChecking = expressionWarnings.length === 0 ? {} : { expressionWarnings };
      await cluster.apply(
        KIND,
        { metadata: { name }, status: { observedGeneration: generation, typeChecking } },
        { manager: "validatingadmissionpolicy-status", subresource: "status" },
      );
    },
  };
}

async function checkedKindsOf({ spec }: Policy, types: KindTypes, client: Requests): Promise<CheckedKind[]> {
  const rules = spec.matchConstraints?.resourceRules ?? [];
  if (!namesKinds(rules)) return [];
  const named = checkedKinds(rules, await readServedKinds(client));
  const params = await paramsOf(spec, types, client);
  const checked: CheckedKind[] = [];
  for (const name of named) {
    const object = await types.typeOf(client, name, `${name.kind}1`);
    if (object !== undefined) checked.push({ name, variables: variablesOf(spec, { object, ...params }) });
  }
  return checked;
}

// Nothing is said of parameters whose kind is not known.
async function paramsOf({ paramKind }: Policy["spec"], types: KindTypes, client: Requests): Promise<Variables> {
  if (paramKind === undefined) return {};
  const { apiVersion, kind } = paramKind;
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { params: (await types.typeOf(client, { group, version, kind }, `${kind}2`)) ?? { kind: "dyn" } };
}

function variablesOf(spec: Policy["spec"], types: { object: CheckedType; params?: CheckedType }): Variables {
  const { authorizer } = AUTHORIZER;
  const seen = { ...REQUEST, ...types, oldObject: types.object, ...(authorizer === undefined ? {} : { authorizer }) };
  return { ...seen, variables: checkVariables(spec as unknown as JsonObject, seen).type };
}

function warningsOf({ spec }: Policy, kinds: readonly CheckedKind[]): ExpressionWarning[] {
  return (spec.validations ?? []).flatMap((validation, index) =>
    (["expression", "messageExpression"] as const).flatMap((member) => {
      const text = validation[member] ?? "";
      const warnings = text === "" ? [] : kinds.flatMap((kind) => warningAbout(text, kind) ?? []);
      if (warnings.length === 0) return [];
      return [{ fieldRef: `spec.validations[${index}].${member}`, warning: warnings.join("\n") }];
    }),
  );
}

function warningAbout(text: string, { name, variables }: CheckedKind): string | undefined {
  const problem = problemLinesOf(text, variables);
  return problem === undefined ? undefined : `${name.group}/${name.version}, Kind=${name.kind}: ${problem}\n`;
}
