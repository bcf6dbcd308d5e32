// What a user may do in a namespace, by a role binding there that its tenant can delete.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ApiClient } from "#runtime/client/api-client.js";
import { type Connection, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";

const RBAC = "rbac.authorization.k8s.io";
const Role = classOf<KubernetesObject & { rules: object[] }>(builtinDefinition(`${RBAC}/v1`, "Role"));
const RoleBinding = classOf<KubernetesObject & { roleRef: object; subjects: object[] }>(
  builtinDefinition(`${RBAC}/v1`, "RoleBinding"),
);

/** Resources of any API group, and what may be done with them. */
export interface Right {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface Cluster {
  readonly client: ApiClient;
  readonly server: Connection;
}

/** How often the rights of a user in a namespace were set, by both. Each rule set has a resource of its own, by which the authorizer is asked for it. */
const revisions = new Map<string, number>();

/** Gives a user these rights in a namespace instead of its previous ones; resolves once the authorizer of the server has the new rules. */
export async function allowIn(cluster: Cluster, user: string, namespace: string, rights: readonly Right[]) {
  const { client } = cluster;
  const metadata = { name: user, namespace };
  const revision = revisionOf(user, namespace) + 1;
  revisions.set(`${user} ${namespace}`, revision);
  const marker = { resources: [`revision-${revision}`], verbs: ["get"] };
  const rules = [...rights, marker].map((right) => ({ apiGroups: ["*"], ...right }));
  const subjects = [{ kind: "User", name: user, apiGroup: RBAC }];
  const roleRef = { kind: "Role", name: user, apiGroup: RBAC };
  await client.delete(Role, metadata);
  await client.create(Role, { metadata, rules });
  if ((await client.get(RoleBinding, metadata)) === undefined)
    await client.create(RoleBinding, { metadata, roleRef, subjects });
  await untilAllowed(cluster, true, { user, namespace });
}

/** Takes a user all rights in a namespace; resolves once the authorizer of the server denies them. */
export async function forbidIn(cluster: Cluster, user: string, namespace: string): Promise<void> {
  await cluster.client.delete(RoleBinding, { name: user, namespace });
  await untilAllowed(cluster, false, { user, namespace });
}

function revisionOf(user: string, namespace: string): number {
  return revisions.get(`${user} ${namespace}`) ?? 0;
}

/** kube-apiserver authorizes by cached roles, which follow the stored ones with a delay. */
async function untilAllowed(
  { server }: Cluster,
  isAllowed: boolean,
  { user, namespace }: { user: string; namespace: string },
): Promise<void> {
  const resource = `revision-${revisionOf(user, namespace)}`;
  const body = { spec: { user, resourceAttributes: { namespace, verb: "get", group: "", resource } } };
  const path = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";
  await waitFor(`the authorizer ${isAllowed ? "allows" : "denies"} ${user} ${resource} in ${namespace}`, async () => {
    const { status } = await apiRequestOrThrow<{ status: { allowed: boolean } }>(server, path, { body });
    return status.allowed === isAllowed;
  });
}
