// Fields that Kubernetes 1.36 reads and forgets before it checks the object: those of features that are switched off, and what it has no use for.
import { type JsonObject, type JsonValue, clone, isObject, objectAt } from "../json.js";
import { at, objectsAt, textAt } from "../builtin/read-path.js";
import { resourceNameOf } from "../builtin/resource-name.js";
import { placedContainers } from "./pod-template/placed-containers.js";
import { podTemplatePathOf } from "../builtin/pod-templates.js";

type Drop = (object: JsonObject, old: JsonObject | undefined) => void;

/** By resource. */
const DROPS: { readonly [type: string]: Drop } = {
  "leases.coordination.k8s.io": fields("spec", ["preferredHolder", "strategy"]),
  nodes: (node, old) => {
    fields("spec", ["configSource"])(node, old);
    // What is there may stay.
    if (objectAt(objectAt(old, "status"), "config") === undefined) fields("status", ["config"])(node, old);
  },
  "statefulsets.apps": fields("spec.updateStrategy.rollingUpdate", ["maxUnavailable"]),
  "csidrivers.storage.k8s.io": fields("spec", ["preventPodSchedulingIfMissing"]),
  pods: (pod, old) => {
    dropOfPod(objectAt(pod, "spec"));
    dropOfStatus(pod, old);
  },
  persistentvolumeclaims: (claim, old) => settleDataSource(objectAt(claim, "spec") ?? {}, objectAt(old, "spec")),
  "endpointslices.discovery.k8s.io": (slice) =>
    objectsAt(slice, "endpoints").forEach((endpoint) => delete endpoint["deprecatedTopology"]),
  "resourceclaims.resource.k8s.io": dropTakenDevices,
  "resourceslices.resource.k8s.io": (slice) => objectsAt(slice, "spec.devices").forEach(dropOfDevice),
  serviceaccounts: (account) => keepNames(objectsAt(account, "secrets")),
};

/** Takes such fields off an object, which is an update of `old`, if there is one. */
export function dropFields(
  type: { readonly plural: string; readonly group: string },
  object: JsonObject,
  old: JsonObject | undefined,
): void {
  DROPS[resourceNameOf(type)]?.(object, old);
  const template = podTemplatePathOf(type);
  if (template !== undefined) dropOfPod(at(object, `${template}.spec`));
}

function fields(path: string, names: readonly string[]): Drop {
  return (object) => {
    const holder = at(object, path);
    if (isObject(holder)) for (const name of names) delete holder[name];
  };
}

// Of features that are off, but for what is there.
function dropOfStatus(pod: JsonObject, old: JsonObject | undefined): void {
  const key = "nodeAllocatableResourceClaimStatuses";
  if (objectAt(old, "status")?.[key] === undefined) fields("status", [key])(pod, old);
  for (const mount of mountStatusesOf(pod)) delete mount["volumeStatus"];
}

function mountStatusesOf(pod: JsonObject): JsonObject[] {
  const lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
  return lists.flatMap((list) => objectsAt(pod, `status.${list}`).flatMap((one) => objectsAt(one, "volumeMounts")));
}

function dropOfPod(spec: JsonValue | undefined): void {
  if (!isObject(spec)) return;
  delete spec["schedulingGroup"];
  for (const { container } of placedContainers("", spec)) dropSignal(container);
  for (const source of objectsAt(spec, "volumes").flatMap((volume) => objectsAt(volume, "projected.sources")))
    for (const kind of ["clusterTrustBundle", "podCertificate"]) delete source[kind];
}

function dropSignal(container: JsonObject): void {
  const lifecycle = objectAt(container, "lifecycle");
  if (lifecycle?.["stopSignal"] === undefined) return;
  delete lifecycle["stopSignal"];
  if (Object.keys(lifecycle).length === 0) delete container["lifecycle"];
}

function dropOfDevice(device: JsonObject): void {
  delete device["nodeAllocatableResourceMappings"];
  for (const attribute of Object.values(objectAt(device, "attributes") ?? {}))
    if (isObject(attribute)) for (const list of ["bools", "ints", "strings", "versions"]) delete attribute[list];
}

// What is said of devices that a claim no longer has.
function dropTakenDevices(claim: JsonObject, old: JsonObject | undefined): void {
  const keyOf = (device: JsonObject) =>
    ["driver", "pool", "device", "shareID"].map((key) => textAt(device, key)).join();
  const given = (one: JsonObject) => objectsAt(one, "status.allocation.devices.results").map(keyOf);
  const taken = given(old ?? {}).filter((device) => !given(claim).includes(device));
  const status = objectAt(claim, "status");
  const devices = objectsAt(claim, "status.devices");
  if (status === undefined || taken.length === 0 || devices.length === 0) return;
  const kept = devices.filter((device) => !taken.includes(keyOf(device)));
  if (kept.length === 0) delete status["devices"];
  else status["devices"] = kept;
}

function keepNames(references: readonly JsonObject[]): void {
  for (const reference of references)
    for (const member of Object.keys(reference)) if (member !== "name") delete reference[member];
}

const OLD_SOURCES = new Set(["PersistentVolumeClaim", "VolumeSnapshot.snapshot.storage.k8s.io"]);

function sourceKind(source: JsonObject): string {
  const [kind, group] = [textAt(source, "kind"), textAt(source, "apiGroup")];
  return group === "" ? kind : `${kind}.${group}`;
}

/** Lets the two ways to name the data source of a claim agree: the older of the two names nothing but claims and snapshots. */
function settleDataSource(spec: JsonObject, old: JsonObject | undefined): void {
  const isElsewhere = textAt(spec, "dataSourceRef.namespace") !== "";
  if (isElsewhere && objectAt(old, "dataSourceRef") === undefined) delete spec["dataSourceRef"];
  const hadSource = ["dataSource", "dataSourceRef"].some((key) => objectAt(old, key) !== undefined);
  const source = objectAt(spec, "dataSource");
  const reference = objectAt(spec, "dataSourceRef");
  const isForgotten = source !== undefined && reference === undefined && !hadSource;
  if (isForgotten && !OLD_SOURCES.has(sourceKind(source))) delete spec["dataSource"];
  else if (source !== undefined && reference === undefined) spec["dataSourceRef"] = clone(source);
  else if (source === undefined && reference !== undefined && textAt(reference, "namespace") === "")
    spec["dataSource"] = clone(reference);
}
