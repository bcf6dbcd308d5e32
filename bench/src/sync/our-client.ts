// A client under measurement: the runtime, from the bytes of the watch to the reconcile.
import { createLogger } from "#runtime/base/create-logger.js";
import { keyOf, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import type { DecodedResource } from "#runtime/cluster/decode-resource.js";
import { ApiClient } from "#runtime/cluster/api-client.js";
import { createConnection } from "#runtime/cluster/connection.js";
import { ResourceCache } from "#runtime/cluster/resource-cache.js";
import { ResourceView } from "#runtime/cluster/resource-view.js";
import { Informer } from "#runtime/events/informer.js";
import { byOwnerReference } from "#runtime/events/mappers.js";
import { deployments, shops } from "../kinds.js";
import { createNoOpController, createShop } from "../no-op-controller.js";
import { DEPLOYMENTS_PER_OWNER, namespaceOf, ownerName } from "./deployment-text.js";
import { createProbe, settingsOf, type SyncSettings } from "./sync-probe.js";

const settings = settingsOf<SyncSettings>();
const primaries = new Map<ObjectKey, DecodedResource>();
for (let owner = 0; owner * DEPLOYMENTS_PER_OWNER < settings.objects; owner++) {
  const object = createShop(namespaceOf(owner), ownerName(owner));
  primaries.set(keyOf(object.metadata), { object });
}
const probe = createProbe(settings);
let isAsking = false;
const controller = createNoOpController({
  primaries,
  onReconcile() {
    probe.onReconciled(false);
    if (isAsking) return;
    isAsking = true;
    setImmediate(() => {
      isAsking = false;
      const { queued, running } = controller.counts();
      probe.reportIfDone(queued + running === 0);
    });
  },
});
const cache = new ResourceCache();
const view = new ResourceView(deployments);
view.attach(cache);
const ownersOf = byOwnerReference({ definition: shops });
view.onChange(({ key, object, isInitial }) => {
  probe.onChange();
  controller.onSecondaryChange(ownersOf(object), { source: "deployments", object: key, isInitial });
});
const informer = new Informer({
  definition: deployments,
  cache,
  fieldManagers: ["shop-operator"],
  client: new ApiClient(createConnection({ url: settings.url, ca: settings.ca, token: "bench" })),
  logger: createLogger("warn"),
});
controller.start();
await informer.start();
probe.onSynced();
