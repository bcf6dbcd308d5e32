// A client whose watch expires: the informer of client-node.
import { settingsOf } from "../sync/sync-probe.js";
import { createDeploymentInformer } from "../sync/peer-informer.js";
import { measureRelist, type RelistSettings } from "./relist-probe.js";

const settings = settingsOf<RelistSettings>();
const progress = { changes: 0 };
const informer = createDeploymentInformer(settings, () => void progress.changes++);
await informer.start();
// It does not say when a list has arrived; the last of the changed objects is the last that it tells of.
await measureRelist(progress, () => progress.changes >= settings.objects + settings.changed);
