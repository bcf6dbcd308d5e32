// The informer of client-node as a client whose watch expires.
import { settingsOf } from "../sync/sync-probe.js";
import { createDeploymentInformer } from "../sync/peer-informer.js";
import { measureRelist, type RelistSettings } from "./relist-probe.js";

const settings = settingsOf<RelistSettings>();
const progress = { changes: 0 };
const informer = createDeploymentInformer(settings, () => void progress.changes++);
await informer.start();
// The informer does not signal the end of a list, so wait for all changes: the last changed object is also the last event.
await measureRelist(progress, () => progress.changes >= settings.objects + settings.changed);
