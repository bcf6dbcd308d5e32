// What a user may do in a namespace, by a role binding there that its tenant can delete.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ApiClient } from "#runtime/client/api-client.js";
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

/** Gives a user these rights in a namespace, and takes all others. */
export async function allowIn(client: ApiClient, user: string, namespace: string, rights: readonly Right[]) {
  const metadata = { name: user, namespace };
  const rules = rights.map((right) => ({ apiGroups: ["*"], ...right }));
  const subjects = [{ kind: "User", name: user, apiGroup: RBAC }];
  const roleRef = { kind: "Role", name: user, apiGroup: RBAC };
  await client.delete(Role, metadata);
  await client.create(Role, { metadata, rules });
  if ((await client.get(RoleBinding, metadata)) === undefined)
    await client.create(RoleBinding, { metadata, roleRef, subjects });
}

/** Takes a user all rights in a namespace. */
export async function forbidIn(client: ApiClient, user: string, namespace: string): Promise<void> {
  await client.delete(RoleBinding, { name: user, namespace });
}
