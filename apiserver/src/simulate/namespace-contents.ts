// The default contents of every namespace: ServiceAccount `default`, and ConfigMap `kube-root-ca.crt` with the CA of the server.
import type { Controller } from "./feed/controller.js";
import { type KubernetesObject, isSame } from "./feed/kubernetes-object.js";

const ACCOUNTS = "serviceaccounts.";
const CONFIG_MAPS = "configmaps.";
/** ConfigMap with the CA certificate of the server, in every namespace. */
export const ROOT_CA = "kube-root-ca.crt";
const DESCRIPTION =
  "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service " +
  "IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/** Creates the controller that creates these objects and recreates them after a deletion. */
export function createNamespaceContents(): Controller {
  const ofNamespace = (name: string) => (object: KubernetesObject) =>
    object.metadata.name === name ? [object.metadata.namespace ?? ""] : [];
  return {
    kind: "namespaces.",
    watches: { [ACCOUNTS]: ofNamespace("default"), [CONFIG_MAPS]: ofNamespace(ROOT_CA) },
    async reconcile({ metadata }, { cluster, ca }) {
      if (metadata.deletionTimestamp !== undefined) return;
      const namespace = metadata.name;
      if (cluster.get(ACCOUNTS, `${namespace}/default`) === undefined) {
        await cluster.create(ACCOUNTS, { metadata: { name: "default", namespace } });
      }
      // The token volume of Pods mounts the ConfigMap, even if it contains no certificate.
      const data = { "ca.crt": ca ?? "" };
      const present = cluster.get<KubernetesObject & { data?: object }>(CONFIG_MAPS, `${namespace}/${ROOT_CA}`);
      if (present === undefined) {
        const annotations = { "kubernetes.io/description": DESCRIPTION };
        await cluster.create(CONFIG_MAPS, { metadata: { name: ROOT_CA, namespace, annotations }, data });
      } else if (ca !== undefined && !isSame(present.data, data)) {
        await cluster.update(CONFIG_MAPS, { ...present, data });
      }
    },
  };
}
