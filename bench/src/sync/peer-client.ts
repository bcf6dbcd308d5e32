// The informer of client-node as a client to measure.
import { createDeploymentInformer } from "./peer-informer.js";
import { ShopQueue } from "./shop-queue.js";
import { createProbe, settingsOf, type SyncSettings } from "./sync-probe.js";

const settings = settingsOf<SyncSettings>();
const probe = createProbe(settings);
const queue = new ShopQueue((isIdle) => probe.onReconciled(isIdle));
const informer = createDeploymentInformer(settings, ({ metadata }) => {
  probe.onChange();
  for (const { kind, name } of metadata?.ownerReferences ?? [])
    if (kind === "Shop") queue.add(`${metadata?.namespace}/${name}`);
});
await informer.start();
probe.onSynced();
