// Admission plugin PodTopologyLabels: copies the topology labels of the node to Pods that are bound to it.
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { metadataOf } from "../object/object-meta.js";
import type { AdmissionPlugin, AdmittedWrite } from "./admission.js";

const NODES = { group: "", version: "v1", plural: "nodes" };
const LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

export const podTopologyLabels: AdmissionPlugin = {
  resources: ["pods"],
  mutate: setTopologyLabels,
};

/** Copies the topology labels of the node to a new Pod or to the Binding of a Pod, in place. */
function setTopologyLabels(write: AdmittedWrite): void {
  const { operation, subresource, object } = write;
  if (operation !== "CREATE" || object === undefined) return;
  if (subresource === "") addLabels(write, object, stringAt(objectAt(object, "spec"), "nodeName"));
  const target = objectAt(object, "target");
  if (subresource === "binding" && stringAt(target, "kind") === "Node")
    addLabels(write, object, stringAt(target, "name"));
}

function addLabels({ context }: AdmittedWrite, object: JsonObject, nodeName = ""): void {
  const node = context.registry.find(NODES)?.store.get(nodeName)?.object;
  const labels = node === undefined ? undefined : objectAt(metadataOf(node), "labels");
  const copied = Object.entries(labels ?? {}).filter(([key]) => LABELS.includes(key));
  if (copied.length === 0) return;
  const metadata = metadataOf(object);
  metadata["labels"] = { ...objectAt(metadata, "labels"), ...Object.fromEntries(copied) };
}
