import type { ApiClient, KubernetesObject } from "@gen-operator/runtime";
import { clusterKind } from "../input/source/cluster.js";
import type { RequiredRight } from "../output/deploy/required-rights.js";

/** What a user may do in a namespace, as a SelfSubjectRulesReview tells it. */
export interface ReviewedRules {
  readonly resourceRules?: readonly {
    readonly verbs: readonly string[];
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
  }[];
  readonly nonResourceRules?: readonly {
    readonly verbs: readonly string[];
    readonly nonResourceURLs?: readonly string[];
  }[];
  /** Set if an authorizer of the cluster, such as a webhook, cannot list its rules. */
  readonly incomplete?: boolean;
}

/**
 * The review of rights in all namespaces is about a namespace that nobody has roles in: what is allowed there is allowed by bindings to the
 * whole cluster. A namespace need not exist for a review.
 */
const NO_NAMESPACE = "gen-operator-doctor-asks-for-all-namespaces";

/**
 * Returns the rights that the user of a client lacks. There is one request for each namespace; one for each right only where the rules
 * of the cluster are not all known, and those that are known do not give it.
 */
export async function missingRights(
  client: ApiClient,
  rights: readonly RequiredRight[],
  signal: AbortSignal,
): Promise<RequiredRight[]> {
  const placeOf = ({ namespace = NO_NAMESPACE }: RequiredRight) => namespace;
  const places = [...new Set(rights.map(placeOf))];
  const reviews = await Promise.all(places.map((namespace) => rulesIn(client, namespace, signal)));
  const rules = new Map(places.map((namespace, index) => [namespace, reviews[index] ?? {}]));
  const allowed = await Promise.all(
    rights.map((right) => {
      const known = rules.get(placeOf(right)) ?? {};
      return allows(known, right) || (known.incomplete === true && isAllowed(client, right, signal));
    }),
  );
  return rights.filter((_, index) => allowed[index] !== true);
}

const RULES_REVIEW = clusterKind("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews");
const ACCESS_REVIEW = clusterKind("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews");

async function rulesIn(client: ApiClient, namespace: string, signal: AbortSignal): Promise<ReviewedRules> {
  const review = { metadata: { name: "" }, spec: { namespace } };
  const answer: KubernetesObject & { readonly status?: ReviewedRules } = await client.create(
    { definition: RULES_REVIEW },
    review,
    { signal },
  );
  return answer.status ?? {};
}

async function isAllowed(client: ApiClient, right: RequiredRight, signal: AbortSignal): Promise<boolean> {
  const { verb, group, resource = "", name, namespace, path } = right;
  const [plural, subresource] = resource.split("/");
  const spec =
    path === undefined
      ? { resourceAttributes: { verb, group, resource: plural, subresource, name, namespace } }
      : { nonResourceAttributes: { verb, path } };
  const review = { metadata: { name: "" }, spec };
  const answer: KubernetesObject & { readonly status?: { readonly allowed?: boolean } } = await client.create(
    { definition: ACCESS_REVIEW },
    review,
    { signal },
  );
  return answer.status?.allowed === true;
}

/**
 * Tells whether rules allow something, by the rules of RBAC.
 *
 * https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
 */
export function allows({ resourceRules = [], nonResourceRules = [] }: ReviewedRules, right: RequiredRight): boolean {
  const { verb, group = "", resource = "", name, path } = right;
  if (path !== undefined)
    return nonResourceRules.some(
      ({ verbs, nonResourceURLs = [] }) => has(verbs, verb) && nonResourceURLs.some((each) => isCovered(path, each)),
    );
  const [, subresource] = resource.split("/");
  return resourceRules.some(
    ({ verbs, apiGroups = [], resources = [], resourceNames = [] }) =>
      has(verbs, verb) &&
      has(apiGroups, group) &&
      (has(resources, resource) || (subresource !== undefined && resources.includes(`*/${subresource}`))) &&
      (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name))),
  );
}

function has(stated: readonly string[], wanted: string): boolean {
  return stated.includes("*") || stated.includes(wanted);
}

// Only a star at the end stands for the rest of a path.
function isCovered(path: string, stated: string): boolean {
  return stated === path || (stated.endsWith("*") && path.startsWith(stated.slice(0, -1)));
}
