// Aggregates the rules of ClusterRoles, as the clusterrole-aggregation-controller of kube-controller-manager 1.36 does.
import type { Controller } from "../feed/controller.js";
import { type KubernetesObject, type LabelSelector, isSame, selects } from "../feed/kubernetes-object.js";

interface ClusterRole extends KubernetesObject {
  rules?: object[] | null;
  aggregationRule?: { clusterRoleSelectors?: LabelSelector[] };
}

const KIND = "clusterroles.rbac.authorization.k8s.io";

/** Creates the controller. A change of any ClusterRole enqueues all aggregated ones. */
export function createClusterRoles(): Controller<ClusterRole> {
  return {
    kind: KIND,
    watches: {
      [KIND]: (_changed, cluster) =>
        cluster
          .list<ClusterRole>(KIND)
          .filter(({ aggregationRule }) => aggregationRule !== undefined)
          .map(({ metadata }) => metadata.name),
    },
    async reconcile({ metadata: { name }, aggregationRule, rules: present }, { cluster }) {
      if (aggregationRule === undefined) return;
      const others = cluster.list<ClusterRole>(KIND).filter(({ metadata }) => metadata.name !== name);
      const sorted = others.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
      const rules: object[] = [];
      for (const selector of aggregationRule.clusterRoleSelectors ?? []) {
        const selected = sorted.filter(({ metadata }) => selects(selector, metadata.labels));
        for (const rule of selected.flatMap((role) => role.rules ?? []))
          if (!rules.some((known) => isSame(known, rule))) rules.push(rule);
      }
      if (isSame(present ?? [], rules)) return;
      await cluster.apply(KIND, { metadata: { name }, rules }, { manager: "clusterrole-aggregation-controller" });
    },
  };
}
