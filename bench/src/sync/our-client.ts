// The runtime's informer, cache, and view as a client to measure.
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { SharedInformer } from "#runtime/watch/informer.js";
import { byOwnerReference } from "#runtime/sources/mappers.js";
import { deployments, shops } from "../kinds.js";
import { ShopQueue } from "./shop-queue.js";
import { createProbe, settingsOf, type SyncSettings } from "./sync-probe.js";
import { createLogger } from "#runtime/base/logger.js";

const settings = settingsOf<SyncSettings>();
const probe = createProbe(settings);
const queue = new ShopQueue((isIdle) => probe.onReconciled(isIdle));
const cache = new ResourceCache();
const view = new ResourceView(deployments);
view.attach(cache);
const ownersOf = byOwnerReference({ definition: shops });
view.onChange(({ object }) => {
  probe.onChange();
  for (const owner of ownersOf(object)) queue.add(owner);
});
const client = new ApiClient(createConnection({ url: settings.url, ca: settings.ca, token: "bench" }));
const context = { cache, fieldManagers: ["shop-operator"], client, logger: createLogger("warn") };
const informer = new SharedInformer({ definition: deployments }, context);
await informer.start();
probe.onSynced();
