// What Kubernetes 1.36 warns of in kinds that have a warning or two.
import { quote } from "../errors/go-format.js";
import { type JsonObject, arrayAt, deepEqual, memberOf, objectAt } from "../json.js";
import { amount, quantitiesAt } from "./shared/resource-requests.js";
import { objectsAt, textAt } from "../builtin/read-path.js";
import { cidrWarnings } from "../validation/addresses.js";
import { labelNameProblems } from "../validation/names.js";
import { INGRESS_CLASS } from "./networking/ingress.js";
import { keyPairWarnings } from "./core/key-pair-warnings.js";
import { endpointsWarnings, policyWarnings, sliceAddressWarnings } from "./core/network-warnings.js";
import { labelMapWarnings } from "./shared/node-labels.js";
import {
  capacityWarnings,
  claimSpecWarnings,
  claimWarnings,
  storageClassWarnings,
  volumeWarnings,
} from "./core/storage-warnings.js";

type Warnings = (object: JsonObject, old: JsonObject | undefined) => string[];

const WARNINGS: { readonly [kind: string]: Warnings } = {
  CSIDriver: driverWarnings,
  CSIStorageCapacity: capacityWarnings,
  CronJob: (cronJob) => indexWarnings(objectAt(cronJob, "spec"), "spec.jobTemplate.spec"),
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
  Job: (job) => indexWarnings(job, "spec"),
  PersistentVolume: volumeWarnings,
  PersistentVolumeClaim: claimWarnings,
  ResourceQuota: (quota, old) => (old === undefined ? quotaWarnings(quota) : []),
  ResourceSlice: sliceWarnings,
  RuntimeClass: (runtime) =>
    labelMapWarnings(objectAt(objectAt(runtime, "scheduling"), "nodeSelector"), () => "scheduling.nodeSelector"),
  Secret: keyPairWarnings,
  ServiceAccount: accountWarnings,
  StorageClass: storageClassWarnings,
  StatefulSet: (set, old) => [
    ...objectsAt(set, "spec.volumeClaimTemplates").flatMap((claim, index) => {
      // As Kubernetes has it.
      const path = `spec.volumeClaimTemplates[${index}]${old === undefined ? "" : ".Spec"}`;
      return claimSpecWarnings(path, objectAt(claim, "spec") ?? {});
    }),
    ...(Number(memberOf(objectAt(set, "spec"), "revisionHistoryLimit") ?? 0) < 0
      ? ["spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"]
      : []),
  ],
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

/** The kinds of which a server may read some objects from files. */
const IN_FILES = /^(?:Validating|Mutating)(?:AdmissionPolicy(?:Binding)?|WebhookConfiguration)$/;
const FILE_SUFFIX = ".static.k8s.io";

/** Names what an object of a kind should be called otherwise. */
export function nameWarnings(kind: string, object: JsonObject, old: JsonObject | undefined): string[] {
  const name = textAt(object, "metadata.name");
  if (IN_FILES.test(kind) && name.endsWith(FILE_SUFFIX))
    return [
      `metadata.name: names ending with "${FILE_SUFFIX}" are reserved for static manifest-based configurations and cannot be managed via the API`,
    ];
  const use = NAMED_AFTER[kind];
  const problems = use === undefined || old !== undefined ? [] : labelNameProblems(name);
  if (problems.length === 0) return [];
  const effect = "which can result in surprising behavior; a DNS label is recommended";
  return [`metadata.name: this is used in ${use}, ${effect}: [${problems.join(" ")}]`];
}

/** Names what an object of a kind should say otherwise. */
export function kindWarnings(kind: string, object: JsonObject, old: JsonObject | undefined): string[] {
  return WARNINGS[kind]?.(object, old) ?? [];
}

const ENFORCES_SECRETS = "kubernetes.io/enforce-mountable-secrets";

function accountWarnings(account: JsonObject, old: JsonObject | undefined): string[] {
  const isSet = (of: JsonObject | undefined) =>
    memberOf(objectAt(objectAt(of, "metadata"), "annotations"), ENFORCES_SECRETS) !== undefined;
  const advice = "prefer separate namespaces to isolate access to mounted secrets";
  return isSet(account) && !isSet(old)
    ? [`metadata.annotations[${ENFORCES_SECRETS}]: deprecated in v1.32+; ${advice}`]
    : [];
}

// Who may ask for more than may be used has not limited anything.
function quotaWarnings(quota: JsonObject): string[] {
  const hard = quantitiesAt(objectAt(quota, "spec") ?? {}, "hard");
  return ["cpu", "memory", "storage", "ephemeral-storage"].flatMap((name) => {
    const bare = name === "cpu" || name === "memory" ? name : "";
    const asked = hard[`requests.${name}`] === undefined && hard[bare] !== undefined ? bare : `requests.${name}`;
    const [request, limit] = [hard[asked], hard[`limits.${name}`]];
    if (request === undefined || limit === undefined || amount(request) <= amount(limit)) return [];
    return [`ResourceQuota ${asked} (${request}) should be less than limits.${name} (${limit})`];
  });
}

const MANY = { completions: 100_000, parallelism: 10_000 };

function indexWarnings(holder: JsonObject | undefined, path: string): string[] {
  const spec = objectAt(path === "spec" ? holder : objectAt(holder, "jobTemplate"), "spec");
  const [completions, parallelism] = ["completions", "parallelism"].map((key) => Number(memberOf(spec, key) ?? 0));
  const isVast = Number(completions) > MANY.completions && Number(parallelism) > MANY.parallelism;
  if (!isVast || memberOf(spec, "completionMode") !== "Indexed") return [];
  const effect = "Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
  return [
    `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, ${effect}`,
  ];
}

function driverWarnings(driver: JsonObject, old: JsonObject | undefined): string[] {
  const spec = objectAt(driver, "spec") ?? {};
  const requests = objectsAt(spec, "tokenRequests");
  const isOpen = requests.length > 0 && memberOf(spec, "serviceAccountTokenInSecrets") === undefined;
  const isSame = old !== undefined && deepEqual(requests, objectsAt(old, "spec.tokenRequests"));
  return isOpen && !isSame
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

function sliceWarnings(slice: JsonObject): string[] {
  const driver = textAt(slice, "spec.driver");
  if (driver === driver.toLowerCase()) return [];
  return [`spec.driver: driver names should be lowercase; ${quote(driver)} contains uppercase characters`];
}
