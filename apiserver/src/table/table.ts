import { textAt } from "../builtin/read-path.js";
import type { ServedType } from "../builtin/served-type.js";
import { type JsonObject, type JsonValue, memberOf, objectAt, stringAt } from "../json.js";
import { autoscalerPrinter } from "./autoscaler-printer.js";
import { columnTextsOf, textsOfEveryObject } from "./column-texts.js";
import * as configuration from "./configuration-printers.js";
import { customColumnsOf } from "./custom/custom-printer.js";
import * as network from "./network-printers.js";
import { eventPrinter, nodePrinter } from "./node-printers.js";
import { podPrinter } from "./pod-printer.js";
import type { Printer } from "./printer.js";
import * as rare from "./rare-printers.js";
import * as workload from "./workload-printers.js";

/** The fields of a type that determine its columns. */
export type PrintedType = Pick<ServedType, "group" | "kind" | "custom">;

export interface TableOptions {
  /** What rows contain of their object. */
  includeObject: "None" | "Metadata" | "Object";
  listMeta?: JsonObject;
  /** False for all events of a watch except the first. */
  withColumns: boolean;
  now: Date;
}

// By `Kind` or `Kind.group`; other kinds have the columns Name and Created At.
const PRINTERS: Record<string, Printer> = {
  Pod: podPrinter,
  Node: nodePrinter,
  Event: eventPrinter,
  "Event.events.k8s.io": eventPrinter,
  "Deployment.apps": workload.deploymentPrinter,
  "ReplicaSet.apps": workload.replicaSetPrinter,
  "StatefulSet.apps": workload.statefulSetPrinter,
  "DaemonSet.apps": workload.daemonSetPrinter,
  "ControllerRevision.apps": workload.controllerRevisionPrinter,
  "Job.batch": workload.jobPrinter,
  "CronJob.batch": workload.cronJobPrinter,
  "HorizontalPodAutoscaler.autoscaling": autoscalerPrinter,
  ReplicationController: workload.replicationControllerPrinter,
  PodTemplate: workload.podTemplatePrinter,
  "Scale.autoscaling": workload.scalePrinter,
  Service: network.servicePrinter,
  Endpoints: network.endpointsPrinter,
  "EndpointSlice.discovery.k8s.io": network.endpointSlicePrinter,
  "Ingress.networking.k8s.io": network.ingressPrinter,
  "IngressClass.networking.k8s.io": network.ingressClassPrinter,
  "NetworkPolicy.networking.k8s.io": network.networkPolicyPrinter,
  ConfigMap: configuration.configMapPrinter,
  Secret: configuration.secretPrinter,
  Namespace: configuration.namespacePrinter,
  ServiceAccount: configuration.agePrinter,
  ResourceQuota: configuration.quotaPrinter,
  PersistentVolumeClaim: configuration.claimPrinter,
  PersistentVolume: configuration.volumePrinter,
  "Lease.coordination.k8s.io": configuration.leasePrinter,
  "RoleBinding.rbac.authorization.k8s.io": configuration.roleBindingPrinter,
  "ClusterRoleBinding.rbac.authorization.k8s.io": configuration.roleBindingPrinter,
  "PodDisruptionBudget.policy": configuration.disruptionBudgetPrinter,
  "StorageClass.storage.k8s.io": configuration.storageClassPrinter,
  "PriorityClass.scheduling.k8s.io": configuration.priorityClassPrinter,
  "RuntimeClass.node.k8s.io": configuration.runtimeClassPrinter,
  "MutatingWebhookConfiguration.admissionregistration.k8s.io": configuration.webhookPrinter,
  "ValidatingWebhookConfiguration.admissionregistration.k8s.io": configuration.webhookPrinter,
  "APIService.apiregistration.k8s.io": configuration.apiServicePrinter,
  ComponentStatus: rare.componentStatusPrinter,
  "CertificateSigningRequest.certificates.k8s.io": rare.certificateRequestPrinter,
  "IPAddress.networking.k8s.io": rare.ipAddressPrinter,
  "ServiceCIDR.networking.k8s.io": rare.serviceCidrPrinter,
  "CSIDriver.storage.k8s.io": rare.csiDriverPrinter,
  "CSINode.storage.k8s.io": rare.csiNodePrinter,
  "VolumeAttachment.storage.k8s.io": rare.volumeAttachmentPrinter,
  "VolumeAttributesClass.storage.k8s.io": rare.volumeAttributesClassPrinter,
  "ValidatingAdmissionPolicy.admissionregistration.k8s.io": rare.validatingPolicyPrinter,
  "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": rare.policyBindingPrinter,
  "MutatingAdmissionPolicy.admissionregistration.k8s.io": rare.mutatingPolicyPrinter,
  "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": rare.policyBindingPrinter,
  "ResourceClaim.resource.k8s.io": rare.resourceClaimPrinter,
  "ResourceSlice.resource.k8s.io": rare.resourceSlicePrinter,
  "FlowSchema.flowcontrol.apiserver.k8s.io": rare.flowSchemaPrinter,
  "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": rare.priorityLevelPrinter,
  "DeviceClass.resource.k8s.io": configuration.agePrinter,
  "ResourceClaimTemplate.resource.k8s.io": configuration.agePrinter,
};

const CREATED_AT: Printer = {
  columns: ["Created At:date"],
  cells: (object) => [textAt(object, "metadata.creationTimestamp")],
};

/** Builds a Table of meta.k8s.io for objects of one type. */
export function tableOf(type: PrintedType, objects: JsonObject[], options: TableOptions): JsonObject {
  const { definitions, cells, isUsual } = columnsOf(type);
  const rowOf = (object: JsonObject): JsonObject => ({
    cells: cells(object, options.now),
    object: includedObject(object, options.includeObject),
  });
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: options.listMeta ?? {},
    columnDefinitions: options.withColumns ? definitions : null,
    rows: isUsual && objects.length === 0 ? null : objects.map(rowOf),
  };
}

interface Columns {
  definitions: JsonValue[];
  cells: (object: JsonObject, now: Date) => JsonValue[];
  /** True for the default printer, which returns null instead of an empty list of rows. */
  isUsual: boolean;
}

function columnsOf(type: PrintedType): Columns {
  if (type.custom !== undefined) {
    const columns = customColumnsOf(type.custom.version);
    return {
      definitions: [definitionOf("Name", textsOfEveryObject().name), ...columns.map(({ definition }) => definition)],
      cells: (object, now) => [nameOf(object), ...columns.map(({ cell }) => cell(object, now))],
      isUsual: false,
    };
  }
  const qualifiedKind = type.group === "" ? type.kind : `${type.kind}.${type.group}`;
  const printer = PRINTERS[qualifiedKind] ?? CREATED_AT;
  const texts = columnTextsOf(qualifiedKind);
  // The generated name of an Event is not informative, so it is the last column and wide only.
  const isEvent = printer === eventPrinter;
  const columns = isEvent ? [...printer.columns, "Name*"] : ["Name", ...printer.columns];
  const name = printer.name ?? nameOf;
  return {
    definitions: columns.map((column, index) => definitionOf(column, texts[index] ?? "")),
    cells: (object, now) => (isEvent ? [] : [name(object) as JsonValue]).concat(printer.cells(object, now)),
    isUsual: printer === CREATED_AT,
  };
}

// These columns have the format "name" in kube-apiserver.
const NAMES = ["Name", "Attacher"];

function definitionOf(column: string, description: string): JsonObject {
  const [, name = "", wide = "", type = "string"] = /^([^*:]*)(\*?)(?::(.*))?$/.exec(column) ?? [];
  return {
    name,
    type,
    format: NAMES.includes(name) ? "name" : "",
    description,
    priority: wide.length,
  };
}

function nameOf(object: JsonObject): string {
  return stringAt(objectAt(object, "metadata"), "name") ?? "";
}

function includedObject(object: JsonObject, include: TableOptions["includeObject"]): JsonValue {
  if (include === "None") return null;
  if (include === "Object") return object;
  const metadata = memberOf(object, "metadata") ?? {};
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
}
