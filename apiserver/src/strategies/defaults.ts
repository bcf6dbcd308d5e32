// Defaults of built-in kinds. What is fixed is data (static-defaults.ts); what depends on other members is called from here.
import { canonicalQuantity } from "@gen-operator/schema";
import { type JsonObject, type JsonValue, arrayAt, clone, isObject, memberOf, objectAt, setMember } from "../json.js";
import { normalise } from "../builtin/normal-form.js";
import { type SchemaNode, isQuantity, schemaNode } from "../builtin/schema-node.js";
import type { ServedType } from "../builtin/served-type.js";
import * as configuration from "./core/configuration-defaults.js";
import { defaultPod, defaultPullPolicy, defaultVolumeSource, dropOldAnnotations } from "./core/pod.js";
import { defaultService } from "./core/service-defaults.js";
import * as workload from "./apps/workload-defaults.js";

/** What defaults need besides the object. */
export interface DefaultingContext {
  /** Absent before the fields are attributed to the writer, to whom nothing that is allocated belongs. */
  allocateClusterIP?: () => string;
  allocateNodePort?: () => number;
  /** Throws for a Service that asks for what it cannot be given. */
  checkAsked?: (spec: JsonObject) => void;
  /** The uid of an object that is being created; absent on updates. */
  uid?: string;
  /** The object before an update; what was allocated to it is kept. */
  old?: JsonObject;
}

const NOT_READY = "node.kubernetes.io/not-ready";

type RootDefault = (object: JsonObject, context: DefaultingContext) => void;
type StructDefault = (struct: JsonObject) => void;

// By `Kind` or `Kind.group`: what depends on the whole object or on its being created.
const ROOT_DEFAULTS: Record<string, RootDefault> = {
  // What admission sets is there before an update and comes with the uid of a new Pod; it has no owner.
  Pod: (pod, { uid, old }) => {
    dropOldAnnotations(pod);
    defaultPod(pod, { isAdmitted: uid !== undefined || old !== undefined, isNew: old === undefined });
  },
  Service: defaultService,
  Secret: (secret) => configuration.encodeStringData(secret),
  Namespace: (namespace, { uid }) => configuration.defaultNamespace(namespace, uid !== undefined),
  ReplicationController: (controller) => workload.defaultReplicationController(controller),
  "HorizontalPodAutoscaler.autoscaling": (scaler) => workload.defaultUtilization(scaler),
  "Job.batch": (job, { uid }) => workload.defaultJob(job, uid),
  "DaemonSet.apps": (daemonSet, { old }) => workload.keepTemplateCount(daemonSet, old),
  Node: (node, { uid }) => {
    const status = objectAt(node, "status");
    if (status?.["capacity"] !== undefined) status["allocatable"] ??= clone(status["capacity"]);
    const spec = objectAt(node, "spec") ?? {};
    configuration.agreeOnRanges(spec);
    if (uid === undefined) return;
    const taints = arrayAt(spec, "taints") ?? [];
    const isTainted = taints.some((taint) => isObject(taint) && taint["key"] === NOT_READY);
    const added = isTainted ? [] : [{ key: NOT_READY, effect: "NoSchedule" }];
    node["spec"] = { ...spec, taints: [...taints, ...added] };
  },
  PersistentVolumeClaim: (claim, { uid }) => {
    if (uid !== undefined) configuration.protectByFinalizer(claim, "kubernetes.io/pvc-protection");
  },
  "VolumeAttributesClass.storage.k8s.io": (object, { uid }) => {
    if (uid !== undefined) configuration.protectByFinalizer(object, "kubernetes.io/vac-protection");
  },
  PersistentVolume: (volume, { uid }) => {
    if (uid !== undefined) configuration.protectByFinalizer(volume, "kubernetes.io/pv-protection");
    const spec = objectAt(volume, "spec") ?? {};
    spec["persistentVolumeReclaimPolicy"] ??= "Retain";
    spec["volumeMode"] ??= "Filesystem";
  },
};

// By schema name without `io.k8s.api.`: what depends on the members of one struct, wherever it stands.
const STRUCT_DEFAULTS: Record<string, StructDefault> = {
  "core.v1.Container": (container) => defaultPullPolicy(container, { image: "image", policy: "imagePullPolicy" }),
  "core.v1.EphemeralContainer": (container) =>
    defaultPullPolicy(container, { image: "image", policy: "imagePullPolicy" }),
  "core.v1.ImageVolumeSource": (source) => defaultPullPolicy(source, { image: "reference", policy: "pullPolicy" }),
  "core.v1.Volume": defaultVolumeSource,
  "core.v1.PodTemplateSpec": dropOldAnnotations,
  "core.v1.PodSpec": (spec) => {
    spec["securityContext"] ??= {};
    // The deprecated name of the same field is kept equal.
    const account = spec["serviceAccountName"] ?? spec["serviceAccount"];
    if (account !== undefined) spec["serviceAccountName"] = spec["serviceAccount"] = account;
  },
  "resource.v1.ExactDeviceRequest": configuration.defaultDeviceCount,
  "resource.v1.DeviceSubRequest": configuration.defaultDeviceCount,
  "core.v1.LimitRangeItem": configuration.defaultLimitRangeItem,
  "apps.v1.DeploymentStrategy": workload.defaultRollingUpdate,
  "apps.v1.DaemonSetUpdateStrategy": workload.defaultDaemonUpdate,
  "apps.v1.StatefulSetUpdateStrategy": workload.defaultStatefulStrategy,
  "apps.v1.StatefulSetSpec": (spec) => {
    spec["persistentVolumeClaimRetentionPolicy"] ??= {};
  },
  "autoscaling.v2.HorizontalPodAutoscalerSpec": workload.defaultAutoscaler,
  "rbac.v1.Subject": configuration.defaultSubject,
  "networking.v1.NetworkPolicySpec": configuration.defaultPolicyTypes,
  "admissionregistration.v1.MatchResources": configuration.defaultMatchResources,
  "admissionregistration.v1.MutatingAdmissionPolicySpec": configuration.defaultAdmissionPolicy,
  "admissionregistration.v1.ValidatingAdmissionPolicySpec": configuration.defaultAdmissionPolicy,
  "admissionregistration.v1.MutatingWebhook": (webhook) => configuration.defaultWebhook(webhook, true),
  "admissionregistration.v1.ValidatingWebhook": (webhook) => configuration.defaultWebhook(webhook, false),
};

/**
 * Brings an object of a built-in type into the form in which it is stored, in place: unknown members and nulls dropped, quantities
 * canonical, defaults set, addresses allocated. Idempotent, but what depends on the uid is only set when that is given.
 */
export function defaultBuiltin(type: ServedType, object: JsonObject, context: DefaultingContext): void {
  if (type.schemaName === undefined) return;
  normalise(type.schemaName, object);
  const { properties } = schemaNode(type.schemaName);
  if (!isObject(object["metadata"]) && properties.has("metadata")) object["metadata"] = {};
  setDefaults(type.schemaName, object, visitStruct);
  ROOT_DEFAULTS[type.group === "" ? type.kind : `${type.kind}.${type.group}`]?.(object, context);
}

const structDefaults = new Map(Object.entries(STRUCT_DEFAULTS).map(([name, set]) => [`io.k8s.api.${name}`, set]));

function visitStruct(schemaName: string, struct: JsonObject): void {
  structDefaults.get(schemaName)?.(struct);
}

/** Called for every object of a tree before its defaults are set; may set defaults that depend on other members. */
type StructVisitor = (schemaName: string, object: JsonObject) => void;

/** Sets what is absent to its default, in place and everywhere below; `visit` comes first at each object. */
function setDefaults(schemaName: string, object: JsonObject, visit: StructVisitor): void {
  defaultNode(schemaNode(schemaName), object, visit);
}

function defaultNode(node: SchemaNode, value: JsonValue, visit: StructVisitor): void {
  if (typeof value !== "object" || value === null) return;
  const { items, values, name } = node;
  if (Array.isArray(value)) {
    if (items !== undefined) for (const item of value) defaultNode(items, item, visit);
  } else if (values !== undefined) for (const member of Object.values(value)) defaultNode(values, member, visit);
  else if (name !== undefined) {
    visit(name, value);
    defaultStruct(node, value, visit);
  }
}

function defaultStruct(
  { name = "", defaults, properties, facts }: SchemaNode,
  object: JsonObject,
  visit: StructVisitor,
): void {
  for (const [key, value] of defaults) if (memberOf(object, key) === undefined) object[key] = clone(value);
  for (const key of Object.keys(object)) {
    const node = properties.get(key)?.node;
    if (node === undefined) continue;
    if (isQuantity(node.values?.name) && name.startsWith(CORE)) roundUp(objectAt(object, key) ?? {});
    else defaultNode(node, object[key] as JsonValue, visit);
  }
  for (const key of facts.nullIfUnset ?? []) if (memberOf(object, key) === undefined) setMember(object, key, null);
}

const CORE = "io.k8s.api.core.v1.";
const BELOW_THOUSANDTHS = /^(-?)(\d+)(n|u|e-9|e-6)$/;

// The core knows no amounts of resources below a thousandth, and rounds up to one.
function roundUp(amounts: JsonObject): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const [, sign = "", digits = "", suffix = ""] = BELOW_THOUSANDTHS.exec(String(amount)) ?? [];
    if (digits === "") continue;
    const parts = suffix === "n" || suffix === "e-9" ? 1_000_000n : 1000n;
    const thousandths = (BigInt(digits) + parts - 1n) / parts;
    const rounded = canonicalQuantity(`${sign}${thousandths}${suffix.startsWith("e") ? "e-3" : "m"}`);
    if ("text" in rounded) setMember(amounts, name, rounded.text);
  }
}
