import { AppsV1Api, type Informer, KubeConfig, makeInformer, type V1Deployment } from "@kubernetes/client-node";

/** Creates an informer of @kubernetes/client-node as in its documentation. `onChange` is called for added and changed objects. */
export function createDeploymentInformer(
  { url, ca }: { readonly url: string; readonly ca: string },
  onChange: (object: V1Deployment) => void,
): Informer<V1Deployment> {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: "bench", server: url, caData: Buffer.from(ca).toString("base64") }],
    users: [{ name: "bench", token: "bench" }],
    contexts: [{ name: "bench", cluster: "bench", user: "bench" }],
    currentContext: "bench",
  });
  const api = config.makeApiClient(AppsV1Api);
  const informer = makeInformer<V1Deployment>(config, "/apis/apps/v1/deployments", () =>
    api.listDeploymentForAllNamespaces(),
  );
  informer.on("add", onChange);
  informer.on("update", onChange);
  informer.on("error", (error) => {
    throw error;
  });
  return informer;
}
