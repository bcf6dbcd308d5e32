import type { ApiClient, KubernetesObject } from "@gen-operator/runtime";
import { type RequiredRight, operatorUserOf, requiredRights } from "../emit/deploy/emit-deploy.js";
import type { ProjectModel } from "../model/project-model.js";
import { clusterKind } from "../read/cluster.js";
import { type Check, ok, skipped } from "./check.js";

/** The user whose permissions are checked. */
interface Subject {
  /** User name in the cluster; absent if the API server does not report it. */
  readonly user?: string;
  /** True if the user was set with `--as`. */
  readonly isNamed: boolean;
}

const NAME = "rights";
const TIMEOUT_MS = 30_000;

/** Checks which permissions of `deploy/generated/rbac.yaml` the user of the client has, with one request per namespace. */
export async function checkRights(client: ApiClient, model: ProjectModel, subject: Subject): Promise<Check[]> {
  const { messageOf } = await import("@gen-operator/runtime");
  const rights = requiredRights(model);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const operator = operatorUserOf(model);
  try {
    const missing = await missingRights(client, rights, signal);
    return [judge(rights.length, missing, { subject, operator }), ...otherClusters(model)];
  } catch (error) {
    return [skipped(NAME, messageOf(error), "ask for permission to create selfsubjectrulesreviews")];
  }
}

interface Whose {
  readonly subject: Subject;
  /** User name of the operator's service account. */
  readonly operator: string;
}

function judge(count: number, missing: readonly RequiredRight[], { subject, operator }: Whose): Check {
  const { user = "the user of the kubeconfig", isNamed } = subject;
  const isOperator = user === operator;
  const others = isOperator ? "" : `; to check the operator, use --as ${operator}`;
  if (missing.length === 0)
    return ok(NAME, `${user} has all ${count} permissions of deploy/generated/rbac.yaml${others}`);
  return {
    name: NAME,
    // The operator runs with its service account, so a developer may have fewer permissions.
    outcome: isNamed ? "failed" : "warning",
    message: `${user} lacks ${missing.length} of ${count} permissions of deploy/generated/rbac.yaml`,
    details: describe(missing),
    advice: isOperator
      ? "run kubectl apply -k deploy/generated"
      : `use --as ${operator} to check the permissions of the operator`,
  };
}

/** Describes permissions, one line per resource: `deployments.apps in all namespaces: create, patch (dependent web of page)`. */
function describe(rights: readonly RequiredRight[]): string[] {
  const lines = new Map<string, { readonly verbs: string[]; readonly because: string }>();
  for (const right of rights) {
    const subject = subjectOf(right);
    const known = lines.get(subject);
    if (known === undefined) lines.set(subject, { verbs: [right.verb], because: right.because });
    else known.verbs.push(right.verb);
  }
  return [...lines].map(([subject, { verbs, because }]) => `${subject}: ${verbs.join(", ")} (${because})`);
}

function subjectOf({ group = "", resource = "", name, namespace, path }: RequiredRight): string {
  if (path !== undefined) return path;
  const kind = group === "" ? resource : `${resource}.${group}`;
  const which = name === undefined ? kind : `${kind} ${JSON.stringify(name)}`;
  return `${which} in ${namespace === undefined ? "all namespaces" : `namespace ${namespace}`}`;
}

function otherClusters({ controllers }: ProjectModel): Check[] {
  const names = new Set(
    controllers.flatMap(({ dependents }) =>
      dependents.flatMap((each) => ("cluster" in each && each.cluster !== undefined ? [each.cluster] : [])),
    ),
  );
  return [...names]
    .sort()
    .map((name) =>
      skipped(
        `rights in cluster ${name}`,
        "only the kubeconfig of the operator defines this cluster",
        `compare deploy/generated/clusters/${name}.yaml with what is applied there: kubectl diff -f`,
      ),
    );
}

/** The permissions of a user in a namespace, as in the status of a SelfSubjectRulesReview. */
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
  /** True if an authorizer of the cluster, such as a webhook, cannot list its rules. */
  readonly incomplete?: boolean;
}

/**
 * Namespace for reviews of cluster-wide permissions. It has no role bindings, so whatever is allowed there is allowed by a ClusterRoleBinding. A
 * namespace need not exist for a review.
 */
const NO_NAMESPACE = "gen-operator-doctor-asks-for-all-namespaces";

/**
 * Returns the permissions that the user of the client lacks.
 *
 * Sends one SelfSubjectRulesReview per namespace. Only if the rules are incomplete and do not grant a permission, it is checked by a
 * SelfSubjectAccessReview.
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
 * Returns whether rules grant a permission, with the semantics of RBAC.
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

// A star is a wildcard only at the end of a path.
function isCovered(path: string, stated: string): boolean {
  return stated === path || (stated.endsWith("*") && path.startsWith(stated.slice(0, -1)));
}
