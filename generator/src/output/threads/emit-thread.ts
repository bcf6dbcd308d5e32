/** A thread that emits the files of resources; whoever starts it takes them all at once. */
import { parentPort, workerData } from "node:worker_threads";
import type { ResourceModel } from "../../model/project-model.js";
import { emitResource } from "../resource/emit-resource.js";

parentPort?.postMessage((workerData as readonly ResourceModel[]).map(emitResource));
