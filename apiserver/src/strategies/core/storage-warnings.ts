// What Kubernetes 1.36 warns of in volumes, claims and their classes.
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { BILLION, amount } from "../shared/resource-requests.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { CLASS_ANNOTATION } from "./persistent-volume-claim.js";
import { expressionWarnings, labelMapWarnings, labelWarnings, termWarnings } from "../shared/node-labels.js";

const OPTIONS = "volume.beta.kubernetes.io/mount-options";

function annotationWarnings(object: JsonObject, deprecated: readonly [key: string, since: string, field: string][]) {
  const annotations = objectAt(objectAt(object, "metadata"), "annotations");
  return deprecated
    .filter(([key]) => memberOf(annotations, key) !== undefined)
    .map(
      ([key, since, field]) =>
        `metadata.annotations[${key}]: deprecated since ${since}; use "${field}" attribute instead`,
    );
}

/** Warns of a PersistentVolumeClaim. */
export function claimWarnings(claim: JsonObject): string[] {
  return [
    ...annotationWarnings(claim, [[CLASS_ANNOTATION, "v1.8", "storageClassName"]]),
    ...claimSpecWarnings("spec", objectAt(claim, "spec") ?? {}),
  ];
}

/** Warns of the spec of a claim at `path`. */
export function claimSpecWarnings(path: string, spec: JsonObject): string[] {
  return ["requests", "limits"].flatMap((list) =>
    fractionWarnings(`${path}.resources.${list}`, objectAt(objectAt(spec, "resources"), list), ["storage"]),
  );
}

/** Warns of parts of bytes in quantities at `path`. */
export function fractionWarnings(path: string, quantities: JsonObject | undefined, names: readonly string[]): string[] {
  if (quantities === undefined) return [];
  return names.flatMap((name) => {
    const quantity = memberOf(quantities, name);
    if (quantity === undefined || amount(String(quantity)) % BILLION === 0n) return [];
    return [`${path}[${name}]: fractional byte value "${String(quantity)}" is invalid, must be an integer`];
  });
}

/** Warns of a PersistentVolume. */
export function volumeWarnings(volume: JsonObject): string[] {
  const recycles = textAt(volume, "spec.persistentVolumeReclaimPolicy") === "Recycle";
  const advice =
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
  const affinity = objectAt(objectAt(volume, "spec"), "nodeAffinity");
  return [
    ...annotationWarnings(volume, [
      [CLASS_ANNOTATION, "v1.8", "storageClassName"],
      [OPTIONS, "v1.31", "mountOptions"],
    ]),
    ...(recycles ? [`spec.persistentVolumeReclaimPolicy: ${advice}`] : []),
    ...termWarnings("spec.nodeAffinity.required", objectAt(affinity, "required")),
    ...sourceWarnings("spec", objectAt(volume, "spec") ?? {}, OF_VOLUMES),
  ];
}

/** Warns of the topologies of a StorageClass. */
export function storageClassWarnings(storageClass: JsonObject): string[] {
  return objectsAt(storageClass, "allowedTopologies").flatMap((topology, index) =>
    objectsAt(topology, "matchLabelExpressions").flatMap((expression, place) => {
      const path = `allowedTopologies[${index}].matchLabelExpressions[${place}].key`;
      const label = textAt(expression, "key");
      // Kubernetes does not repeat the label here.
      return labelWarnings(path, label).map((warning) => warning.replace(`: ${label} is `, ": "));
    }),
  );
}

/** Warns of the topology of a CSIStorageCapacity. */
export function capacityWarnings(capacity: JsonObject): string[] {
  const topology = objectAt(capacity, "nodeTopology");
  if (topology === undefined) return [];
  return [
    ...expressionWarnings("nodeTopology", topology),
    ...labelMapWarnings(objectAt(topology, "matchLabels"), (label) => `nodeTopology.matchLabels.${label}`),
  ];
}

const OF_VOLUMES = ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];
const gone = (deprecated: string, removed: string) => `deprecated in ${deprecated}, non-functional in ${removed}+`;
// In the order in which they are told of a Pod.
const OLD_SOURCES: { readonly [source: string]: string } = {
  photonPersistentDisk: gone("v1.11", "v1.16"),
  gitRepo: "deprecated in v1.11, and disabled by default in v1.33+",
  scaleIO: gone("v1.16", "v1.22"),
  flocker: gone("v1.22", "v1.25"),
  storageos: gone("v1.22", "v1.25"),
  quobyte: gone("v1.22", "v1.25"),
  glusterfs: gone("v1.25", "v1.26"),
  cephfs: gone("v1.28", "v1.31"),
  rbd: gone("v1.28", "v1.31"),
};

/** Names the sources of a volume at `path` that are no longer right; a PersistentVolume is not warned of all. */
export function sourceWarnings(path: string, volume: JsonObject, sources = Object.keys(OLD_SOURCES)): string[] {
  const template = objectAt(objectAt(volume, "ephemeral"), "volumeClaimTemplate");
  return [
    ...sources
      .filter((source) => objectAt(volume, source) !== undefined)
      .map((source) => `${path}.${source === "storageos" ? "storageOS" : source}: ${OLD_SOURCES[source]}`),
    ...(template === undefined
      ? []
      : claimSpecWarnings(`${path}.ephemeral.volumeClaimTemplate.spec`, objectAt(template, "spec") ?? {})),
  ];
}
