// What Kubernetes 1.36 warns of in kinds that have a warning or two.
import { quote } from "../../errors/quote.js";
import { arrayAt, memberOf, objectAt, type JsonObject } from "../../json.js";
import { cidrWarnings } from "../rules/address-syntax.js";
import { labelNameProblems } from "../rules/name-syntax.js";
import { INGRESS_CLASS } from "../rules/network-rules.js";
import { objectsAt, textAt } from "../read-path.js";
import { keyPairWarnings } from "./key-pair-warnings.js";
import { endpointsWarnings, policyWarnings, sliceAddressWarnings } from "./network-warnings.js";

type Warnings = (object: JsonObject, old: JsonObject | undefined) => string[];

const WARNINGS: { readonly [kind: string]: Warnings } = {
  CSIDriver: driverWarnings,
  Endpoints: endpointsWarnings,
  EndpointSlice: (slice, old) => [
    ...(old === undefined && textAt(slice, "addressType") === "FQDN"
      ? ["spec.addressType: FQDN endpoints are deprecated"]
      : []),
    ...sliceAddressWarnings(slice),
  ],
  Ingress: ingressWarnings,
  NetworkPolicy: policyWarnings,
  Node: (node) => [
    ...(objectAt(objectAt(node, "spec"), "configSource") === undefined
      ? []
      : ["spec.configSource: the feature is removed"]),
    ...(textAt(node, "spec.externalID") === ""
      ? []
      : ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]),
    ...(arrayAt(objectAt(node, "spec"), "podCIDRs") ?? []).flatMap((range, index) =>
      cidrWarnings(`spec.podCIDRs[${index}]`, String(range)),
    ),
  ],
  PersistentVolume: volumeWarnings,
  ResourceSlice: sliceWarnings,
  Secret: keyPairWarnings,
  StatefulSet: (set) =>
    Number(memberOf(objectAt(set, "spec"), "revisionHistoryLimit") ?? 0) < 0
      ? ["spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"]
      : [],
};

/** The kinds whose names their Pods are called after, and how these use them. */
const NAMED_AFTER: { readonly [kind: string]: string } = {
  Pod: "the Pod's hostname",
  ...Object.fromEntries(
    ["Deployment", "ReplicaSet", "Job", "CronJob", "ReplicationController"].map((kind) => [
      kind,
      "Pod names and hostnames",
    ]),
  ),
};

/** Names what a new object of a kind should be called otherwise. */
export function nameWarnings(kind: string, object: JsonObject, old: JsonObject | undefined): string[] {
  const use = NAMED_AFTER[kind];
  const problems = use === undefined || old !== undefined ? [] : labelNameProblems(textAt(object, "metadata.name"));
  if (problems.length === 0) return [];
  const effect = "which can result in surprising behavior; a DNS label is recommended";
  return [`metadata.name: this is used in ${use}, ${effect}: [${problems.join(" ")}]`];
}

/** Names what an object of a kind should say otherwise. */
export function kindWarnings(kind: string, object: JsonObject, old: JsonObject | undefined): string[] {
  return WARNINGS[kind]?.(object, old) ?? [];
}

function driverWarnings(driver: JsonObject): string[] {
  const spec = objectAt(driver, "spec") ?? {};
  const isOpen =
    objectsAt(spec, "tokenRequests").length > 0 && memberOf(spec, "serviceAccountTokenInSecrets") === undefined;
  return isOpen
    ? [
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in " +
          "volume attributes",
      ]
    : [];
}

function ingressWarnings(ingress: JsonObject, old: JsonObject | undefined): string[] {
  const annotations = objectAt(objectAt(ingress, "metadata"), "annotations");
  const hasClass = memberOf(objectAt(ingress, "spec"), "ingressClassName") !== undefined;
  if (old !== undefined || hasClass || memberOf(annotations, INGRESS_CLASS) === undefined) return [];
  return [`annotation "${INGRESS_CLASS}" is deprecated, please use 'spec.ingressClassName' instead`];
}

function volumeWarnings(volume: JsonObject): string[] {
  const recycles = textAt(volume, "spec.persistentVolumeReclaimPolicy") === "Recycle";
  const advice =
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
  return [
    ...(recycles ? [`spec.persistentVolumeReclaimPolicy: ${advice}`] : []),
    ...sourceWarnings("spec", objectAt(volume, "spec") ?? {}, OF_VOLUMES),
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
  return sources
    .filter((source) => objectAt(volume, source) !== undefined)
    .map((source) => `${path}.${source === "storageos" ? "storageOS" : source}: ${OLD_SOURCES[source]}`);
}

function sliceWarnings(slice: JsonObject): string[] {
  const driver = textAt(slice, "spec.driver");
  if (driver === driver.toLowerCase()) return [];
  return [`spec.driver: driver names should be lowercase; ${quote(driver)} contains uppercase characters`];
}
