// Questions to the API server: whose token it is, and who may do what.
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { builtinKindOf } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";

interface Review extends KubernetesObject {
  readonly spec: object;
  readonly status?: {
    readonly authenticated?: boolean;
    readonly allowed?: boolean;
    readonly user?: { readonly username?: string; readonly [fact: string]: unknown };
  };
}

const reviewOf = (group: string, kind: string) =>
  builtinKindOf<Review>({ group, kind, plural: `${kind.toLowerCase()}s`, scope: "Cluster" });

const REVIEWS = {
  token: reviewOf("authentication.k8s.io", "TokenReview"),
  access: reviewOf("authorization.k8s.io", "SubjectAccessReview"),
  ownAccess: reviewOf("authorization.k8s.io", "SelfSubjectAccessReview"),
};

/** Asks the API server, and returns its answer. */
export async function review(
  client: Pick<ApiClient, "create">,
  about: keyof typeof REVIEWS,
  { spec, signal }: { readonly spec: object; readonly signal: AbortSignal },
): Promise<Review["status"]> {
  return (await client.create({ definition: REVIEWS[about] }, { metadata: { name: "" }, spec }, { signal })).status;
}
