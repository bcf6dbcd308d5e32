// A client under measurement: the runtime's informer.
import { Informer } from "#runtime/events/informer.js";
import { createOwnerMapping } from "#runtime/events/owner-mapping.js";
import { ApiClient } from "#runtime/cluster/api-client.js";
import { createConnection } from "#runtime/cluster/connection.js";
import { createLogger } from "#runtime/base/create-logger.js";
import { deployments, shops } from "./kinds.js";
import { ShopQueue } from "./shop-queue.js";
import { createProbe, settingsOf, type SyncSettings } from "./sync-probe.js";

const settings = settingsOf<SyncSettings>();
const probe = createProbe(settings);
const informer = new Informer({
  definition: deployments,
  fieldManagers: ["shop-operator"],
  client: new ApiClient(createConnection({ url: settings.url, ca: settings.ca, token: "bench" })),
  logger: createLogger("warn"),
});
const queue = new ShopQueue((isIdle) => probe.onReconciled(isIdle));
const ownersOf = createOwnerMapping(shops);
informer.cache.onChange(({ object }) => {
  probe.onChange();
  for (const owner of ownersOf(object)) queue.add(owner);
});
await informer.start();
probe.onSynced();
