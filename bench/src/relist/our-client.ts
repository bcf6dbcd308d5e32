// The runtime's informer and cache as a client whose watch expires.
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { SharedInformer } from "#runtime/watch/informer.js";
import { deployments } from "../kinds.js";
import { settingsOf } from "../sync/sync-probe.js";
import { measureRelist, type RelistSettings } from "./relist-probe.js";
import { createLogger } from "#runtime/base/logger.js";

const settings = settingsOf<RelistSettings>();
const progress = { changes: 0 };
let lists = 0;
const cache = new (class extends ResourceCache {
  override endReplace(version: string) {
    super.endReplace(version);
    lists++;
  }
})();
cache.subscribe({ onChange: () => void progress.changes++, onVersion: () => {}, onReset: () => {} });
const client = new ApiClient(createConnection({ url: settings.url, ca: settings.ca, token: "bench" }));
const context = { cache, fieldManagers: ["shop-operator"], client, logger: createLogger("warn") };
const informer = new SharedInformer({ definition: deployments }, context);
await informer.start();
const listsBefore = lists;
await measureRelist(progress, () => lists > listsBefore);
