// A client under measurement: the informer of @kubernetes/client-node, used as its documentation shows.
import { AppsV1Api, KubeConfig, makeInformer, type V1Deployment } from "@kubernetes/client-node";
import { ShopQueue } from "./shop-queue.js";
import { createProbe, settingsOf, type SyncSettings } from "./sync-probe.js";

const settings = settingsOf<SyncSettings>();
const probe = createProbe(settings);
const config = new KubeConfig();
config.loadFromOptions({
  clusters: [{ name: "bench", server: settings.url, caData: Buffer.from(settings.ca).toString("base64") }],
  users: [{ name: "bench", token: "bench" }],
  contexts: [{ name: "bench", cluster: "bench", user: "bench" }],
  currentContext: "bench",
});
const api = config.makeApiClient(AppsV1Api);
const informer = makeInformer<V1Deployment>(config, "/apis/apps/v1/deployments", () =>
  api.listDeploymentForAllNamespaces(),
);
const queue = new ShopQueue((isIdle) => probe.onReconciled(isIdle));
const onChange = ({ metadata }: V1Deployment) => {
  probe.onChange();
  for (const { kind, name } of metadata?.ownerReferences ?? [])
    if (kind === "Shop") queue.add(`${metadata?.namespace}/${name}`);
};
informer.on("add", onChange);
informer.on("update", onChange);
informer.on("error", (error) => {
  throw error;
});
informer.on("connect", () => {});
await informer.start();
probe.onSynced();
